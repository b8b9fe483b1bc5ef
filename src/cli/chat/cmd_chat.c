/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur chat`: a conversation with a capsule, on a terminal or through a pipe.
 *
 * Always true: a line from a pipe is a message and nothing else; commands and files are for who
 * types.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/ids.h"
#include "base/text.h"
#include "cli/chat/bundled.h"
#include "cli/chat/chat_turn.h"
#include "cli/chat/commands.h"
#include "cli/chat/line_editor.h"
#include "cli/chat/local_servers.h"
#include "cli/line/args.h"
#include "cli/line/line_reader.h"
#include "cli/line/own_command.h"
#include "cli/line/terminal_width.h"
#include "cli/running/stop_session.h"
#include "cli/running/watch_text.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/conversations.h"
#include "home/paths.h"
#include "manifest/text/suggest.h"
#include "trace/read/text.h"

#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define MENTION_LIMIT   ((size_t)1 << 20)
#define STOP_S          10
#define MOST_LISTED     12 /* conversations that /resume shows */
#define SUBJECT_COLUMNS 40
#define HELP_INDENT     10
#define USUAL_COLUMNS   80

/* --- with whom --- */

static bool
is_address (const char *target)
{
    struct stat st;
    if (! target || stat (target, &st) == 0)
        return false;
    return target[0] == '@' || (! strchr (target, '/') && ! str_ends (target, ".yaml"));
}

/* The manifest meant. Owned. */
static char *
manifest_of (const char *target, struct mur_error **err)
{
    struct stat st;
    if (target)
        return x_asprintf (
            stat (target, &st) == 0 && S_ISDIR (st.st_mode) ? "%s/murmur.yaml" : "%s", target);
    if (stat ("murmur.yaml", &st) == 0)
        return x_strdup ("murmur.yaml");
    diag_note ("no murmur.yaml here: this is the bundled capsule, offline, from a script");
    diag_note ("`mur new agent NAME` begins a capsule of your own");
    bundled_tell_providers ();
    local_servers_tell ();
    return bundled_capsule (err);
}

static bool
meet (const struct cli_args *args, struct chat_talk *t, struct mur_error **err)
{
    const char *target = cli_positional (args, "TARGET");
    if (is_address (target)) {
        if (chat_session_join (t->session, target, err))
            return true;
        return mur_hint (err, "`mur ps` lists what is running; a capsule is named by its folder or "
                              "manifest");
    }
    const char *with = t->with = cli_value (args, "--with");
    _cleanup_free_ char *manifest =
        with ? bundled_agent (with, cli_value (args, "--model"), err) : manifest_of (target, err);
    struct chat_launch launch = { .manifest = manifest,
                                  .workdir = cli_value (args, "--workdir"),
                                  .has_no_env_file = cli_has (args, "--no-env-file"),
                                  .signals_fd = t->signals_fd };
    return manifest && chat_session_launch (t->session, &launch, err);
}

/* --- lines --- */

static struct line_editor *
open_editor (const struct chat_talk *t)
{
    if (! t->is_terminal)
        return NULL;
    _cleanup_error_ struct mur_error *ignored = NULL;
    int dir = home_open_dir ("chat", &ignored);
    if (dir >= 0)
        close (dir);
    _cleanup_free_ char *path = dir >= 0 ? home_path_below ("chat/history", &ignored) : NULL;
    return line_editor_new (t->signals_fd, path);
}

static void
greet (const struct chat_talk *t)
{
    const struct running_record *r = t->session->record;
    out_printf ("%s %s  %s\n", r->capsule_name, r->capsule_version, r->session_id);
    out_puts ("/help lists what else a line may say. Ctrl-C cancels the turn, Ctrl-D leaves.\n\n");
}

/* --- commands --- */

struct chat_command {
    const char *name, *help;
    void (*run) (struct chat_talk *t);
};

static void do_help (struct chat_talk *t);

static void
do_quit (struct chat_talk *t)
{
    t->is_over = true;
}

static void
do_stop (struct chat_talk *t)
{
    _cleanup_error_ struct mur_error *err = NULL;
    t->is_over = true;
    if (! t->session->manifest && ! stop_session (t->session->record, STOP_S, &err))
        diag_error (err);
}

static void
do_new (struct chat_talk *t)
{
    chat_drop_question (t);
    free (t->context_id);
    t->context_id = x_strdup (id_new ("ctx_").text);
    out_puts ("A new conversation begins: what was said before is not sent again.\n");
}

/* The records of this session lie by its work root. */
static void
do_trace (struct chat_talk *t)
{
    const struct running_record *r = t->session->record;
    _cleanup_free_ char *root = x_strdup (r->workdir);
    char *last = strrchr (root, '/');
    if (last && strcmp (last + 1, r->session_id) == 0)
        *last = '\0';
    own_command_run (
        (const char *const[]){ "trace", "show", r->session_id, "--workdir", root, NULL });
}

static void
do_grants (struct chat_talk *t)
{
    const char *manifest = t->session->manifest;
    if (manifest)
        own_command_run (
            (const char *const[]){ "run", "--explain-scope", "--manifest", manifest, NULL });
    else
        do_trace (t);
}

static void
do_tools (struct chat_talk *t)
{
    token_tally_read (&t->tally);
    size_t i;
    const json_t *name;
    json_array_foreach (json_object_get (t->tally.start, "tools_declared"), i, name)
        out_printf ("  %s\n", json_string_value (name));
    if (! i)
        out_puts ("It has no tools.\n");
}

/* The session ends and one with the other model goes on with the conversation. */
static void
change_model (struct chat_talk *t, const char *model)
{
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_free_ char *manifest = bundled_agent (t->with, model, &err);
    const struct chat_launch launch = { .manifest = manifest,
                                        .workdir = t->session->workdir,
                                        .signals_fd = t->signals_fd };
    if (manifest) {
        chat_drop_question (t);
        token_tally_clear (&t->tally);
        chat_session_clear (t->session);
        *t->session = (struct chat_session){ .lifeline_fd = -1, .errors_fd = -1 };
    }
    if (manifest && chat_session_launch (t->session, &launch, &err)) {
        t->tally = (struct token_tally){ .fd = -1 };
        token_tally_open (&t->tally, t->session->record->records_dir);
        out_printf ("%s answers from now on; the conversation goes on.\n", model);
        return;
    }
    t->is_over = manifest != NULL; /* the one that was is gone */
    if (err)
        diag_error (err);
}

static void
do_model (struct chat_talk *t)
{
    token_tally_read (&t->tally);
    const char *model = json_get_string (t->tally.start, "model");
    const char *session = t->session->record->session_id;
    if (! t->argument[0]) {
        out_printf ("%s\n", model ? model : "not known");
        out_puts (t->with ? "/model NAME lets another model of this provider answer.\n"
                          : "/model NAME chooses among inference.alternates of its manifest.\n");
        return;
    }
    if (t->with)
        change_model (t, t->argument);
    else if (! own_command_run ((const char *const[]){ "control", "set", "inference.driver",
                                                       t->argument, session, NULL }))
        out_printf (
            "Not changed. A manifest says who may answer: a name of inference.alternates, with "
            "inference.driver under control.settings, is chosen here; else change "
            "inference.model and start anew. `mur chat --with PROVIDER --model NAME --context "
            "%s` asks a model about the same conversation.\n",
            t->context_id);
}

