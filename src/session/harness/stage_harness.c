/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/stage_harness.h"
#include "artifact/package/package.h"
#include "engine/guest.h"

#include "base/alloc.h"
#include "manifest/settings/artifact_manifest.h"
#include "manifest/text/yaml_tree.h"
#include "net/server/gateway_door.h"
#include "sandbox/programs/exec_allowlist.h"
#include "session/guests/guests.h"
#include "session/harness/harness.h"
#include "session/harness/harness_child.h"
#include "session/harness/harness_memory.h"
#include "session/state/session.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- describe --- */

struct guest *
harness_open_driver (struct session *s, struct mur_error **err)
{
    const struct cap_limits *limits = &s->policy->limits;
    const struct staged_artifact *a = s->rooms.harness->driver;
    const struct guest_spec spec = {
        .engine = guests_engine (s),
        .component = a->component,
        .limits = { limits->memory_bytes.value, limits->table_elements.value,
                    limits->instances.value, a->grant->deadline_seconds },
        .is_empty = true,
    };
    enum guest_ending how;
    return guest_new (&spec, NULL, &how, err);
}

static bool
refuse_driver (const struct harness *h, const char *call, struct mur_error *why,
               struct mur_error **err)
{
    _cleanup_error_ struct mur_error *caught = why;
    return mur_fail (err, E_RUN_032, "process driver %s: %s: %s", h->driver->full_name, call,
                     caught->message);
}

static bool
describe (struct session *s, struct mur_error **err)
{
    struct harness *h = s->rooms.harness;
    struct mur_error *caught = NULL;
    struct guest *g = harness_open_driver (s, &caught);
    if (! g)
        return refuse_driver (h, "it cannot be instantiated without grants", caught, err);
    bool is_described = host_process_describe (g, h->arena, &h->is, &caught);
    guest_free (g);
    if (! is_described)
        return refuse_driver (h, "describe", caught, err);
    const char *missing = ! h->is.harness[0] ? "harness" : ! h->is.binary[0] ? "binary" : NULL;
    return ! missing || mur_fail (err, E_RUN_032, "process driver %s: describe: it names no %s",
                                  h->driver->full_name, missing);
}

static bool
has_listed (const struct text_list *list, size_t before, const char *name)
{
    for (size_t i = 0; i < before; i++)
        if (strcmp (list->items[i], name) == 0)
            return true;
    return false;
}

static bool
check_required_env (const struct session *s, struct mur_error **err)
{
    const struct text_list *required = &s->rooms.harness->is.required_env;
    const struct str_list *allowed = &s->policy->env_allow;
    _cleanup_strv_ struct strv missing = { 0 };
    for (size_t i = 0; i < required->len; i++) {
        bool is_allowed = false;
        for (size_t k = 0; k < allowed->len && ! is_allowed; k++)
            is_allowed = strcmp (allowed->items[k], required->items[i]) == 0;
        if (! is_allowed && ! has_listed (required, i, required->items[i]))
            strv_push (&missing, required->items[i]);
    }
    if (! missing.len)
        return true;
    _cleanup_free_ char *names = strv_join (&missing, ", ");
    capsule_manifest_fail (s->manifest, err, E_CAP_019, "capabilities.env.allow",
                           "driver %s needs %s", s->rooms.harness->driver->full_name, names);
    return mur_hint (err, "add to capabilities.env.allow: %s", names);
}

/* --- the executable --- */

static bool
is_executable_file (const char *path)
{
    struct stat st;
    return stat (path, &st) == 0 && S_ISREG (st.st_mode) && access (path, X_OK) == 0;
}

static char *
absolute (const struct session *s, const char *path)
{
    return path[0] == '/' ? x_strdup (path) : x_asprintf ("%s/%s", s->asked->file.dir, path);
}

static bool
find_binary (struct session *s, struct mur_error **err)
{
    struct harness *h = s->rooms.harness;
    const char *command = s->manifest->inference->command;
    const char *name = command ? command : h->is.binary;
    h->binary_source = command ? "inference.command" : "the process driver's describe()";
    if (s->asked->player) { /* none is started: it need not be here */
        h->binary = x_strdup (name);
        return true;
    }
    h->binary = strchr (name, '/') ? absolute (s, name) : exec_find_on_path (name, getenv ("PATH"));
    if (h->binary && is_executable_file (h->binary))
        return true;
    mur_fail (err, E_RUN_006, "harness %s (%s): %s is not an executable file%s", h->is.harness,
              h->binary_source, name, strchr (name, '/') ? "" : " on PATH");
    return mur_hint (err, "install %s, or name its program in inference.command", h->is.harness);
}

/* harness: {usage: thread} of the driver's package. */
static bool
counts_thread (const struct staged_artifact *driver)
{
    const struct yaml_node *block = yaml_get (driver->resolved->package->manifest->root, "harness");
    const struct yaml_node *usage = block ? yaml_get (block, "usage") : NULL;
    return usage && yaml_is_scalar (usage) && str_eq (usage->text, "thread");
}

bool
stage_harness (struct session *s, struct mur_error **err)
{
    const struct inference *inference = s->manifest->inference;
    if (! inference || inference->transport != TRANSPORT_PROCESS)
        return true;
    struct harness *h = s->rooms.harness = x_new0 (struct harness);
    s->loop_lock.is_shared = true;
    pthread_mutex_init (&h->lock, NULL);
    last_acts_add (s, harness_kill);
    h->arena = arena_new ();
    h->bridge_fd = h->wake_fd = -1;
    h->memory = harness_memory_new (s->asked->player ? NULL : s->policy->record_store);
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        if (s->kit.artifacts[i].entry == inference->driver_entry)
            h->driver = &s->kit.artifacts[i];
    h->counts_thread = counts_thread (h->driver);
    return describe (s, err) && check_required_env (s, err) && find_binary (s, err);
}

bool
stage_harness_spend (struct session *s, struct mur_error **err)
{
    const struct harness *h = s->rooms.harness;
    if (! h || h->is.reports_usage || h->driver->entry->gateway) /* its gateway counts */
        return true;
    bool has_own = s->manifest->inference->max_session_tokens.is_set;
    if (! has_own && ! s->asked->config->machine_tokens_per_day)
        return true;
    return mur_fail (err, E_RUN_038, "driver %s reports no usage, so %s cannot be kept",
                     h->driver->full_name,
                     has_own ? "inference.max_session_tokens" : "the machine's spend ceiling");
}

void
harness_free (struct session *s)
{
    struct harness *h = s->rooms.harness;
    if (! h)
        return;
    gateway_door_free (h->door);
    if (h->bridge_fd >= 0)
        close (h->bridge_fd);
    strv_free (&h->trees);
    strv_free (&h->closure);
    harness_memory_free (h->memory);
    pthread_mutex_destroy (&h->lock);
    free (h->binary);
    arena_free (h->arena);
    free (h);
    s->rooms.harness = NULL;
}
