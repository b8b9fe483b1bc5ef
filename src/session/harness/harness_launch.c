/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/harness_launch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "door/tasks/tasks.h"
#include "fs/paths.h"
#include "fs/replace.h"
#include "fs/root.h"
#include "replay/record/tape_read.h"
#include "sandbox/programs/package_version.h"
#include "session/guests/guest_env.h"
#include "session/harness/harness_gateway.h"
#include "session/harness/harness_memory.h"
#include "session/harness/harness_tape.h"
#include "session/harness/harness_version.h"
#include "session/harness/harness_walls.h"
#include "session/harness/stage_harness.h"
#include "session/hooks/hook_task.h"
#include "session/state/loop_lock.h"
#include "session/state/session.h"
#include "session/task/restart.h"
#include "session/task/task_text.h"
#include "session/toolbox/system_prompt.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROBE_MS   10000
#define PROBE_MAX  65536
#define ENDING_MS  500
#define FILES_MARK "{files_dir}"

/* --- environment --- */

static const char *const account_names[] = { "LOGNAME", "USER" };

/* <plan> NULL: of the version probe. */
static void build_env (const struct session *s, const struct process_plan *plan,
                       const char *files_dir, struct strv *env);

static char *
with_files_dir (const char *text, const char *files_dir)
{
    struct buf out = { 0 };
    for (const char *mark; (mark = strstr (text, FILES_MARK));) {
        buf_append (&out, text, (size_t)(mark - text));
        buf_puts (&out, files_dir);
        text = mark + strlen (FILES_MARK);
    }
    buf_puts (&out, text);
    return buf_steal (&out);
}

static void
put_path_front (const char *front, struct strv *env)
{
    for (size_t i = 0; front && i < env->len; i++) {
        if (! str_starts (env->items[i], "PATH="))
            continue;
        char *path = x_asprintf ("PATH=%s%s", front, env->items[i] + strlen ("PATH="));
        free (env->items[i]);
        env->items[i] = path;
    }
}

/* A shell it may execute: whichever the host has besides, a harness would take and fail with. */
static void
add_shell (const struct session *s, struct strv *env)
{
    static const char *const names[] = { "bash", "zsh", "sh" };
    const struct exec_allowlist *allowed = confinement_allowlist (confine_confinement (s));
    for (size_t i = 0; i < ARRAY_LEN (names); i++) {
        const struct exec_name *shell = exec_allowlist_find (allowed, names[i]);
        if (! shell || ! shell->path)
            continue;
        guest_env_set (env, "SHELL", shell->path);
        return;
    }
}

static void
build_env (const struct session *s, const struct process_plan *plan, const char *files_dir,
           struct strv *env)
{
    const struct strv *base = harness_is_confined (s) ? confine_env (s) : NULL;
    for (size_t i = 0; base && i < base->len; i++)
        strv_push (env, base->items[i]);
    put_path_front (s->rooms.harness->path_front, env);
    if (base)
        add_shell (s, env);
    guest_env_add_allowed (s->policy, env);
    for (size_t i = 0; plan && i < plan->env_len; i++) {
        _cleanup_free_ char *value = with_files_dir (plan->env[i].value, files_dir);
        guest_env_set (env, plan->env[i].name, value);
    }
    for (size_t i = 0; i < ARRAY_LEN (account_names); i++)
        guest_env_set (env, account_names[i], getenv (account_names[i]));
    guest_env_set (env, "MURMUR_RUNTIME_DIR", s->places.dirs.runtime_path);
    guest_env_set (env, "MURMUR_RECORDS_DIR", s->places.dirs.records_path);
    strv_sort (env);
    if (! env->items) { /* an empty environment is one too */
        strv_push (env, "");
        env->items[0][0] = '\0';
    }
}

/* --- the version --- */