/* What a call returned, counted from the newest. */
static void
do_open (struct chat_talk *t)
{
    size_t len = json_array_size (t->calls),
           number = t->argument[0] ? strtoul (t->argument, NULL, 10) : 1;
    if (! number || number > len) {
        out_printf ("%s\n", len ? "There are not that many calls." : "No tool was called yet.");
        return;
    }
    const json_t *frame = json_array_get (t->calls, len - number);
    const char *name = json_get_string (frame, "toolName");
    const char *content = json_get_string (frame, "content");
    out_printf ("%s\n", name ? name : "");
    out_write (content ? content : "", strlen (content ? content : ""));
    out_puts ("\n");
}

static int
newest_first (const void *x, const void *y)
{
    const struct conversation_file *a = *(const struct conversation_file *const *)x;
    const struct conversation_file *b = *(const struct conversation_file *const *)y;
    return (a->touched_ms < b->touched_ms) - (a->touched_ms > b->touched_ms);
}

/* Whose it is: a store has the capsule's name, unless a header says otherwise. */
static const char *
capsule_of (const struct conversation_file *f)
{
    const char *capsule = json_get_string (f->header, "capsule");
    return capsule ? capsule : f->record;
}

/* The first words that a person said. Owned. */
static char *
subject_of (const struct conversation_file *f)
{
    for (size_t i = 0; i < f->len; i++) {
        const json_t *message = f->lines[i].message;
        const json_t *content = json_object_get (message, "content");
        const char *text = json_string_value (content);
        if (! text)
            text = json_get_string (json_array_get (content, 0), "text");
        if (text && str_eq (json_get_string (message, "role"), "user"))
            return text_first_words (text_behind_fence (text), SUBJECT_COLUMNS);
    }
    return x_strdup ("");
}

