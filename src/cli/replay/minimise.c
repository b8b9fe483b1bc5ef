/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/replay/minimise.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/json.h"
#include "cli/replay/minimise_files.h"
#include "cli/replay/minimise_others.h"
#include "cli/run/replay_launch.h"
#include "fs/paths.h"
#include "replay/record/tape_read.h"
#include "session/eval.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK_SECS 60

struct minimiser {
    const struct minimise_request *q;
    struct start_files files;
    struct other_parts others;
    uint64_t runs;
    char *check_said; /* by the check of the last run, a line of it */
};

static volatile sig_atomic_t was_interrupted;

static void
on_interrupt (int signal)
{
    (void)signal;
    was_interrupted = 1;
}

/* --- one run, in a process of its own --- */

struct trial {
    const struct minimise_request *q;
    const char *start;
    const struct other_parts *others;
    int report_fd;
};

static void
tell (const struct trial *t, const char *word)
{
    (void)fd_write_all (t->report_fd, word, strlen (word));
    (void)fd_write_all (t->report_fd, "\n", 1);
}

static bool
on_staged (void *ctx, struct session *s, struct mur_error **err)
{
    const struct trial *t = ctx;
    char digest[SHA256_HEX_LEN + 1];
    int fd = open (t->start, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct fs_root *root = fd < 0 ? NULL : fs_root_new (fd, t->start, NULL, false);
    bool is_filled = root && session_fill_work (s, root, digest, err);
    if (root)
        fs_root_free (root);
    tell (t, session_records_dir (s));
    return is_filled || *err || mur_fail_errno (err, E_IO_003, "cannot read %s", t->start);
}

static void
on_ended (void *ctx, struct session *s)
{
    const struct trial *t = ctx;
    const struct check_request check = { t->q->check, NULL, CHECK_SECS };
    if (! session_was_launched (s))
        return;
    _cleanup_json_ json_t *report = session_check (s, &check);
    const char *error = json_get_string (report, "error");
    tell (t, json_get_string (report, "result"));
    if (! error)
        error = json_get_string (report, "output_tail");
    if (error)
        tell (t, error);
}

static _Noreturn void
be_trial (struct trial *t, pid_t parent)
{
    struct play_modes modes = {
        .model = PLAY_SERVED, .tools = PLAY_RERUN, .hooks = PLAY_RERUN, .goes_on = true
    };
    const struct replay_steps steps = { .staged = on_staged, .ended = on_ended, .ctx = t };
    struct run_replay run = t->q->run;
    _cleanup_error_ struct mur_error *err = NULL;
    char *id = NULL;
    prctl (PR_SET_PDEATHSIG, SIGTERM);
    setpgid (0, 0); /* an interrupt of the terminal is the parent's to hear */
    int nowhere = open ("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) {
        dup2 (nowhere, STDOUT_FILENO);
        dup2 (nowhere, STDERR_FILENO);
    }
    t->q->record->tape->tree_count = 0; /* it begins with what is given, and may leave anything */
    other_parts_apply (t->others, t->q->record, &run, &modes);
    run.player = player_new (t->q->record, &modes);
    if (getppid () == parent)
        (void)replay_launch (t->q->table, &run, &steps, &id, &err);
    _exit (0);
}

/* "<records folder>\n<result of the check>\n<what it said>\n", as far as it came. */
static bool
judge_report (char *report, char **said)
{
    char *rest = report, *records = strsep (&rest, "\n"), *result = strsep (&rest, "\n");
    char *line = strsep (&rest, "\n");
    free (*said);
    *said = line && line[0] ? x_strdup (line) : NULL;
    if (records && records[0] == '/')
        fs_remove_tree_at (AT_FDCWD, records, NULL);
    return str_eq (result, "pass");
}

static bool
run_trial (struct minimiser *m, const char *start)
{
    int report[2];
    pid_t parent = getpid ();
    if (pipe2 (report, O_CLOEXEC) != 0)
        return false;
    struct trial t = { m->q, start, &m->others, report[1] };
    pid_t pid = fork ();
    if (pid == 0)
        be_trial (&t, parent);
    close (report[1]);
    _cleanup_buf_ struct buf text = { 0 };
    if (pid > 0)
        (void)fd_read_all (report[0], (size_t)1 << 20, &text);
    close (report[0]);
    while (pid > 0 && waitpid (pid, NULL, 0) < 0 && errno == EINTR)
        ;
    buf_putc (&text, '\0');
    return judge_report (text.data, &m->check_said);
}

/* What is marked as kept still fails. */
static bool
still_fails (struct minimiser *m)
{
    char start[] = "/tmp/murmur-start-XXXXXX";
    if (! mkdtemp (start))
        return false;
    m->runs++;
    bool fails = start_files_write (&m->files, start, NULL) && run_trial (m, start);
    fs_remove_tree_at (AT_FDCWD, start, NULL);
    return fails;
}

/* --- leaving away --- */

/* What may be left away: flags that are all set at the beginning. */
struct parts {
    bool **flags;
    size_t len, cap;
};

static bool
may_go_on (const struct minimiser *m)
{
    return ! was_interrupted && m->runs < m->q->max_runs;
}

/* Keeps of <parts> those in [from, to), or all but those. True: it still fails so, and <parts> is
 * that by now; else nothing is changed. */
static bool
try_part (struct minimiser *m, struct parts *parts, size_t from, size_t to, bool is_complement)
{
    for (size_t i = 0; i < parts->len; i++)
        *parts->flags[i] = (i >= from && i < to) != is_complement;
    bool fails = still_fails (m);
    size_t kept = 0;
    for (size_t i = 0; ! fails && i < parts->len; i++)
        *parts->flags[i] = true;
    for (size_t i = 0; fails && i < parts->len; i++)
        if (*parts->flags[i])
            parts->flags[kept++] = parts->flags[i];
    if (fails)
        parts->len = kept;
    return fails;
}

/* One round at a grain: true when something could be left away. */
static bool
try_round (struct minimiser *m, struct parts *parts, size_t grain, bool is_complement)
{
    size_t len = parts->len, size = (len + grain - 1) / grain;
    for (size_t from = 0; from < len && may_go_on (m); from += size)
        if (try_part (m, parts, from, from + size < len ? from + size : len, is_complement))
            return true;
    return false;
}

/* Zeller's ddmin: halves first, then finer, each part alone and all but it. */
static void
reduce (struct minimiser *m, struct parts *parts)
{
    for (size_t grain = 2; parts->len >= 2 && may_go_on (m);) {
        if (try_round (m, parts, grain, false))
            grain = 2;
        else if (grain > 2 && try_round (m, parts, grain, true))
            grain = grain > 3 ? grain - 1 : 2;
        else if (grain >= parts->len)
            break;
        else
            grain = grain * 2 < parts->len ? grain * 2 : parts->len;
    }
    if (parts->len == 1 && may_go_on (m))
        try_part (m, parts, 0, 0, false);
}

static void
add_part (struct parts *parts, bool *flag)
{
    x_grow (parts->flags, parts->len, parts->cap);
    parts->flags[parts->len++] = flag;
}

static void
reduce_files (struct minimiser *m)
{
    struct parts parts = { 0 };
    for (size_t i = 0; i < m->files.len; i++)
        add_part (&parts, &m->files.items[i].is_kept);
    reduce (m, &parts);
    free (parts.flags);
}

static void
reduce_lines (struct minimiser *m)
{
    for (size_t i = 0; i < m->files.len && may_go_on (m); i++) {
        struct start_file *f = &m->files.items[i];
        struct parts parts = { 0 };
        for (size_t k = 0; f->is_kept && k < f->line_count; k++)
            add_part (&parts, &f->keeps[k]);
        reduce (m, &parts);
        free (parts.flags);
    }
}

/* Of all that is no file: as it lies there, whatever it is. */
static void
reduce_others (struct minimiser *m)
{
    for (int kind = 0; kind < OTHER_KINDS; kind++) {
        const struct other_list *list = &m->others.of[kind];
        struct parts parts = { 0 };
        for (size_t i = 0; i < list->len; i++)
            add_part (&parts, &list->items[i].is_kept);
        reduce (m, &parts);
        free (parts.flags);
    }
}

/* --- telling --- */

static size_t
kept_files (const struct minimiser *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->files.len; i++)
        kept += m->files.items[i].is_kept;
    return kept;
}