/* The first line that is not blank. Owned, or NULL. */
static char *
first_line (const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t end = at;
        while (end < len && text[end] != '\n')
            end++;
        size_t from = at, to = end;
        while (from < to && strchr (" \t\r\v\f", text[from]))
            from++;
        while (to > from && strchr (" \t\r\v\f", text[to - 1]))
            to--;
        if (to > from)
            return x_strndup (text + from, to - from);
        at = end + 1;
    }
    return NULL;
}

/* What the program says when it is asked; *is_plain: it said a version, and ended well. */
static char *
ask_version (struct harness_run *run, bool *is_plain)
{
    struct session *s = run->session;
    const struct text_list *args = &s->rooms.harness->is.version_args;
    const char **argv = arena_new_array (run->arena, const char *, args->len + 2);
    _cleanup_strv_ struct strv env = { 0 };
    struct harness_child c;
    argv[0] = s->rooms.harness->binary;
    for (size_t i = 0; i < args->len; i++)
        argv[i + 1] = args->items[i];
    build_env (s, NULL, NULL, &env);
    if (! harness_child_start (s, (char *const *)(uintptr_t)argv, env.items, &c, NULL)) {
        harness_child_clear (s, &c);
        return NULL;
    }
    harness_child_end_input (&c);
    uint64_t until_ms = clock_monotonic_ms () + PROBE_MS;
    loop_lock_release (&s->loop_lock);
    for (uint64_t now = 0; (now = clock_monotonic_ms ()) < until_ms && c.output.len < PROBE_MAX &&
                           ! cancel_is_raised (run->task->cancel) &&
                           (c.out_fd >= 0 || c.err_fd >= 0) &&
                           ! (c.has_exited && now + 9000 < until_ms);) {
        uint64_t step = c.has_exited ? 100 : until_ms - now;
        harness_child_pump (&c, -1, step < 250 ? step : 250);
    }
    /* Its output ends a moment before it does. */
    bool has_ended = fd_wait (c.process.pidfd, POLLIN, ENDING_MS) == 1;
    loop_lock_take (&s->loop_lock);
    if (has_ended)
        harness_child_reap (s, &c);
    char *line = first_line (c.output.data ? c.output.data : "", c.output.len);
    if (! line)
        line = first_line (c.errors.data ? c.errors.data : "", c.errors.len);
    *is_plain = has_ended && c.status == 0 && line && version_line_has_one (line);
    harness_child_clear (s, &c);
    return line;
}

static char *
probe_version (struct harness_run *run)
{
    const struct harness *h = run->session->rooms.harness;
    _cleanup_free_ char *mark = harness_version_mark (h);
    char *known = harness_version_known (h, mark);
    bool is_plain = false;
    if (known)
        return known;
    char *line = ask_version (run, &is_plain);
    char *of_package = line && version_line_has_one (line) ? NULL : package_version_of (h->binary);
    if (of_package) {
        free (line);
        line = of_package;
    }
    if (is_plain || of_package)
        harness_version_keep (h, mark, line);
    return line;
}

/* One word of the line is a tested version, a leading v aside. */
static bool
is_tested (const struct text_list *tested, const char *line)
{
    _cleanup_free_ char *words = x_strdup (line);
    char *rest = words;
    for (char *word; (word = strtok_r (rest, " \t", &rest));) {
        const char *bare = word[0] == 'v' ? word + 1 : word;
        for (size_t i = 0; i < tested->len; i++)
            if (strcmp (tested->items[i], word) == 0 || strcmp (tested->items[i], bare) == 0)
                return true;
    }
    return false;
}

static void
warn_version (struct harness_run *run, const char *line)
{
    struct harness *h = run->session->rooms.harness;
    _cleanup_free_ char *text =
        line ? x_asprintf ("%s says \"%s\", a version driver %s was not tested with", h->is.harness,
                           line, h->driver->full_name)
             : x_asprintf ("the version of %s could not be read", h->is.harness);
    TRACE (run->session->trace, NULL, harness_warning, .task_id = run->task->task->id,
           .code = diag_code_name (W_RUN_002), .message = text);
    if (! h->warned.version)
        diag_warn (DIAG_RUNTIME, W_RUN_002, "%s", text);
    h->warned.version = true;
}