/* By its number in the list, or by the beginning or the end of its id. NULL: none, or several. */
static const struct conversation_file *
conversation_meant (struct conversation_file **list, size_t len, const char *typed)
{
    const struct conversation_file *found = NULL;
    char *end;
    unsigned long number = strtoul (typed, &end, 10);
    if (! *end && number >= 1 && number <= len)
        return list[number - 1];
    for (size_t i = 0; i < len; i++) {
        const char *id = list[i]->context_id;
        bool is_meant = str_starts (id, typed) || str_ends (id, typed) ||
                        (str_starts (id, "ctx_") && str_starts (id + 4, typed));
        if (str_eq (id, typed) || (is_meant && ! found))
            found = list[i];
        else if (is_meant && ! str_eq (found->context_id, typed))
            return NULL;
    }
    return found;
}

static void
list_conversations (const struct chat_talk *t, struct conversation_file **list, size_t len)
{
    out_printf ("This conversation is %s.%s\n", t->context_id,
                len ? "" : " There is no earlier one of this capsule.");
    for (size_t i = 0; i < len && i < MOST_LISTED; i++) {
        _cleanup_free_ char *subject = subject_of (list[i]);
        struct small_text when = time_text (list[i]->touched_ms);
        out_printf ("%3zu  %.10s %.5s  %3zu messages  %.12s  %s\n", i + 1, when.text,
                    when.text + 11, list[i]->len, list[i]->context_id, subject);
    }
    if (len)
        out_puts ("/resume NUMBER goes on with one, so does the beginning of an id.\n");
}

static void
do_resume (struct chat_talk *t)
{
    _cleanup_ (conversation_files_free) struct conversation_files all = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    if (! conversation_files_read (NULL, NULL, &all, &err)) {
        diag_error (err);
        return;
    }
    _cleanup_free_ struct conversation_file **list =
        x_new_array (struct conversation_file *, all.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < all.len; i++)
        if (str_eq (capsule_of (&all.items[i]), t->session->record->capsule_name) &&
            ! str_eq (all.items[i].context_id, t->context_id) && all.items[i].len)
            list[len++] = &all.items[i];
    qsort (list, len, sizeof *list, newest_first);
    if (! t->argument[0]) {
        list_conversations (t, list, len);
        return;
    }
    const struct conversation_file *meant = conversation_meant (list, len, t->argument);
    if (! meant && ! id_is_valid (t->argument, "ctx_")) {
        out_printf ("No single conversation of this capsule is meant by %s; /resume alone lists "
                    "them.\n",
                    t->argument);
        return;
    }
    chat_drop_question (t);
    _cleanup_free_ char *chosen = x_strdup (meant ? meant->context_id : t->argument);
    free (t->context_id);
    t->context_id = steal_ptr (&chosen);
    out_printf ("The next message goes on with %s.\n", t->context_id);
}

