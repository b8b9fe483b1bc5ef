/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/packages/new_roster.h"

#include "artifact/names/name.h"
#include "artifact/names/platform.h"
#include "artifact/names/version.h"
#include "artifact/sources/index_load.h"
#include "artifact/sources/source.h"
#include "artifact/store/store.h"
#include "artifact/store/store_list.h"
#include "base/alloc.h"
#include "cli/packages/scaffold.h"
#include "manifest/settings/config.h"
#include "manifest/text/yaml.h"
#include "manifest/text/yaml_write.h"

#include <string.h>

/* --- the files --- */

#define MEMBER(what, role)                                                                         \
    "# " what "\n"                                                                                 \
    "name: @NAME@-" role "\n"                                                                      \
    "version: \"0.1.0\"\n"                                                                         \
    "runtime: capsule\n"                                                                           \
    "execution: static                  # packed without a component: the model is its program\n"  \
    "artifacts:\n"                                                                                 \
    "  - name: @DRIVER@\n"                                                                         \
    "    version: \"@VERSION@\"\n"                                                                 \
    "    runtime: driver\n"                                                                        \
    "    gateway:\n"                                                                               \
    "      endpoint: @ENDPOINT@\n"                                                                 \
    "      api_key: \"${@KEY@}\"\n"                                                                \
    "inference:\n"                                                                                 \
    "  model: @MODEL@\n"                                                                           \
    "  driver: {artifact: @DRIVER@}\n"

#define CLOSED_DOOR                                                                                \
    "network:\n"                                                                                   \
    "  authentication: {scheme: bearer} # members call each other only through closed doors\n"

static const struct template_file files[] = {
    { "roster.yaml",
      "# The formation @NAME@: `mur run --roster` starts every member.\n"
      "roster_version: 1\n"
      "members:\n"
      "  - {name: lead, capsule: local/@NAME@-lead, version: \"0.1.0\", entry: true}\n"
      "  - {name: worker, capsule: local/@NAME@-worker, version: \"0.1.0\"}\n"
      "reachability:\n"
      "  - from: lead\n"
      "    to: [worker]\n" },
    { "lead/murmur.yaml",
      MEMBER ("The member that takes the task, and may hand parts of it to the worker.",
              "lead") "  system_prompt: >-\n"
                      "    You lead a formation. Split the task, hand parts of it to the member "
                      "worker with\n"
                      "    call-member, and put its answers together.\n"
                      "capabilities:\n"
                      "  network: {allow: [127.0.0.1, localhost]} # the doors of the other "
                      "members\n" CLOSED_DOOR },
    { "worker/murmur.yaml",
      MEMBER (
          "The member that works for the lead.",
          "worker") "  system_prompt: You do one part of a larger task and answer with its "
                    "result.\n" CLOSED_DOOR "exports:\n"
                    "  peer_tasks: {accept: true}       # other members may hand it tasks\n"
                    "lifecycle: {task_acceptance: queue, queue_depth: 4, after_task: sleep}\n" },
    { 0 }
};

static const char next_steps[] =
    "mur build lead && mur publish lead/@NAME@-lead-0.1.0.mur.zip\n"
    "mur build worker && mur publish worker/@NAME@-worker-0.1.0.mur.zip\n"
    "mur install -g @DRIVER@@@VERSION@\n"
    "mur doctor\n"
    "mur run --roster --task \"say hello\"\n";

/* --- the driver --- */

struct provider {
    const char *name;
    const char *driver; /* bare name */
    const char *endpoint, *key, *model;
};

static const struct provider providers[] = {
    { "anthropic", "driver-anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY",
      "claude-sonnet-4-5" },
    { "openai", "driver-openai", "https://api.openai.com", "OPENAI_API_KEY", "gpt-5" },
};

static const struct provider *
choose_provider (const struct config *c, struct mur_error **err)
{
    if (! c->provider[0])
        return &providers[0];
    _cleanup_strv_ struct strv known = { 0 };
    for (size_t i = 0; i < ARRAY_LEN (providers); i++) {
        if (strcmp (c->provider, providers[i].name) == 0)
            return &providers[i];
        strv_push (&known, providers[i].name);
    }
    _cleanup_free_ char *names = strv_join (&known, ", ");
    mur_fail (err, E_NEW_004, "inference.provider \"%s\" of the configuration is not one of: %s",
              c->provider, names);
    mur_hint (err, "mur config set inference.provider %s", providers[0].name);
    return NULL;
}