/* --- the prompt and the session --- */

static bool
read_prompt (struct harness_run *run, struct buf *out, struct mur_error **err)
{
    struct session *s = run->session;
    struct running_task *t = run->task;
    if (t->onward.is_continuing && t->onward.continuation_text) {
        buf_puts (out, t->onward.continuation_text);
        return true;
    }
    _cleanup_buf_ struct buf text = { 0 };
    if (! task_text_read (s, &text, err))
        return false;
    hooks_attempt_begin (s, text.data, text.len);
    _cleanup_free_ char *source = x_asprintf ("task:%s", task_origin_name (t->task->origin));
    restart_append_task (s, t, source, text.data, text.len, out);
    return true;
}

bool
harness_is_threaded (const struct session *s)
{
    return s->policy->lifecycle.conversation.value == CONVERSATION_THREADED ||
           s->asked->resume.mode != RESUME_NONE;
}

static void
harness_forget (struct harness_run *run)
{
    struct session *s = run->session;
    struct running_task *t = run->task;
    if (! t->task->forgets_session || t->onward.is_continuing || t->harness.has_forgotten)
        return;
    t->harness.has_forgotten = true;
    _cleanup_free_ char *dropped =
        harness_memory_forget (s->rooms.harness->memory, t->task->context_id);
    if (dropped)
        TRACE (s->trace, NULL, harness_session_forgotten, .task_id = t->task->id,
               .context_id = t->task->context_id, .harness_session_id = dropped,
               .requested_by = str_eq (t->task->source, "a2a") ? "a2a" : "cli");
}

static void
plan_session (struct harness_run *run)
{
    struct running_task *t = run->task;
    _cleanup_free_ char *kept = NULL;
    uint64_t used[USAGE_MEMBERS] = { 0 };
    if (t->onward.is_continuing && t->harness.session) {
        kept = x_strdup (t->harness.session);
        memcpy (used, t->harness.used, sizeof used);
    } else if (harness_is_threaded (run->session))
        kept = harness_memory_find (run->session->rooms.harness->memory, t->task->context_id, used);
    run->is_resume = kept && strlen (kept) < sizeof run->session_id;
    if (run->is_resume)
        snprintf (run->session_id, sizeof run->session_id, "%s", kept);
    else
        uuid_text (run->session_id);
    if (run->is_resume && run->session->rooms.harness->counts_thread)
        memcpy (run->attributed.value, used, sizeof used);
}

/* --- the plan --- */

static bool
ask_plan (struct harness_run *run, const char *version, const struct buf *prompt,
          struct mur_error **err)
{
    struct session *s = run->session;
    _cleanup_free_ char *system = system_text_process (s), *config = harness_driver_config (s);
    _cleanup_strv_ struct strv names = { 0 };
    for (size_t i = 0; i < s->kit.tool_count; i++)
        strv_push (&names, s->kit.tools[i].name);
    const struct process_bridge bridge = {
        BRIDGE_NAME, run->bridge ? bridge_url (run->bridge) : PLAYED_BRIDGE_URL,
        run->bridge ? bridge_token (run->bridge) : PLAYED_TOKEN, names.items
    };
    bool has_bridge = run->bridge || (run->log.then && s->kit.tool_count);
    const struct process_request request = {
        .model = s->manifest->inference->model,
        .system_prompt = system,
        .config = config,
        .bridge = has_bridge ? &bridge : NULL,
        .session_id = run->session_id,
        .is_resume = run->is_resume,
        .harness_version = version,
        .task = prompt->data ? prompt->data : "",
        .task_len = prompt->len,
    };
    struct mur_error *caught = NULL;
    if (host_process_launch (run->driver, &request, run->arena, &run->plan, &caught))
        return true;
    mur_fail (err, E_RUN_034, "driver %s: %s", s->rooms.harness->driver->full_name,
              caught->message);
    mur_error_free (caught);
    return false;
}

