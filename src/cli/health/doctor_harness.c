/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur doctor`: the program of inference.transport: process, whether its driver was tested with
 * what is installed, and what confines it.
 */
#include "cli/health/doctor_internal.h"

#include "base/alloc.h"
#include "manifest/settings/artifact_manifest.h"
#include "manifest/text/yaml_tree.h"
#include "sandbox/programs/exec_allowlist.h"
#include "sandbox/programs/host_query.h"
#include "sandbox/programs/package_version.h"

#include <string.h>
#include <unistd.h>

char *
doctor_version_of (const char *program)
{
    const char *path = getenv ("PATH");
    _cleanup_free_ char *variable = x_asprintf ("PATH=%s", path ? path : "");
    const char *const argv[] = { "env", variable, program, "--version", NULL };
    _cleanup_buf_ struct buf said = { 0 };
    if (! host_query ("/usr/bin/env", argv, &said) || ! said.len)
        return NULL;
    size_t len = strcspn (said.data, "\r\n");
    return len ? x_strndup (said.data, len) : NULL;
}

/* One word of the line is among the versions. */
static bool
is_tested (const struct yaml_node *versions, const char *line)
{
    for (uint32_t i = 0; versions && versions->kind == YAML_LIST && i < versions->len; i++) {
        const struct yaml_node *v = versions->items[i];
        const char *at = yaml_is_scalar (v) ? strstr (line, v->text) : NULL;
        size_t len = at ? strlen (v->text) : 0;
        if (at && (at == line || strchr (" v", at[-1])) && strchr (" ", at[len]))
            return true;
    }
    return false;
}

static const char *
walls_of (const struct doctor *d)
{
    return policy_confines_harness (d->policy)
               ? containment_name (d->containment->achieved)
               : "nothing: it runs outside of every class; set inference.containment";
}

void
doctor_harness (struct doctor *d, const struct artifact_manifest *driver)
{
    const struct inference *inference = d->manifest->inference;
    const struct yaml_node *harness = yaml_get (driver->root, "harness");
    if (! inference || inference->transport != TRANSPORT_PROCESS)
        return;
    const char *name = inference->command;
    if (! name && yaml_get (harness, "program"))
        name = yaml_text (yaml_get (harness, "program"));
    if (! name)
        return;
    _cleanup_free_ char *path = name[0] == '/'       ? x_strdup (name)
                                : strchr (name, '/') ? x_asprintf ("%s/%s", d->project, name)
                                                     : exec_find_candidate (name, getenv ("PATH"));
    if (! path || access (path, X_OK) < 0) {
        d->errors++;
        out_printf ("  ✗  harness %s   — is not an executable file%s; install it, or name it in "
                    "inference.command\n",
                    name, strchr (name, '/') ? "" : " on PATH");
        return;
    }
    /* Nothing of the project's own is run to be asked. */
    _cleanup_free_ char *version = str_starts (path, d->project) ? NULL : doctor_version_of (path);
    if (! version || ! version_line_has_one (version)) {
        char *of_package = package_version_of (path);
        if (of_package) {
            free (version);
            version = of_package;
        }
    }
    bool is_good = version && is_tested (yaml_get (harness, "tested"), version);
    if (is_good)
        d->passed++;
    else
        d->warnings++;
    out_printf ("  %s  harness %s   %s   %s\n     confined by: %s\n", is_good ? "✓" : "⚠", path,
                version ? version : "says no version",
                is_good ? "tested with this driver" : "not tested with this driver", walls_of (d));
}
