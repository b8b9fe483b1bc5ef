/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur precompile`: compiled forms before a first launch, with a report a deployer can read
 * (spec/artifacts.md 10).
 */
#include "artifact/package/precompile.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/version.h"
#include "cli/line/args.h"
#include "cli/packages/commands.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/paths.h"
#include "manifest/settings/artifact_manifest.h"

static const char *const words[] = { "compiled", "already stored", "not wasm", "failed" };
static const char *const json_words[] = { "compiled", "already_stored", "not_wasm", "failed" };

struct outcome {
    const char *path;
    char *name, *version; /* NULL together when the archive has no readable manifest */
    enum precompile_outcome outcome;
};

static void
run_one (struct precompiler *c, struct outcome *o)
{
    _cleanup_error_ struct mur_error *caught = NULL;
    _cleanup_package_ struct package *p = package_from_file (o->path, &caught);
    o->outcome = p ? precompile_package (c, p, &caught) : PRECOMPILE_FAILED;
    if (p && p->manifest) {
        o->name = x_strdup (p->manifest->name);
        o->version = x_strdup (p->manifest->version);
    }
    if (caught)
        diag_plain_warning ("%s: error[%s]: %s", o->path, diag_code_name (caught->code),
                            caught->message);
}

static void
report_text (const struct outcome *outcomes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct outcome *o = &outcomes[i];
        if (o->name)
            out_printf ("%-14s  %s@%s\n", words[o->outcome], o->name, o->version);
        else
            out_printf ("%-14s  %s\n", words[o->outcome], o->path);
    }
}

static void
report_json (const struct outcome *outcomes, size_t count)
{
    _cleanup_json_ json_t *root = json_object ();
    json_set_string (root, "mur_version", MUR_VERSION);
    json_set_u64 (root, "decompression_ceiling", zip_ceiling ());
    json_t *list = json_array ();
    json_object_set_new (root, "artifacts", list);
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_object ();
        json_set_string (item, "path", outcomes[i].path);
        json_set_string (item, "name", outcomes[i].name);
        json_set_string (item, "version", outcomes[i].version);
        json_set_string (item, "outcome", json_words[outcomes[i].outcome]);
        json_array_append_new (list, item);
    }
    _cleanup_free_ char *text = json_text (root, JSON_TEXT_ORDERED);
    out_printf ("%s\n", text);
}

int
cmd_precompile (const struct cli_args *args, struct mur_error **err)
{
    size_t count;
    const char *const *paths = cli_positionals (args, "ZIP", &count);
    const char *workdir = cli_value (args, "--workdir");
    _cleanup_free_ char *murmur_dir = home_path (err);
    if (! murmur_dir)
        return CLI_FAILED;
    _cleanup_free_ char *writable_root = workdir ? fs_canonical_path (workdir, err) : NULL;
    if (workdir && ! writable_root)
        return CLI_FAILED;
    _cleanup_precompiler_ struct precompiler c = {
        .spec = { .murmur_dir = murmur_dir,
                  .writable_root = writable_root,
                  .ceiling_bytes = zip_ceiling () },
    };
    _cleanup_free_ struct outcome *outcomes = x_new_array (struct outcome, count);
    bool any_failed = false;
    for (size_t i = 0; i < count; i++) {
        outcomes[i].path = paths[i];
        run_one (&c, &outcomes[i]);
        any_failed |= outcomes[i].outcome == PRECOMPILE_FAILED;
    }
    if (cli_has (args, "--json"))
        report_json (outcomes, count);
    else
        report_text (outcomes, count);
    for (size_t i = 0; i < count; i++) {
        free (outcomes[i].name);
        free (outcomes[i].version);
    }
    return any_failed ? CLI_FAILED : CLI_OK;
}