static bool
refuse_plan (const struct harness_run *run, const char *what, const char *name,
             struct mur_error **err)
{
    return mur_fail (err, E_RUN_034, "driver %s: launch: %s: \"%s\"",
                     run->session->rooms.harness->driver->full_name, what, name);
}

static bool
is_plain_name (const char *name)
{
    return name[0] && ! strchr (name, '/') && strcmp (name, ".") != 0 && strcmp (name, "..") != 0 &&
           strlen (name) < 200;
}

static bool
check_plan (const struct harness_run *run, struct mur_error **err)
{
    const struct process_plan *p = &run->plan;
    for (size_t i = 0; i < p->file_count; i++) {
        if (! is_plain_name (p->files[i].name))
            return refuse_plan (run, "a file's name is not one plain name", p->files[i].name, err);
        for (size_t k = 0; k < i; k++)
            if (strcmp (p->files[i].name, p->files[k].name) == 0)
                return refuse_plan (run, "two files have one name", p->files[i].name, err);
    }
    for (size_t i = 0; i < p->env_len; i++)
        if (! p->env[i].name[0] || strchr (p->env[i].name, '='))
            return refuse_plan (run, "a variable's name is not one", p->env[i].name, err);
    return true;
}

/* --- the files --- */

/* Where a run's directory is made: inside the walls its home, which it reaches; else the session's
 * own folder. */