static struct artifact_index *
read_index (const char *given, const struct config *c, struct mur_error **err)
{
    _cleanup_error_ struct mur_error *why = NULL;
    struct artifact_index *x = index_load (given ? given : index_address (c), &why);
    if (! x) {
        mur_fail (err, E_NEW_006, "the artifact index cannot be read: %s", why->message);
        mur_hint (err, "name another file or address with --index, or as registry.index_url of the "
                       "configuration");
    }
    return x;
}

static const struct index_version *
choose_driver (const struct artifact_index *x, const struct provider *p, struct mur_error **err)
{
    const struct index_artifact *a = index_find (x, p->driver);
    const struct index_version *v = a ? index_newest_fit (a, platform_host ()) : NULL;
    if (! a)
        mur_fail (err, E_NEW_007, "the index of scope \"%s\" does not list %s", x->scope,
                  p->driver);
    else if (! v)
        mur_fail (
            err, E_NEW_007,
            "no version of %s/%s in the index fits this mur (WIT level %u, %s); the newest is "
            "%s",
            x->scope, p->driver, wit_served_level (), platform_host (), a->versions[0].version);
    return v;
}

/* The newest bundled version of a driver; NULL when this mur brings none. Owned. */
static char *
bundled_version (const char *driver, struct mur_error **err)
{
    _cleanup_stores_ struct stores *stores = stores_new (NULL, err);
    _cleanup_rows_ struct store_rows rows = { 0 };
    if (! stores || ! store_list (&stores->at[STORE_BUNDLED], &rows, err))
        return NULL;
    const struct store_row *newest = NULL;
    for (size_t i = 0; i < rows.len; i++)
        if (strcmp (rows.items[i].name, driver) == 0 &&
            (! newest || version_compare (rows.items[i].version, newest->version) > 0))
            newest = &rows.items[i];
    return newest ? x_strdup (newest->version) : NULL;
}

/* The driver the members will use: the bundled one unless an index was named, here or in the
 * configuration. */
static bool
find_driver (const struct provider *p, const char *index, const struct config *config,
             char **driver, char **version, struct mur_error **err)
{
    *driver = x_asprintf ("std/%s", p->driver);
    *version = index || config->index_url[0] ? NULL : bundled_version (*driver, NULL);
    if (*version)
        return true;
    _cleanup_index_ struct artifact_index *x = read_index (index, config, err);
    const struct index_version *v = x ? choose_driver (x, p, err) : NULL;
    if (! v)
        return false;
    free (*driver);
    *driver = x_asprintf ("%s/%s", x->scope, p->driver);
    *version = x_strdup (v->version);
    return true;
}

/* What a person configured, quoted where YAML needs it. Owned. */
static char *
as_yaml (const char *text)
{
    struct buf out = { 0 };
    yaml_put_text (&out, text);
    return buf_steal (&out);
}

bool
new_roster (const char *name, const char *index, struct mur_error **err)
{
    if (str_eq (index, "local")) {
        mur_fail (err, E_NEW_005,
                  "--index local: the driver of a roster comes from a published "
                  "index, not from the local store");
        return mur_hint (err, "name an index file or its address, or leave --index away");
    }
    if (! scaffold_check_target (name, err))
        return false;
    _cleanup_config_ struct config *config = config_load (err);
    const struct provider *p = config ? choose_provider (config, err) : NULL;
    _cleanup_free_ char *driver = NULL, *version = NULL;
    if (! p || ! find_driver (p, index, config, &driver, &version, err))
        return false;
    _cleanup_free_ char *endpoint = as_yaml (config->endpoint[0] ? config->endpoint : p->endpoint);
    _cleanup_free_ char *model = as_yaml (config->model[0] ? config->model : p->model);
    const struct scaffold_mark marks[] = {
        { "@NAME@", name },       { "@DRIVER@", driver },
        { "@VERSION@", version }, { "@ENDPOINT@", endpoint },
        { "@KEY@", p->key },      { "@MODEL@", model },
        { NULL, NULL },
    };
    if (! scaffold_write (files, name, marks, err))
        return false;
    _cleanup_free_ char *next = scaffold_fill (next_steps, marks);
    scaffold_report (files, name, next);
    return true;
}
