/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur new`: a capsule from a template, or a formation of two (spec/cli.md 4). Writing is
 * scaffold.c's, the formation new_roster.c's.
 */
#include "artifact/names/name.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "cli/line/args.h"
#include "cli/packages/commands.h"
#include "cli/packages/guest_templates.h"
#include "cli/packages/new_roster.h"
#include "cli/packages/scaffold.h"

#include <string.h>

/* Of a formation the members are named <NAME>-worker; what a name may hold is the artifacts' rule.
 */
#define LONGEST_NAME (100 - sizeof ("-worker") + 1)

static bool
check_name (const char *name, struct mur_error **err)
{
    size_t len = strlen (name);
    _cleanup_free_ char *problem =
        len > LONGEST_NAME ? x_strdup ("is too long") : name_part_problem (name, len);
    if (! problem)
        return true;
    mur_fail (err, E_NEW_002, "\"%s\" cannot be the name of a capsule: it %s", name, problem);
    return mur_hint (err, "lower-case letters, digits and inner hyphens, at most %zu of them",
                     LONGEST_NAME);
}

static bool
new_from_template (const struct project_template *t, const char *name, struct mur_error **err)
{
    const struct scaffold_mark marks[] = { { "@NAME@", name }, { NULL, NULL } };
    if (! scaffold_check_target (name, err) || ! scaffold_write (t->files, name, marks, err))
        return false;
    _cleanup_free_ char *next = scaffold_fill (t->next, marks);
    scaffold_report (t->files, name, next);
    return true;
}

/* `harness` is followed by the program's name, which is the template's. */
static const struct project_template *
template_of (const struct cli_args *args)
{
    const char *template = cli_positional (args, "TEMPLATE");
    const struct project_template *guest =
        guest_template_find (template, cli_value (args, "--language"));
    if (guest)
        return guest;
    return project_template_find (str_eq (template, "harness") ? cli_positional (args, "NAME")
                                                               : template);
}

int
cmd_new (const struct cli_args *args, struct mur_error **err)
{
    const char *roster = cli_value (args, "--roster");
    const char *folder = cli_positional (args, "FOLDER");
    const char *name = roster ? roster : folder ? folder : cli_positional (args, "NAME");
    bool ok =
        check_name (name, err) && (roster ? new_roster (roster, cli_value (args, "--index"), err)
                                          : new_from_template (template_of (args), name, err));
    return ok ? CLI_OK : CLI_FAILED;
}
