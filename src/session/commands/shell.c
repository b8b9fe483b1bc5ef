/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/shell.h"

#include "base/alloc.h"
#include "base/text.h"
#include "base/words.h"
#include "sandbox/run/command.h"
#include "sandbox/run/command_log.h"
#include "session/commands/background.h"
#include "session/commands/confine.h"
#include "session/commands/limit_told.h"
#include "session/commands/processes_internal.h"
#include "session/commands/recipe_text.h"
#include "session/commands/refusals_told.h"
#include "session/commands/shell_signs.h"
#include "session/state/command_line.h"
#include "session/state/loop_lock.h"
#include "session/state/refused.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>
#include <strings.h>

const char *
shell_parameters (const char *name)
{
    static const char script[] =
        "{\"properties\":{\"command\":{\"description\":\"The script.\",\"type\":\"string\"}},"
        "\"required\":[\"command\"],\"type\":\"object\"}";
    static const char arguments[] =
        "{\"properties\":{\"command\":{\"description\":\"The arguments, without the program's name; "
        "left out when there are none. Split into words as a POSIX shell does, nothing "
        "expanded.\",\"type\":\"string\"}},\"type\":\"object\"}";
    return command_line_is_interpreter (name) ? script : arguments;
}

const char *
shell_description (struct session *s, const char *name)
{
    return command_line_is_interpreter (name)
               ? arena_printf (s->arena,
                               "Runs a %s script in the work folder and returns its exit code, "
                               "standard output and standard error.",
                               name)
               : arena_printf (s->arena,
                               "Runs %s with the given arguments in the work folder and returns "
                               "its exit code, standard output and standard error.",
                               name);
}

bool
shell_is_offered (const struct session *s, const char *name)
{
    const struct staged_artifact *a = session_artifact (s, name);
    bool is_listed = false;
    for (size_t i = 0; i < s->policy->commands.allow.len && ! is_listed; i++)
        is_listed = str_eq (s->policy->commands.allow.items[i], name);
    return is_listed && ! (a && a->role == ROLE_TOOL);
}

/* --- the command of a call --- */

/* A member the model set beside or in place of "command", or NULL: whose words would be lost. */
static const char *
stray_member (const json_t *input)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)input, key, value) if (! str_eq (key, "command") &&
                                                          ! json_is_null (value) &&
                                                          ! (json_is_array (value) &&
                                                             ! json_array_size (value))) return key;
    return NULL;
}

/* The command of a call, trimmed: a script for an interpreter, arguments for any other program,
 * which may have none. NULL: the input is neither. Owned. */
static char *
command_of (const char *name, const json_t *input)
{
    const json_t *member = json_get_set (input, "command");
    bool is_script = command_line_is_interpreter (name);
    if (! json_is_object (input) || (member && ! json_is_string (member)) ||
        (! member && stray_member (input)))
        return NULL;
    const char *text = json_get_string (input, "command");
    char *command = text_trimmed (text ? text : "");
    if (*command || ! is_script)
        return command;
    free (command);
    return NULL;
}

/* The same with a refusal in the runtime's own words. */
static char *
read_command (const char *name, const json_t *input, struct call_outcome *out)
{
    char *command = command_of (name, input);
    _cleanup_strv_ struct strv words = { 0 };
    if (command && ! command_line_is_interpreter (name) && ! words_split (command, &words)) {
        free (command);
        outcome_set_error (out, "%s: %s", name, words_unclosed);
        return NULL;
    }
    if (command)
        return command;
    const char *stray = json_get_set (input, "command") ? NULL : stray_member (input);
    _cleanup_free_ char *more = stray ? x_asprintf (", not \"%s\"", stray) : x_strdup ("");
    if (command_line_is_interpreter (name))
        outcome_set_error (out, "%s needs a JSON object with a non-blank string \"command\"%s",
                           name, more);
    else
        outcome_set_error (
            out, "%s needs a JSON object whose \"command\" is text, or is left out%s", name, more);
    return NULL;
}

/* --- what the model reads --- */

static void
append_notes (struct buf *notes, const struct command_result *r, const char *log)
{
    if (log)
        buf_printf (notes, "\nThe output was cut; all of it is in $MURMUR_RECORDS_DIR/%s", log);
    if (r->leftover == LEFTOVER_KILLED)
        buf_puts (notes,
                  "\nProcesses the command left behind still held its output and were killed.");
    if (r->leftover == LEFTOVER_ESCAPED)
        buf_puts (notes, "\nA process the command left behind escaped its group and still runs; it "
                         "ends with the session.");
    if (r->resource_limit)
        buf_printf (notes, "\nresource_limit: %s — capabilities.resources.%s stopped the command",
                    r->resource_limit, r->resource_limit);
}

