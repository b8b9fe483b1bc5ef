/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_inputs.h"

#include "artifact/store/store_list.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/run/cmd_run.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "manifest/settings/secrets_dir.h"
#include "net/url.h"
#include "session/launch.h"
#include "trace/read/address.h"
#include "trace/read/reader.h"
#include "trace/ship/record_store.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- what the command line says in the manifest's place --- */

bool
run_change_manifest (const struct cli_args *args, struct capsule_manifest *m, struct strv *changed,
                     struct mur_error **err)
{
    static const char *const flags[] = { "--model", "--max-session-tokens" };
    for (size_t i = 0; i < ARRAY_LEN (flags); i++)
        if (! m->inference && cli_has (args, flags[i]))
            return mur_fail (err, E_IO_003, "%s needs a capsule with an inference: block",
                             flags[i]);
    const char *model = cli_value (args, "--model");
    if (model && ! model[strspn (model, " \t\r\n")])
        return mur_fail (err, E_IO_003, "--model names no model");
    if (model && ! str_eq (model, m->inference->model)) {
        m->inference->model = model;
        strv_push (changed, "inference.model");
    }
    if (! cli_has (args, "--max-session-tokens"))
        return true;
    uint64_t most = cli_number (args, "--max-session-tokens");
    struct opt_u64 *ceiling = &m->inference->max_session_tokens;
    if (! ceiling->is_set || most < ceiling->value) {
        *ceiling = (struct opt_u64){ .is_set = true, .value = most };
        strv_push (changed, "inference.max_session_tokens");
    }
    return true;
}

bool
run_change_for_replay (struct capsule_manifest *m, const struct run_replay *replay,
                       struct mur_error **err)
{
    if (replay->model && m->inference)
        m->inference->model = replay->model;
    if (replay->max_session_tokens && m->inference)
        m->inference->max_session_tokens =
            (struct opt_u64){ .is_set = true, .value = replay->max_session_tokens };
    if (! replay->artifact_name)
        return true;
    for (size_t i = 0; i < m->artifacts.len; i++)
        if (str_eq (m->artifacts.items[i].name, replay->artifact_name)) {
            m->artifacts.items[i].version = replay->artifact_version;
            return true;
        }
    return mur_fail (err, E_RPL_008, "the session's manifest lists no artifact %s",
                     replay->artifact_name);
}

/* --- the task --- */

static bool
read_stdin (struct buf *task, struct mur_error **err)
{
    if (isatty (STDIN_FILENO))
        diag_progress ("type the task; Ctrl-D ends it");
    if (! fd_read_all (STDIN_FILENO, TASK_TEXT_LIMIT_BYTES, task))
        return mur_fail_errno (err, E_IO_003, "--task -: cannot read standard input");
    return true;
}

/* A word that was meant to be a file more likely than to be a task. */
static bool
looks_like_path (const char *value)
{
    static const char *const endings[] = { ".md", ".txt", ".text", ".markdown" };
    if (! value[0] || value[strcspn (value, " \t\r\n")])
        return false;
    for (size_t i = 0; i < ARRAY_LEN (endings); i++)
        if (str_ends (value, endings[i]))
            return true;
    return value[0] == '/' || str_starts (value, "./") || str_starts (value, "../");
}

bool
run_read_task (const char *value, struct buf *task, struct mur_error **err)
{
    struct stat st;
    bool is_ok = true;
    if (strcmp (value, "-") == 0) {
        is_ok = read_stdin (task, err);
    } else if (stat (value, &st) == 0 && ! S_ISDIR (st.st_mode)) {
        is_ok =
            fs_read_path (value, TASK_TEXT_LIMIT_BYTES, task, err) || mur_context (err, "--task");
    } else {
        if (looks_like_path (value))
            diag_note ("--task: there is no file %s, so these words are the task", value);
        buf_puts (task, value);
        return true;
    }
    text_form_normalise (task);
    return is_ok;
}

/* --- resuming --- */

bool
run_resolve_resume (const char *address, const char *work_root, struct resumed *out,
                    struct mur_error **err)
{
    struct recorded_session found = { 0 };
    if (! recorded_session_resolve (address, work_root, "--resume", E_TRC_002, &found, err))
        return false;
    _cleanup_trace_ struct trace *trace = trace_read (found.trace_path, TRACE_TOLERANT, err);
    const struct trace_event *start = trace ? trace_find (trace, "task_start", 0) : NULL;
    const char *context = start ? json_get_string (start->object, "context_id") : NULL;
    if (context) {
        const char *id =
            found.session_id ? found.session_id : json_get_string (start->object, "session_id");
        *out = (struct resumed){ x_strdup (id ? id : ""), x_strdup (found.trace_path),
                                 x_strdup (context) };
    } else if (trace) {
        mur_fail (err, E_RUN_016,
                  "--resume: session %s ran no task, so it has no context to continue",
                  found.session_id ? found.session_id : found.trace_path);
    }
    recorded_session_free (&found);
    return context != NULL;
}

void
resumed_clear (struct resumed *r)
{
    free (r->session_id);
    free (r->trace_path);
    free (r->context_id);
}

bool
run_parse_identity (const char *text, unsigned long long *dev, unsigned long long *ino,
                    struct mur_error **err)
{
    char rest;
    if (sscanf (text, "%llu:%llu%c", dev, ino, &rest) == 2)
        return true;
    return mur_fail (err, E_RUN_051, "--workdir-identity %s is not DEV:INO", text);
}

bool
run_read_surroundings (const struct cli_args *args, const char **public_url,
                       const char **records_store, struct mur_error **err)
{
    if (cli_has (args, "--records-store"))
        setenv (RECORDS_STORE_VARIABLE, cli_value (args, "--records-store"), 1);
    *records_store = getenv (RECORDS_STORE_VARIABLE);
    _cleanup_url_ struct url url = { 0 };
    const char *text = *public_url = cli_value (args, "--public-url");
    const char *fault = text ? url_parse (text, &url) : NULL;
    if (! fault && (url.authority.has_userinfo || url.has_query || url.has_fragment))
        fault = "holds more than scheme, host, port and path";
    if (! fault)
        return secrets_dir_use (cli_value (args, "--secrets-dir"), err);
    mur_fail (err, E_IO_003, "--public-url: \"%s\" %s", text, fault);
    return mur_hint (err, "name where others reach the door, like https://agents.example.com/");
}

char *
run_newest_installed (const struct cli_args *args)
{
    const char *root = cli_value (args, "--store-root"), *workdir = cli_value (args, "--workdir");
    const char *name = cli_value (args, "--capsule");
    _cleanup_stores_ struct stores *stores = stores_new (root      ? root
                                                         : workdir ? workdir
                                                                   : ".",
                                                         NULL);
    char *version = stores ? stores_newest (stores, name) : NULL;
    const char *at = strchr (name, '@');
    if (! version && at)
        diag_stderr_line ("error: --capsule takes a name alone\n  hint: --capsule %.*s "
                          "--capsule-version %s",
                          (int)(at - name), name, at + 1);
    else if (! version)
        diag_stderr_line ("error: --capsule needs --capsule-version as well: no version of %s is "
                          "installed here\n  hint: mur list --all says what is",
                          name);
    if (version && ! cli_has (args, "--json"))
        diag_note ("%s@%s: the newest version that is installed", name, version);
    return version;
}
