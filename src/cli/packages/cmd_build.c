/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur build`: pack a folder, or a skill (spec/artifacts.md 4).
 */
#include "artifact/names/name.h"
#include "artifact/package/build.h"
#include "artifact/package/build_skill.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/packages/build_command.h"
#include "cli/packages/commands.h"

#include <string.h>

/* The value of --skill is a path when it looks like one, else the skill's name. */
static bool
take_skill_value (const char *value, struct skill_request *r, struct mur_error **err)
{
    if (! value || ! value[0])
        return true;
    if (! strpbrk (value, "/\\") && value[0] != '.') {
        r->name = value;
        return true;
    }
    if (access (value, F_OK) != 0 && name_is_full (value))
        return build_check_name (value, err);
    r->source = value;
    return true;
}

int
cmd_build (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_build_result_ struct build_result result = { 0 };
    const char *source = cli_positional (args, "SOURCE");
    const char *output = cli_value (args, "--output");
    if (! source)
        source = ".";
    bool ok;
    if (cli_has (args, "--skill")) {
        struct skill_request r = {
            .source = source,
            .version = cli_value (args, "--version"),
            .summary = cli_value (args, "--summary"),
            .output = output,
        };
        ok = take_skill_value (cli_value (args, "--skill"), &r, err) &&
             build_skill (&r, &result, err);
    } else {
        ok = build_command_run (source, err) && build_artifact (source, output, &result, err);
    }
    if (! ok)
        return CLI_FAILED;
    if (result.has_level)
        out_printf ("Built artifact: %s (WIT level %u)\n", result.path, result.level);
    else
        out_printf ("Built artifact: %s (fits no known WIT level)\n", result.path);
    return CLI_OK;
}