static const struct chat_command commands[] = {
    { "/help", "this list", do_help },
    { "/new", "begin a new conversation with the same capsule", do_new },
    { "/resume", "earlier conversations; with a number or the beginning of an id: go on with one",
      do_resume },
    { "/open", "what the last call of a tool returned; with a number, one before it", do_open },
    { "/trace", "what it did so far", do_trace },
    { "/grants", "what it may do", do_grants },
    { "/tools", "what it may call", do_tools },
    { "/model", "who answers; with a name: another from the next message on", do_model },
    { "/stop", "end the session, also one that was joined, and leave", do_stop },
    { "/quit", "leave; a session that was launched here ends, one that was joined goes on",
      do_quit },
};

/* A word and what it does, in lines of whole words that begin below each other. */
static void
put_help (const char *name, const char *help)
{
    size_t columns = terminal_width (), at = HELP_INDENT;
    size_t width = columns ? columns : USUAL_COLUMNS;
    out_printf ("  %-8s", name);
    while (*help) {
        size_t len = strcspn (help, " ");
        if (at + 1 + len > width && at > HELP_INDENT) {
            out_printf ("\n%*s", HELP_INDENT, "");
            at = HELP_INDENT;
        }
        out_printf (" %.*s", (int)len, help);
        at += 1 + len;
        help += len + strspn (help + len, " ");
    }
    out_puts ("\n");
}

static void
do_help (struct chat_talk *t)
{
    (void)t;
    for (size_t i = 0; i < ARRAY_LEN (commands); i++)
        put_help (commands[i].name, commands[i].help);
    put_help ("@PATH", "in a message: the text of this file goes along");
    put_help ("\\", "at the end of a line: the message goes on in the next");
    put_help ("Ctrl-C", "cancels the turn; again, or at the prompt, leaves");
}

/* False when the line is a message. */
static bool
is_command (struct chat_talk *t, const char *line)
{
    if (line[0] != '/')
        return false;
    size_t len = strcspn (line, " \t");
    for (size_t i = 0; i < ARRAY_LEN (commands); i++)
        if (strlen (commands[i].name) == len && strncmp (line, commands[i].name, len) == 0) {
            t->argument = line + len + strspn (line + len, " \t");
            commands[i].run (t);
            return true;
        }
    if (memchr (line + 1, '/', len - 1))
        return false; /* a path */
    _cleanup_free_ char *name = x_strndup (line, len);
    struct suggestion near = { NULL, 0 };
    for (size_t i = 0; i < ARRAY_LEN (commands); i++)
        suggestion_offer (&near, name, commands[i].name);
    diag_note ("there is no %s%s%s; /help lists what there is", name,
               near.word ? ", did you mean " : "", near.word ? near.word : "");
    return true;
}

/* --- messages --- */

/* Adds the text of the file a word names. False, with a note, when it cannot go along. */
static bool
add_mention (struct buf *message, const char *path)
{
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    struct stat st;
    if (stat (path, &st) < 0)
        return true; /* no file: the word stands as it was typed */
    if (! fs_read_regular (path, MENTION_LIMIT, &text, &err)) {
        diag_error (err);
        return false;
    }
    if (text.len && memchr (text.data, '\0', text.len)) {
        diag_note ("%s is no text, so the message was not sent", path);
        return false;
    }
    buf_printf (message, "\n\n%s:\n```\n", path);
    buf_append (message, text.data, text.len);
    buf_puts (message, text.len && text.data[text.len - 1] == '\n' ? "```" : "\n```");
    return true;
}

static bool
add_mentions (struct buf *message, const char *line)
{
    for (const char *at = line; *at;) {
        at += strspn (at, " \t\n");
        size_t len = strcspn (at, " \t\n");
        _cleanup_free_ char *path = len > 1 && *at == '@' ? x_strndup (at + 1, len - 1) : NULL;
        if (path && ! add_mention (message, path))
            return false;
        at += len;
    }
    return true;
}