static bool
is_cut (const struct command_result *r)
{
    return r->out.total_bytes > COMMAND_KEPT_BYTES || r->err.total_bytes > COMMAND_KEPT_BYTES;
}

/* A pipe or a list that no shell reads is a mistake the program cannot name. */
static void
add_shell_sign (const struct session *s, const char *name, const char *command, int exit_code,
                struct buf *text)
{
    _cleanup_free_ char *sign = ! command || command_line_is_interpreter (name)
                                    ? NULL
                                    : shell_sign_of (command, exit_code != 0);
    const char *shell = NULL;
    for (size_t i = 0; sign && i < s->policy->commands.allow.len && ! shell; i++)
        if (command_line_is_interpreter (s->policy->commands.allow.items[i]))
            shell = s->policy->commands.allow.items[i];
    if (sign && shell)
        buf_printf (text,
                    "\nNo shell read this command: %s went to %s as a plain word. Use the tool %s "
                    "for pipes, lists, redirections, patterns and variables.",
                    sign, name, shell);
    else if (sign)
        buf_printf (
            text,
            "\nNo shell read this command: %s went to %s as a plain word. Call each program "
            "by itself; this capsule has no shell (shell.allow: [bash]).",
            sign, name);
}

/* What the walls refused it, told to the model and kept for the trace. */
static void
add_refusals (struct session *s, const char *name, const struct command_result *r,
              struct call_outcome *out)
{
    _cleanup_free_ char *said =
        x_strndup (r->out.kept.data ? r->out.kept.data : "", r->out.kept.len);
    _cleanup_free_ char *errors =
        x_strndup (r->err.kept.data ? r->err.kept.data : "", r->err.kept.len);
    const struct refused_command told = { name, out->shell.command, said, errors, r };
    refusals_tell (s, &told, &out->text, &out->shell.refusals);
}

static void
set_finished (struct session *s, const char *name, const char *line, struct command *c,
              struct call_outcome *out)
{
    struct command_result r = command_look (c);
    _cleanup_buf_ struct buf text = { 0 }, notes = { 0 };
    _cleanup_free_ char *log = is_cut (&r) ? command_write_log (c, NULL) : NULL;
    buf_printf (&text, "$ %s\nExit code: %d", line, r.exit_code);
    command_append_stream (&text, "Stdout", &r.out);
    command_append_stream (&text, "Stderr", &r.err);
    outcome_set_result (out, name, TOOL_PASSED, text.data, text.len);
    append_notes (&notes, &r, log);
    if (notes.len)
        buf_append (&out->text, notes.data, notes.len);
    add_shell_sign (s, name, out->shell.command, r.exit_code, &out->text);
    add_refusals (s, name, &r, out);
    out->runtime_error = limit_told (out->shell.binary, &r);
    out->is_truncated = is_cut (&r);
    out->has_shell = true;
    if (s->rooms.hooks) {
        buf_append (&out->shell.out, r.out.kept.data ? r.out.kept.data : "", r.out.kept.len);
        buf_append (&out->shell.err, r.err.kept.data ? r.err.kept.data : "", r.err.kept.len);
    }
    out->shell.exit_code = r.exit_code;
    out->shell.stdout_bytes = r.out.total_bytes;
    out->shell.stderr_bytes = r.err.total_bytes;
    out->shell.duration_ms = r.duration_ms;
    out->shell.resource_limit = r.resource_limit;
}

/* --- one call --- */

static uint64_t
grace_ms (const struct session *s)
{
    return s->policy->lifecycle.shell_grace_secs.value * 1000;
}

static const struct exec_name *
find_program (const struct session *s, const char *name)
{
    const struct exec_allowlist *allowed =
        confinement_allowlist (s->rooms.processes->confined->confinement);
    return exec_allowlist_find (allowed, name);
}

/* False: a quote is not closed. */
static bool
fill_argv (const char *name, const char *command, struct strv *argv)
{
    strv_push (argv, name);
    if (command_line_is_interpreter (name)) {
        strv_push (argv, "-c");
        strv_push (argv, command);
        return true;
    }
    return words_split (command, argv);
}

static char *
named_recipe (const struct session *s, const struct strv *argv, const char *script)
{
    return recipe_text (fs_root_fd (s->places.work), s->places.work_path, argv, script);
}

void
shell_request_clear (struct shell_request *r)
{
    free (r->binary);
    free (r->command);
    free (r->recipe);
    strv_free (&r->argv);
}

