/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur cancel`: ends one task of a running session through its door (spec/cli.md 3, spec/door.md
 * 17).
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/running/commands.h"
#include "cli/running/fleet_sessions.h"
#include "cli/running/running_session.h"
#include "cli/running/task_words.h"
#include "client/door_client.h"

#include <string.h>

#define TASK_NOT_FOUND      (-32001)
#define TASK_NOT_CANCELABLE (-32002)

/* The residue artifact of a cancelled task, one data part an item. */
static void
print_task_residue (const json_t *task)
{
    size_t i, p;
    const json_t *artifact, *part;
    json_array_foreach (json_object_get (task, "artifacts"), i, artifact)
        json_array_foreach (json_object_get (artifact, "parts"), p, part)
    {
        const json_t *data = json_object_get (part, "data");
        if (data)
            print_residue (data);
    }
}

static void
print_task (const char *id, const json_t *task)
{
    const json_t *status = json_object_get (task, "status");
    _cleanup_free_ char *word = printed_state (json_get_string (status, "state"));
    out_printf ("task:    %s\nstate:   %s\n", id, word);
}

/* Asks, and on "already ended" asks what became of it. */
static bool
cancel (struct http_client *client, const char *url, const struct secret *token, const char *id,
        struct mur_error **err)
{
    _cleanup_json_ json_t *params = json_object ();
    json_set_string (params, "id", id);
    struct door_call call = { url, token, "CancelTask", params, 30000 };
    int code;
    _cleanup_error_ struct mur_error *caught = NULL;
    _cleanup_json_ json_t *answer = door_call (client, &call, &code, &caught);
    if (code == TASK_NOT_FOUND)
        return mur_fail (err, E_IO_003, "the capsule at %s knows no task %s", url, id);
    if (! answer && code != TASK_NOT_CANCELABLE)
        return mur_propagate (err, steal_ptr (&caught));
    if (answer) {
        const json_t *task = json_object_get (answer, "task");
        print_task (id, task ? task : answer);
        print_task_residue (task ? task : answer);
        return true;
    }
    call.method = "GetTask";
    _cleanup_json_ json_t *ended = door_call (client, &call, &code, err);
    if (! ended)
        return false;
    print_task (id, ended);
    out_puts ("nothing to cancel: the task had already ended\n");
    return true;
}

static bool
cancel_at_url (const struct cli_args *args, struct http_client *client, struct mur_error **err)
{
    _cleanup_secret_ struct secret *token = door_token_of_environment ();
    return cancel (client, cli_value (args, "--url"), token, cli_positional (args, "SESSION"), err);
}

static bool
cancel_in_session (const struct cli_args *args, struct http_client *client, struct mur_error **err)
{
    _cleanup_ (running_scan_free) struct running_scan scan = { 0 };
    const struct running_entry *e =
        fleet_sessions_session (args, cli_positional (args, "SESSION"), client, &scan, err);
    if (! e)
        return false;
    if (! door_answers (client, &e->record))
        return running_session_deaf (&e->record, err);
    return cancel (client, e->record.url, e->record.door_token, cli_positional (args, "TASK_ID"),
                   err);
}

int
cmd_cancel (const struct cli_args *args, struct mur_error **err)
{
    struct http_client *client = http_client_new ();
    bool is_ok = cli_has (args, "--url") ? cancel_at_url (args, client, err)
                                         : cancel_in_session (args, client, err);
    http_client_free (client);
    return is_ok ? CLI_OK : CLI_FAILED;
}
