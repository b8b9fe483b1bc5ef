/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/records/fleet_trace.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "client/fleet.h"
#include "home/paths.h"
#include "net/kube/kube_object.h"
#include "trace/tell/show.h"

#include <string.h>

#define DEEPEST 64 /* of a tree that is shown; no referee lets one grow so deep */

struct asked {
    struct fleet_view view;
    struct http_client *client;
};

static void
asked_clear (struct asked *a)
{
    fleet_view_clear (&a->view);
    http_client_free (a->client);
}

static bool
begin (const struct cli_args *args, struct asked *a, struct mur_error **err)
{
    a->client = http_client_new ();
    return fleet_view_open (cli_value (args, "--kubeconfig"), cli_value (args, "--namespace"),
                            &a->view, err);
}

static struct trace *
trace_of (const struct asked *a, const json_t *job, struct mur_error **err)
{
    struct fleet_door door = { 0 };
    _cleanup_buf_ struct buf text = { 0 };
    uint64_t at = 0, before;
    if (! fleet_door_open (&a->view, job, a->client, &door, err))
        return NULL;
    bool is_whole;
    do {
        before = at;
        is_whole = fleet_trace_read (a->client, &door, &at, &text, err);
    } while (is_whole && at > before);
    fleet_door_clear (&door);
    return is_whole ? trace_parse (fleet_job_meta (job, "name"), text.data ? text.data : "",
                                   text.len, TRACE_TOLERANT, err)
                    : NULL;
}

struct trace *
fleet_trace (const struct cli_args *args, const char *address, struct mur_error **err)
{
    _cleanup_ (asked_clear) struct asked a = { 0 };
    const json_t *job = begin (args, &a, err) ? fleet_view_find (&a.view, address, err) : NULL;
    return job ? trace_of (&a, job, err) : NULL;
}

/* --- a tree --- */

static void
show_one (const struct asked *a, const json_t *job, const char *work_root)
{
    _cleanup_error_ struct mur_error *caught = NULL;
    _cleanup_free_ char *state = fleet_job_state (job);
    const char *name = kube_own_annotation (job, "name"), *parent = kube_own_label (job, "parent");
    out_printf ("=== %s (Job %s, %s%s%s) ===\n", name ? name : "-", fleet_job_meta (job, "name"),
                state, parent ? ", started by Job " : "", parent ? parent : "");
    _cleanup_trace_ struct trace *t = trace_of (a, job, &caught);
    if (! t) {
        out_printf ("no trace: %s\n\n", caught ? caught->message : "-");
        return;
    }
    struct report report = { .put = out_raw, .use_colour = diag_wants_colour (STDOUT_FILENO) };
    trace_show (t, work_root, &report);
    report_end (&report);
    out_puts ("\n");
}

static void
show_below (const struct asked *a, const json_t *job, const char *work_root, unsigned depth)
{
    size_t i;
    json_t *other;
    show_one (a, job, work_root);
    if (depth < DEEPEST)
        json_array_foreach (a->view.items, i, other) if (str_eq (kube_own_label (other, "parent"),
                                                                 fleet_job_meta (job, "name")))
            show_below (a, other, work_root, depth + 1);
}

bool
fleet_trace_tree (const struct cli_args *args, const char *address, struct mur_error **err)
{
    _cleanup_ (asked_clear) struct asked a = { 0 };
    _cleanup_free_ char *work_root = home_work_root (cli_value (args, "--workdir"), ".", err);
    const json_t *job =
        work_root && begin (args, &a, err) ? fleet_view_find (&a.view, address, err) : NULL;
    if (! job)
        return false;
    show_below (&a, job, work_root, 0);
    return true;
}
