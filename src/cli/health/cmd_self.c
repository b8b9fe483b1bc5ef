/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur self`: which program this is, where it finds what belongs to it, and what it was built from
 * (spec/cli.md 4). For reports of faults and for whoever must name the parts of an installation.
 */
#include "artifact/store/store.h"
#include "artifact/store/store_list.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/share.h"
#include "base/version.h"
#include "cli/health/built_from.h"
#include "cli/health/commands.h"
#include "cli/health/commit.h"
#include "cli/line/args.h"
#include "cli/line/text_table.h"
#include "home/paths.h"

#include <stdlib.h>
#include <unistd.h>

static char *
program_path (void)
{
    char *path = share_program ();
    return path ? path : x_strdup ("unknown");
}

static json_t *
parts (void)
{
    json_t *list = json_array ();
    size_t count;
    const struct built_part *part = built_parts (&count);
    for (size_t i = 0; i < count; i++) {
        json_t *row = json_object ();
        json_set_string (row, "part", part[i].name);
        json_set_string (row, "version", part[i].version);
        json_set_string (row, "use", part[i].use);
        json_array_append_new (list, row);
    }
    return list;
}

/* The digest is of the bytes that are there, not of what their hash file says. */
static bool
add_artifact (json_t *list, const struct store *s, const struct store_row *row,
              struct mur_error **err)
{
    _cleanup_payload_ struct store_payload payload = { 0 };
    enum store_found found = store_find (s, row->name, row->version, NULL, &payload, err);
    if (found == STORE_FAILED)
        return false;
    if (found == STORE_NOT_FOUND) /* of another platform */
        return true;
    struct package *package = store_read (&payload, row->name, row->version, err);
    if (! package)
        return false;
    package_free (package);
    json_t *entry = json_object ();
    json_set_string (entry, "artifact", row->name);
    json_set_string (entry, "version", row->version);
    json_set_string (entry, "sha256", payload.sha256);
    json_array_append_new (list, entry);
    return true;
}

static json_t *
artifacts (const struct store *s, struct mur_error **err)
{
    json_t *list = json_array ();
    _cleanup_rows_ struct store_rows rows = { 0 };
    bool is_ok = ! s->root || store_list (s, &rows, err);
    for (size_t i = 0; is_ok && i < rows.len; i++)
        is_ok = add_artifact (list, s, &rows.items[i], err);
    if (is_ok)
        return list;
    json_decref (list);
    return NULL;
}

static void
print_table (const json_t *list, const char *const keys[3], const char *const titles[3])
{
    _cleanup_text_table_ struct text_table t = { 0 };
    for (size_t i = 0; i < 3; i++)
        text_table_column (&t, titles[i]);
    size_t i;
    const json_t *row;
    json_array_foreach (list, i, row) for (size_t k = 0; k < 3; k++)
        text_table_add (&t, json_get_string (row, keys[k]));
    text_table_print (&t);
}

static void
print_text (const json_t *answer)
{
    const char *commit = json_get_string (answer, "commit");
    const char *bundled = json_get_string (answer, "bundled_store");
    out_printf ("mur %s, commit %s\n", MUR_VERSION, commit ? commit : "unknown");
    out_printf ("program        %s\n", json_get_string (answer, "program"));
    out_printf ("bundled store  %s\n", bundled ? bundled : "there is none beside this program");
    out_printf ("own folder     %s\n", json_get_string (answer, "home"));
    out_printf ("built          by %s for %s\n\n", json_get_string (answer, "compiler"),
                json_get_string (answer, "machine"));
    print_table (json_object_get (answer, "parts"),
                 (const char *const[]){ "part", "version", "use" },
                 (const char *const[]){ "PART", "VERSION", "USE" });
    const json_t *list = json_object_get (answer, "artifacts");
    if (json_array_size (list) == 0)
        return;
    out_puts ("\n");
    print_table (list, (const char *const[]){ "artifact", "version", "sha256" },
                 (const char *const[]){ "ARTIFACT", "VERSION", "SHA-256" });
}

int
cmd_self (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_free_ char *home = home_path (err);
    _cleanup_stores_ struct stores *stores = home ? stores_new (NULL, err) : NULL;
    if (! stores)
        return CLI_FAILED;
    const struct store *bundled = &stores->at[STORE_BUNDLED];
    json_t *list = artifacts (bundled, err);
    if (! list)
        return CLI_FAILED;
    _cleanup_free_ char *program = program_path ();
    _cleanup_json_ json_t *answer = json_object ();
    json_set_string (answer, "mur_version", MUR_VERSION);
    json_set_string (answer, "commit", mur_commit ());
    json_set_string (answer, "program", program);
    json_set_string (answer, "bundled_store", json_array_size (list) ? bundled->root : NULL);
    json_set_string (answer, "home", home);
    json_set_string (answer, "compiler", built_compiler ());
    json_set_string (answer, "machine", built_for ());
    json_object_set_new (answer, "parts", parts ());
    json_object_set_new (answer, "artifacts", list);
    if (! cli_has (args, "--json")) {
        print_text (answer);
        return CLI_OK;
    }
    _cleanup_free_ char *text = json_pretty (answer, JSON_TEXT_ORDERED);
    out_printf ("%s\n", text);
    return CLI_OK;
}