bool
shell_read (struct session *s, const char *name, const json_t *input, struct shell_request *out)
{
    if (! s->rooms.processes->confined || ! shell_is_offered (s, name) ||
        ! (out->command = command_of (name, input)))
        return false;
    const struct exec_name *program = find_program (s, name);
    out->binary = x_strdup (program && program->path ? program->path : name);
    out->script = command_line_is_interpreter (name) ? out->command : NULL;
    if (! fill_argv (name, out->command, &out->argv))
        return false;
    out->recipe = named_recipe (s, &out->argv, out->script);
    return true;
}

struct command *
shell_start (struct session *s, const struct call *call, const char *command,
             struct call_outcome *out, struct mur_error **err)
{
    const char *name = call->name;
    _cleanup_free_ char *line = command_line_text (name, command);
    const struct exec_name *program = find_program (s, name);
    out->shell.binary = x_strdup (program && program->path ? program->path : name);
    out->shell.command = x_strdup (command);
    if (! program || ! program->path)
        return mur_fail (err, E_IO_001, "%s is not on PATH", name), NULL;
    if (! fill_argv (name, command, &out->shell.argv))
        return mur_fail (err, E_IO_003, "%s", words_unclosed), NULL;
    out->shell.script = command_line_is_interpreter (name) ? out->shell.command : NULL;
    if (s->rooms.hooks)
        out->shell.recipe = named_recipe (s, &out->shell.argv, out->shell.script);
    const struct command_start how = { .path = program->unlinked,
                                       .argv = out->shell.argv.items,
                                       .env = s->rooms.processes->confined->env.items,
                                       .nest = call->nest,
                                       .line = line };
    return command_start (s->rooms.processes->confined->commands, &how, err);
}

struct command *
shell_start_line (struct session *s, const char *line, struct mur_error **err)
{
    _cleanup_strv_ struct strv words = { 0 };
    if (! words_split (line, &words))
        return mur_fail (err, E_IO_003, "%s", words_unclosed), NULL;
    if (! words.len)
        return mur_fail (err, E_IO_003, "the command line is blank"), NULL;
    if (! confine_check_size (s, err))
        return NULL;
    const struct exec_name *program = find_program (s, words.items[0]);
    if (! program || ! program->path)
        return mur_fail (err, E_IO_001, "%s is not on PATH", words.items[0]), NULL;
    const struct command_start how = { .path = program->unlinked,
                                       .argv = words.items,
                                       .env = s->rooms.processes->confined->env.items,
                                       .line = line };
    return command_start (s->rooms.processes->confined->commands, &how, err);
}

static void
shell_run (struct session *s, struct running_task *task, const struct call *call,
           const char *command, struct call_outcome *out)
{
    const char *name = call->name;
    struct mur_error *err = NULL;
    _cleanup_free_ char *line = command_line_text (name, command);
    _cleanup_ (command_unrefp) struct command *c = shell_start (s, call, command, out, &err);
    if (! c) {
        /* Nothing may run in a root that could not be composed: the session ends. */
        if (err->code == E_RUN_014)
            task->fatal = err;
        _cleanup_free_ char *text = x_asprintf ("$ %s\nDid not start: %s", line, err->message);
        outcome_set_result (out, name, TOOL_ERROR, text, strlen (text));
        if (err->code != E_RUN_014)
            mur_error_free (err);
        return;
    }
    if (call->is_plan_step ||
        call->is_served) { /* ended with its step, never moved to the background */
        loop_lock_release (&s->loop_lock);
        bool has_ended = command_wait (c, -1, task->cancel);
        loop_lock_take (&s->loop_lock);
        if (has_ended)
            set_finished (s, name, line, c, out);
        else
            command_kill (c);
    } else {
        struct background *b = background_begin (s, task, name, line, c, out);
        loop_lock_release (&s->loop_lock);
        bool has_ended =
            command_wait (c, (int64_t)grace_ms (s), call->abandon ? call->abandon : task->cancel);
        loop_lock_take (&s->loop_lock);
        if (has_ended) {
            background_done (s, b);
            set_finished (s, name, line, c, out);
        } else {
            background_take (s, b, name, grace_ms (s), out);
        }
    }
    out->is_canceled = cancel_is_raised (task->cancel);
}

void
shell_call (struct session *s, struct running_task *task, const struct call *call,
            struct call_outcome *out)
{
    struct mur_error *err = NULL;
    const char *name = call->name;
    _cleanup_free_ char *command = read_command (name, call->input, out);
    if (! command)
        return;
    if (cancel_is_raised (task->cancel)) {
        outcome_set_error (out, "the task was cancelled: %s was not started", name);
        out->is_canceled = true;
    } else if (! confine_check_size (s, &err)) {
        outcome_set_error (out, "%s", err->message);
        mur_error_free (err);
    } else {
        shell_run (s, task, call, command, out);
    }
}