static void
say (struct chat_talk *t, const struct buf *line)
{
    _cleanup_buf_ struct buf message = { 0 };
    if (! line->len || strspn (line->data, " \t\r\n") == line->len)
        return;
    if (t->is_terminal && is_command (t, line->data))
        return;
    buf_append (&message, line->data, line->len);
    if (! t->is_terminal)
        text_form_normalise (&message);
    if (! t->is_terminal || add_mentions (&message, line->data))
        chat_turn (t, message.data, message.len);
}

/* --- the conversation --- */

/* At the prompt: an open question is withdrawn; else the second Ctrl-C in a row leaves. */
static void
interrupted (struct chat_talk *t, bool *was_interrupted)
{
    bool leaves = chat_signal_leaves (t->signals_fd);
    out_puts ("\n");
    if (leaves || (*was_interrupted && ! t->question))
        t->is_over = true;
    else if (t->question)
        out_puts ("The task is cancelled.\n");
    else
        out_puts ("Ctrl-C again, Ctrl-D or /quit leaves.\n");
    chat_drop_question (t);
    *was_interrupted = true;
}

static enum line_end
next_line (struct chat_talk *t, struct line_editor *editor, struct line_reader *reader,
           struct buf *line)
{
    const char *prompt = t->asked ? "once, session, no, never> " : t->question ? "answer> " : "> ";
    if (editor)
        return line_editor_next (editor, prompt, line);
    if (t->is_terminal)
        out_puts (prompt);
    return line_reader_next (reader, line);
}

static void
converse (struct chat_talk *t)
{
    struct line_reader reader = { .fd = STDIN_FILENO, .signals_fd = t->signals_fd };
    struct line_editor *editor = open_editor (t);
    bool was_interrupted = false;
    while (! t->is_over) {
        _cleanup_buf_ struct buf line = { 0 };
        enum line_end end = next_line (t, editor, &reader, &line);
        if (end == LINE_OVER)
            break;
        if (end == LINE_INTERRUPTED) {
            interrupted (t, &was_interrupted);
            continue;
        }
        was_interrupted = false;
        say (t, &line);
    }
    if (t->is_terminal && ! t->is_over)
        out_puts ("\n");
    line_editor_free (editor);
    line_reader_clear (&reader);
}

/* Signals are read, before there is a second thread: what was launched ends before this does. */
static bool
take_signals (struct chat_talk *t, struct mur_error **err)
{
    sigset_t wanted;
    sigemptyset (&wanted);
    sigaddset (&wanted, SIGINT);
    sigaddset (&wanted, SIGTERM);
    sigaddset (&wanted, SIGHUP);
    if (sigprocmask (SIG_BLOCK, &wanted, NULL) == 0)
        t->signals_fd = signalfd (-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    return t->signals_fd >= 0 || mur_fail_errno (err, E_IO_003, "cannot take signals");
}

int
cmd_chat (const struct cli_args *args, struct mur_error **err)
{
    struct chat_session session = { .lifeline_fd = -1, .errors_fd = -1 };
    const char *context_id = cli_value (args, "--context");
    struct chat_talk t = { .session = &session,
                           .context_id = x_strdup (context_id ? context_id : id_new ("ctx_").text),
                           .signals_fd = -1,
                           .tally.fd = -1,
                           .is_terminal = isatty (STDIN_FILENO) && isatty (STDOUT_FILENO) };
    bool is_ok = take_signals (&t, err) && meet (args, &t, err);
    if (is_ok)
        token_tally_open (&t.tally, session.record->records_dir);
    if (is_ok && t.is_terminal)
        greet (&t);
    if (is_ok)
        converse (&t);
    if (is_ok && t.question && ! t.is_terminal)
        is_ok = mur_fail (err, E_RUN_040, "the input ended before the question was answered");
    chat_drop_question (&t);
    token_tally_clear (&t.tally);
    json_decref (t.calls);
    chat_session_clear (&session);
    if (t.signals_fd >= 0)
        close (t.signals_fd);
    free (t.context_id);
    return is_ok && (t.is_terminal || ! t.has_failed) ? CLI_OK : CLI_FAILED;
}
