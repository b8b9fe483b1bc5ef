/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur version`: this program, the interfaces it serves, and the form of every machine-readable
 * answer (spec/cli.md 1, 4).
 */
#include "artifact/names/wit.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/version.h"
#include "cli/health/commands.h"
#include "cli/health/commit.h"
#include "cli/line/args.h"

/* A number moves only when a key is removed, renamed or retyped, or the number of lines or objects
 * changes. */
static const struct {
    const char *command;
    int form;
} stable_answers[] = {
    { "control show --json", 1 },
    { "conversation ls --json", 1 },
    { "conversation show --json", 1 },
    { "eval diff --run --json", 1 },
    { "eval show --json", 1 },
    { "precompile --json", 1 },
    { "ps --json", 1 },
    { "run --explain-scope --json", 1 },
    { "run --json", 1 },
    { "run --roster --json", 1 },
    { "token", 1 },
    { "self --json", 1 },
    { "trace list --json", 1 },
    { "trace rm --json", 1 },
    { "version --json", 1 },
};

/* The packages of the served level, in the order of the level table. */
static json_t *
packages (void)
{
    json_t *list = json_array ();
    size_t count;
    const struct wit_level_row *rows = wit_level_rows (&count);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].level != wit_served_level ())
            continue;
        json_t *package = json_object ();
        json_set_string (package, "package", rows[i].package);
        json_set_string (package, "version", rows[i].version);
        json_array_append_new (list, package);
    }
    return list;
}

static void
print_json (void)
{
    _cleanup_json_ json_t *answer = json_object ();
    json_set_string (answer, "mur_version", MUR_VERSION);
    json_set_string (answer, "commit", mur_commit ());
    json_set_u64 (answer, "wit_level", wit_served_level ());
    json_object_set_new (answer, "packages", packages ());
    json_t *commands = json_object ();
    for (size_t i = 0; i < ARRAY_LEN (stable_answers); i++)
        json_set_u64 (commands, stable_answers[i].command, (uint64_t)stable_answers[i].form);
    json_object_set_new (answer, "commands", commands);
    _cleanup_free_ char *text = json_pretty (answer, JSON_TEXT_ORDERED);
    out_printf ("%s\n", text);
}

int
cmd_version (const struct cli_args *args, struct mur_error **err)
{
    (void)err;
    if (cli_has (args, "--json")) {
        print_json ();
        return CLI_OK;
    }
    const char *commit = mur_commit ();
    out_printf ("mur %s\ncommit %s\nWIT level %u\n\n%-24s VERSION\n", MUR_VERSION,
                commit ? commit : "unknown", wit_served_level (), "PACKAGE");
    _cleanup_json_ json_t *list = packages ();
    size_t i;
    const json_t *package;
    json_array_foreach (list, i, package) out_printf (
        "%-24s %s\n", json_get_string (package, "package"), json_get_string (package, "version"));
    return CLI_OK;
}
