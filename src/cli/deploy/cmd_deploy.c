/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur deploy render|check|apply`: what a capsule is on another machine, and handing that over.
 *
 * The API server is asked by kubectl (handing.h); nothing but the rendered objects goes through it.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/deploy/commands.h"
#include "cli/deploy/handing.h"
#include "cli/deploy/rendered.h"
#include "cli/line/args.h"
#include "deploy/deploy.h"
#include "deploy/layout.h"
#include "deploy/seccomp_profile.h"
#include "deploy/team.h"
#include "manifest/text/suggest.h"
#include "net/url.h"

#include <string.h>

static bool
read_request (const struct cli_args *args, struct deploy_request *r, struct mur_error **err)
{
    static const struct {
        const char *name;
        enum deploy_door door;
    } doors[] = { { "none", DEPLOY_DOOR_NONE },
                  { "service", DEPLOY_DOOR_SERVICE },
                  { "route", DEPLOY_DOOR_ROUTE } };
    *r = (struct deploy_request){ .image = cli_value (args, "--image"),
                                  .capsule_image = cli_value (args, "--capsule-image"),
                                  .capsule = cli_value (args, "--capsule"),
                                  .space = cli_value (args, "--namespace"),
                                  .queue = cli_value (args, "--queue"),
                                  .public_url = cli_value (args, "--public-url"),
                                  .roost_url = cli_value (args, "--roost-url"),
                                  .records_store = cli_value (args, "--records-store"),
                                  .records_role = cli_value (args, "--records-role"),
                                  .ca = cli_value (args, "--ca"),
                                  .task = cli_value (args, "--task"),
                                  .deadline = cli_value (args, "--deadline"),
                                  .seccomp = cli_value (args, "--seccomp-profile") };
    for (size_t i = 0; i < ARRAY_LEN (doors); i++)
        if (str_eq (doors[i].name, cli_value (args, "--door")))
            r->door = doors[i].door;
    if (! deploy_target_parse (cli_value (args, "--to"), &r->target)) {
        mur_fail (err, E_DEP_005, "--to '%s' is no target", cli_value (args, "--to"));
        struct suggestion near = { NULL, 0 };
        for (size_t i = 0; deploy_target_name (i); i++)
            suggestion_offer (&near, cli_value (args, "--to"), deploy_target_name (i));
        return suggestion_hint (&near,
                                "kubernetes, kueue, systemd, quadlet, sandbox, kagent, nomad", err);
    }
    _cleanup_url_ struct url url = { 0 };
    const char *fault = r->public_url ? url_parse (r->public_url, &url) : NULL;
    if (fault)
        return mur_fail (err, E_DEP_003, "--public-url: \"%s\" %s", r->public_url, fault);
    url_free (&url);
    fault = r->roost_url ? url_parse (r->roost_url, &url) : NULL;
    return ! fault || mur_fail (err, E_DEP_005, "--roost-url: \"%s\" %s", r->roost_url, fault);
}

/* The reference with the digest of a layout's image; as it is without one. Owned. */
static char *
with_digest (const char *reference, const char *layout_path, struct mur_error **err)
{
    struct oci_descriptor at;
    if (! layout_path)
        return x_strdup (reference);
    _cleanup_layout_ struct layout *layout = layout_open (layout_path, err);
    _cleanup_json_ json_t *image = layout ? layout_image (layout, err) : NULL;
    if (! image || ! oci_descriptor_read (image, &at))
        return NULL;
    const char *said = strchr (reference, '@');
    if (said && ! str_eq (said + 1, at.digest)) {
        mur_fail (err, E_DEP_005, "%s names another image than --layout %s: %s", reference,
                  layout_path, at.digest);
        return NULL;
    }
    return x_asprintf ("%.*s@%s", (int)strcspn (reference, "@"), reference, at.digest);
}

/* Names the image the capsule is in by its digest. Owned; NULL without *err: there is no image. */
static char *
pin_image (struct deploy_request *r, const char *layout_path, struct mur_error **err)
{
    const char **at = r->capsule_image ? &r->capsule_image : &r->image;
    if (! *at && layout_path)
        mur_fail (err, E_DEP_002, "--layout %s gives a digest, and no --image the name it is for",
                  layout_path);
    char *pinned = *at ? with_digest (*at, layout_path, err) : NULL;
    if (pinned)
        *at = pinned;
    return pinned;
}

/* Of a roster's members or of the one capsule. */
static bool
render_request (const struct cli_args *args, struct deploy_request *r, struct deploy_files *files,
                struct mur_error **err)
{
    if (cli_has (args, "--roster")) {
        _cleanup_team_ struct team team = { 0 };
        if (! team_read (cli_value (args, "--roster"), &team, err))
            return false;
        struct deploy_formation formation = team_formation (&team);
        formation.is_spread = str_eq (cli_value (args, "--placement"), "fleet");
        r->formation = &formation;
        r->manifest = team_entry (&team);
        bool is_rendered = deploy_render (r, files, err);
        r->formation = NULL;
        return is_rendered;
    }
    _cleanup_ (capsule_manifest_freep) struct capsule_manifest *m =
        capsule_manifest_read (cli_value (args, "--manifest"), MANIFEST_SECRETLESS, err);
    r->manifest = m;
    return m && deploy_render (r, files, err);
}

static bool
render (const struct cli_args *args, struct deploy_files *files, struct deploy_request *r,
        struct mur_error **err)
{
    struct mur_error *caught = NULL;
    if (! read_request (args, r, err))
        return false;
    _cleanup_free_ char *pinned = pin_image (r, cli_value (args, "--layout"), &caught);
    if (caught)
        return mur_propagate (err, caught);
    bool is_rendered = render_request (args, r, files, err);
    if (is_rendered) {
        rendered_note_tag (r->image);
        rendered_note_tag (r->capsule_image);
    }
    r->manifest = NULL; /* these were lent */
    r->image = r->capsule_image = NULL;
    return is_rendered;
}

int
cmd_deploy_render (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_ (deploy_files_free) struct deploy_files files = { 0 };
    struct deploy_request r;
    return render (args, &files, &r, err) && rendered_write (&files, cli_value (args, "--out"), err)
               ? CLI_OK
               : CLI_FAILED;
}

static int
hand_over (const struct cli_args *args, bool is_dry, struct mur_error **err)
{
    _cleanup_ (deploy_files_free) struct deploy_files files = { 0 };
    struct deploy_request r;
    if (! render (args, &files, &r, err))
        return CLI_FAILED;
    if (r.target != DEPLOY_KUBERNETES && r.target != DEPLOY_KUEUE && r.target != DEPLOY_SANDBOX &&
        r.target != DEPLOY_KAGENT) {
        mur_fail (err, E_DEP_005, "--to %s: only an API server of Kubernetes is handed objects",
                  cli_value (args, "--to"));
        mur_hint (err, "put the files of `mur deploy render --out DIR` in their place");
        return CLI_FAILED;
    }
    _cleanup_buf_ struct buf all = { 0 };
    rendered_join (&files, &all);
    const struct handing h = { .kubectl = { cli_value (args, "--kubeconfig"), r.space },
                               .files = &files,
                               .objects = &all,
                               .is_dry = is_dry,
                               .replaces = ! is_dry && cli_has (args, "--replace") };
    return handing_carry_out (&h, err) ? CLI_OK : CLI_FAILED;
}

int
cmd_deploy_check (const struct cli_args *args, struct mur_error **err)
{
    return hand_over (args, true, err);
}

int
cmd_deploy_apply (const struct cli_args *args, struct mur_error **err)
{
    return hand_over (args, false, err);
}

int
cmd_deploy_profile (const struct cli_args *args, struct mur_error **err _unused_)
{
    const char *namespace = cli_value (args, "--namespace");
    _cleanup_buf_ struct buf out = { 0 };
    if (cli_has (args, "--operator"))
        seccomp_profile_object (&out, namespace ? namespace : "default");
    else
        seccomp_profile_json (&out);
    out_write (out.data, out.len);
    return CLI_OK;
}