static void
print_result (const struct minimiser *m, size_t lines_before)
{
    const struct minimise_request *q = m->q;
    size_t lines = start_files_lines (&m->files);
    bool is_whole = may_go_on (m);
    if (q->is_json) {
        _cleanup_json_ json_t *o = json_object ();
        json_t *kept = json_array ();
        json_set_string (o, "session_id", q->record->session_id);
        json_set_u64 (o, "runs", m->runs);
        json_set_bool (o, "complete", is_whole);
        json_object_set_new (o, "files",
                             json_pack ("{s:I,s:I}", "before", (json_int_t)m->files.len, "after",
                                        (json_int_t)kept_files (m)));
        json_object_set_new (o, "lines",
                             json_pack ("{s:I,s:I}", "before", (json_int_t)lines_before, "after",
                                        (json_int_t)lines));
        for (size_t i = 0; i < m->files.len; i++)
            if (m->files.items[i].is_kept)
                json_array_append_new (kept, json_string (m->files.items[i].path));
        json_object_set_new (o, "kept", kept);
        other_parts_json (&m->others, o);
        json_set_string (o, "dir", q->into);
        _cleanup_free_ char *text = json_pretty (o, JSON_TEXT_ORDERED);
        out_printf ("%s\n", text);
        return;
    }
    _cleanup_buf_ struct buf others = { 0 };
    other_parts_text (&m->others, &others);
    out_printf ("%zu of %zu files, %zu of %zu lines%s still fail (%llu runs%s): %s\n",
                kept_files (m), m->files.len, lines, lines_before, others.data ? others.data : "",
                (unsigned long long)m->runs, is_whole ? "" : ", not finished", q->into);
}

