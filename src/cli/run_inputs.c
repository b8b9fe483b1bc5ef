/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs of `mur run`. See run_inputs.h.
 */
#include "cli/run_inputs.h"

#include "artifact/package.h"
#include "base/alloc.h"
#include "base/ids.h"
#include "base/json.h"
#include "spawn/lifeline.h"
#include "trace/address.h"
#include "trace/reader.h"

#include <dirent.h>
#include <string.h>

/* --- the launcher's variables --- */

/* The variable without outer blanks, NULL when unset or blank. */
static const char *
variable (const char *name)
{
    const char *value = getenv (name);
    return value && value[strspn (value, " \t\r\n")] ? value : NULL;
}

static bool
is_text (const json_t *object, const char *key)
{
    const char *text = json_get_string (object, key);
    return text && text[0];
}

static bool
check_spawner (struct mur_error **err)
{
    const char *text = variable ("MURMUR_SPAWNER");
    if (! text)
        return true;
    /* Its value is never quoted, a parser's message would. */
    _cleanup_json_ json_t *value = json_loads (text, 0, NULL);
    if (! value)
        return mur_fail (err, E_RUN_020,
                         "MURMUR_SPAWNER is not JSON; a child that cannot report its end may not "
                         "run");
    if (! is_text (value, "session_id") || ! is_text (value, "context_id") ||
        ! is_text (value, "delegation_id") ||
        (json_object_get (value, "url") && ! is_text (value, "url")))
        return mur_fail (err, E_RUN_020,
                         "MURMUR_SPAWNER must be an object with session_id, context_id and "
                         "delegation_id, and a url that is not empty when it has one; a child that "
                         "cannot report its end may not run");
    return mur_fail (err, E_RUN_020,
                     "MURMUR_SPAWNER is set, but this version of mur does not run delegated "
                     "capsules yet");
}

static bool
check_formation (struct mur_error **err)
{
    static const char *const refused[] = { "MURMUR_FORMATION_PEERS", "MURMUR_FORMATION_CHANNEL",
                                           "MURMUR_FORMATION_LIFELINE" };
    for (size_t i = 0; i < ARRAY_LEN (refused); i++)
        if (getenv (refused[i]))
            return mur_fail (err, E_RUN_046,
                             "%s is set: this process was not started by a "
                             "formation's launcher",
                             refused[i]);
    const char *id = variable ("MURMUR_FORMATION_ID");
    if (! id)
        return true;
    if (! id_is_valid (id, "frm_"))
        return mur_fail (err, E_RUN_044,
                         "MURMUR_FORMATION_ID is not \"frm_\" followed by 32 hex digits");
    return mur_fail (err, E_RUN_046,
                     "MURMUR_FORMATION_ID is set, but this version of mur does not "
                     "run formations yet");
}

bool
run_check_launcher_variables (struct mur_error **err)
{
    return check_spawner (err) && check_formation (err) && lifeline_take (err);
}

/* --- resuming --- */

bool
run_resolve_resume (const char *address, const char *work_root, char **session_id,
                    char **context_id, struct mur_error **err)
{
    struct recorded_session found = { 0 };
    if (! recorded_session_resolve (address, work_root, "--resume", E_TRC_002, &found, err))
        return false;
    _cleanup_trace_ struct trace *trace = trace_read (found.trace_path, TRACE_TOLERANT, err);
    const struct trace_event *start = trace ? trace_find (trace, "task_start", 0) : NULL;
    const char *context = start ? json_get_string (start->object, "context_id") : NULL;
    if (context) {
        *context_id = x_strdup (context);
        *session_id = x_strdup (found.session_id ? found.session_id
                                                 : json_get_string (start->object, "session_id"));
    } else if (trace) {
        mur_fail (err, E_RUN_016,
                  "--resume: session %s ran no task, so it has no context to continue",
                  found.session_id ? found.session_id : found.trace_path);
    }
    recorded_session_free (&found);
    return context != NULL;
}

/* --- the component --- */

char *
run_find_component (const char *dir_path, struct mur_error **err)
{
    _cleanup_strv_ struct strv names = { 0 };
    _cleanup_closedir_ DIR *dir = opendir (dir_path);
    for (struct dirent *e; dir && (e = readdir (dir));)
        if (str_ends (e->d_name, ".wasm"))
            strv_push (&names, e->d_name);
    strv_sort (&names);
    if (! names.len) {
        mur_fail (err, E_RUN_004, "no component at %s/capsule.wasm", dir_path);
        mur_hint (err, "build it there, or declare inference: for an agent capsule");
        return NULL;
    }
    int at = package_pick_root_wasm ((const char *const *)names.items, names.len, E_IO_003,
                                     dir_path, err);
    return at < 0 ? NULL : x_asprintf ("%s/%s", dir_path, names.items[at]);
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
