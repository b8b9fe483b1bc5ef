/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur new`: a capsule from a template, or a formation of two (spec/cli.md 4). Writing is
 * scaffold.c's, the formation new_roster.c's.
 */
#include "base/buf.h"
#include "cli/cli.h"
#include "cli/new_roster.h"
#include "cli/scaffold.h"

#include <string.h>

#define LONGEST_NAME 64

static bool
check_name (const char *name, struct mur_error **err)
{
    size_t len = strlen (name);
    bool is_plain = len && len <= LONGEST_NAME && name[0] >= 'a' && name[0] <= 'z' &&
                    strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len &&
                    name[len - 1] != '-';
    if (is_plain)
        return true;
    mur_fail (err, E_NEW_002, "\"%s\" cannot be the name of a capsule", name);
    return mur_hint (err, "lower-case letters, digits and hyphens, beginning with a letter");
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

int
cmd_new (const struct cli_args *args, struct mur_error **err)
{
    const char *roster = cli_value (args, "--roster");
    const char *name = roster ? roster : cli_positional (args, "NAME");
    bool ok = check_name (name, err) &&
              (roster ? new_roster (roster, cli_value (args, "--index"), err)
                      : new_from_template (
                            project_template_find (cli_positional (args, "TEMPLATE")), name, err));
    return ok ? CLI_OK : CLI_FAILED;
}