static bool
open_files_parent (struct harness_run *run, struct mur_error **err)
{
    const struct session *s = run->session;
    const char *path = harness_is_confined (s) ? harness_home (s) : s->places.dirs.session_path;
    run->files.parent_fd = harness_is_confined (s)
                               ? open (path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                               : fcntl (s->places.dirs.session_fd, F_DUPFD_CLOEXEC, 0);
    if (run->files.parent_fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", path);
    char id[37];
    uuid_text (id);
    run->files.name = x_asprintf ("%s%s", harness_is_confined (s) ? "murmur-run-" : "harness/", id);
    run->files.path = x_asprintf ("%s/%s", path, run->files.name);
    return true;
}

/* Makes the run's private directory with the plan's files in it. */
static bool
write_files (struct harness_run *run, struct mur_error **err)
{
    const struct process_plan *p = &run->plan;
    if (! open_files_parent (run, err))
        return false;
    if (mkdirat (run->files.parent_fd, run->files.name, 0700) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot create %s", run->files.path);
    _cleanup_close_ int dir = openat (run->files.parent_fd, run->files.name,
                                      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fchmod (dir, 0700) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", run->files.path);
    for (size_t i = 0; i < p->file_count; i++)
        if (! fs_replace_at (dir, p->files[i].name, p->files[i].contents, p->files[i].contents_len,
                             0600, false, err))
            return mur_context (err, "%s", run->files.path);
    return true;
}

void
harness_launch_clear (struct harness_run *run)
{
    if (run->files.name) {
        (void)fs_remove_tree_at (run->files.parent_fd, run->files.name, NULL);
        close (run->files.parent_fd);
    }
    free (run->files.name);
    free (run->files.path);
}

/* --- start --- */

static void
start_line (struct harness_run *run, const char *version, bool is_known, const struct strv *env)
{
    struct session *s = run->session;
    const struct harness *h = s->rooms.harness;
    const struct process_plan *p = &run->plan;
    _cleanup_strv_ struct strv names = { 0 }, unset = { 0 }, files = { 0 }, tools = { 0 };
    for (size_t i = 0; i < env->len; i++)
        if (env->items[i][0])
            strv_printf (&names, "%.*s", (int)strcspn (env->items[i], "="), env->items[i]);
    for (size_t i = 0; i < ARRAY_LEN (account_names); i++)
        if (! getenv (account_names[i]))
            strv_push (&unset, account_names[i]);
    for (size_t i = 0; i < p->file_count; i++)
        strv_push (&files, p->files[i].name);
    for (size_t i = 0; run->bridge && i < s->kit.tool_count; i++)
        strv_push (&tools, s->kit.tools[i].name);
    TRACE (s->trace, NULL, harness_start, .task_id = run->task->task->id,
           .driver = h->driver->full_name, .driver_version = h->driver->version,
           .harness = h->is.harness, .binary = h->binary, .binary_source = h->binary_source,
           .harness_version = version, .version_tested = is_known,
           .harness_session_id = run->session_id, .session_mode = run->is_resume ? "resume" : "new",
           .args_count = p->args.len, .env_names = names.items, .account_env_unset = unset.items,
           .files = files.items, .bridge_tools = tools.items,
           .stdin_bytes = p->stdin_bytes.is_some ? p->stdin_bytes.len : 0,
           .keep_stdin_open = p->keeps_stdin_open);
}

static bool
start (struct harness_run *run, const char *version, bool is_known, struct mur_error **err)
{
    struct session *s = run->session;
    const struct process_plan *p = &run->plan;
    _cleanup_strv_ struct strv argv = { 0 }, env = { 0 };
    strv_push (&argv, s->rooms.harness->binary);
    for (size_t i = 0; i < p->args.len; i++)
        strv_take (&argv, with_files_dir (p->args.items[i], run->files.path));
    build_env (s, p, run->files.path, &env);
    start_line (run, version, is_known, &env);
    if (! harness_child_start (s, argv.items, env.items, &run->child, err))
        return mur_context (err, "harness %s", s->rooms.harness->is.harness);
    if (p->stdin_bytes.is_some)
        harness_child_write (&run->child, p->stdin_bytes.data, p->stdin_bytes.len);
    if (! p->keeps_stdin_open)
        harness_child_end_input (&run->child);
    return true;
}

/* As it was begun then: nothing is started, nothing listens. */
static bool
launch_played (struct harness_run *run, const struct buf *prompt, struct mur_error **err)
{
    const struct rec_harness *then = run->log.then;
    _cleanup_strv_ struct strv none = { 0 };
    snprintf (run->session_id, sizeof run->session_id, "%s", then->session_id);
    run->is_resume = then->is_resume;
    memcpy (run->attributed.value, then->used, sizeof then->used);
    if (! ask_plan (run, then->version, prompt, err) || ! check_plan (run, err) ||
        ! harness_tape_plan (run, then->version, prompt, err))
        return false;
    start_line (run, then->version,
                then->version &&
                    is_tested (&run->session->rooms.harness->is.tested_versions, then->version),
                &none);
    return true;
}

bool
harness_launch (struct harness_run *run, struct mur_error **err)
{
    struct session *s = run->session;
    _cleanup_buf_ struct buf prompt = { 0 };
    if (! (run->driver = harness_open_driver (s, err)))
        return mur_context (err, "driver %s", s->rooms.harness->driver->full_name);
    if (! read_prompt (run, &prompt, err)) /* a blank one starts nothing */
        return false;
    if (! harness_tape_begin (run, err))
        return false;
    if (run->log.then)
        return launch_played (run, &prompt, err);
    _cleanup_free_ char *version = probe_version (run);
    if (cancel_is_raised (run->task->cancel))
        return false;
    bool is_known = version && is_tested (&s->rooms.harness->is.tested_versions, version);
    if (! is_known)
        warn_version (run, version);
    if (s->kit.tool_count && ! (run->bridge = bridge_open (s, run->task, err)))
        return false;
    harness_forget (run);
    plan_session (run);
    return ask_plan (run, version, &prompt, err) && check_plan (run, err) &&
           write_files (run, err) && harness_tape_plan (run, version, &prompt, err) &&
           start (run, version, is_known, err);
}