static bool
read_start (struct minimiser *m, struct mur_error **err)
{
    const struct record *r = m->q->record;
    const struct rec_tree *tree = r->tape ? record_tree_before (r, 0, 0) : NULL;
    if (! tree) {
        mur_fail (err, E_RPL_001,
                  "%s cannot be minimised: the files it began with are not on record",
                  r->session_id);
        return mur_hint (err, "record with trace.capture: replay");
    }
    other_parts_read (r, &m->q->run, &m->others);
    return start_files_read (r, tree->sha, &m->files, err);
}

static bool
run (struct minimiser *m, struct mur_error **err)
{
    const struct minimise_request *q = m->q;
    struct sigaction action = { .sa_handler = on_interrupt };
    if (! read_start (m, err))
        return false;
    if (mkdir (q->into, 0777) != 0) {
        mur_fail_errno (err, E_IO_003, "cannot make %s", q->into);
        return mur_hint (err, "name a folder that is not there yet: --work DIR");
    }
    size_t lines = start_files_lines (&m->files);
    if (! still_fails (m)) {
        rmdir (q->into);
        mur_fail (err, E_RPL_003, "with everything in place, \"%s\" does not exit with 0%s%s",
                  q->check, m->check_said ? ": " : "", m->check_said ? m->check_said : "");
        return mur_hint (err, "the check says that the failure is there: it exits with 0 then, and "
                              "it runs in the session's own walls: capabilities.shell.allow lists "
                              "its program");
    }
    sigaction (SIGINT, &action, NULL);
    reduce_files (m);
    reduce_lines (m);
    reduce_others (m);
    print_result (m, lines);
    return start_files_write (&m->files, q->into, err);
}

bool
minimise (const struct minimise_request *q, struct mur_error **err)
{
    struct minimiser m = { .q = q };
    bool is_good = run (&m, err);
    start_files_clear (&m.files);
    other_parts_clear (&m.others);
    free (m.check_said);
    return is_good;
}
