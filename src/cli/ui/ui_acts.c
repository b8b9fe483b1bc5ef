/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_acts.h"

#include "base/alloc.h"
#include "cli/running/door_task.h"
#include "cli/ui/ui_child.h"
#include "cli/ui/ui_gate.h"
#include "client/door_client.h"
#include "client/door_message.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define DOOR_MS   10000
#define CHILD_MS  300000
#define SEEN_MOST 64
#define SEEN_LEN  40

struct ui_acts {
    struct ui_world *world;
    struct http_client *client;
    bool is_read_only;
    int stop_fd;

    pthread_mutex_t lock;
    char seen[SEEN_MOST][SEEN_LEN]; /* what was sent already */
    size_t next;
};

struct act {
    struct ui_acts *acts;
    struct http_exchange *x;
    const char *session;
    const json_t *asked;
};

struct ui_acts *
ui_acts_new (struct ui_world *world, struct http_client *client, bool is_read_only)
{
    struct ui_acts *a = x_new0 (struct ui_acts);
    pthread_mutex_init (&a->lock, NULL);
    a->world = world;
    a->client = client;
    a->is_read_only = is_read_only;
    a->stop_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    return a;
}

void
ui_acts_free (struct ui_acts *a)
{
    if (! a)
        return;
    if (a->stop_fd >= 0)
        close (a->stop_fd);
    pthread_mutex_destroy (&a->lock);
    free (a);
}

void
ui_acts_stop (struct ui_acts *a)
{
    uint64_t one = 1;
    (void)! write (a->stop_fd, &one, sizeof one);
}

int
ui_acts_stop_fd (const struct ui_acts *a)
{
    return a->stop_fd;
}

/* --- asking the door --- */

/* What the door says in the way of refusing is the page's 409: the person saw something older. */
static void
call_door (const struct act *a, const char *method, json_t *params)
{
    _cleanup_json_ json_t *owned = params;
    _cleanup_ui_door_ struct ui_door door = { 0 };
    if (! ui_world_door (a->acts->world, a->session, &door)) {
        ui_reply_error (a->x, 409, "the session does not run any more");
        return;
    }
    struct door_call call = { door.url, door.token, method, owned, DOOR_MS };
    int code = 0;
    _cleanup_error_ struct mur_error *err = NULL;
    json_t *result = door_call (a->acts->client, &call, &code, &err);
    if (! result) {
        ui_reply_error (a->x, code ? 409 : 502, "%s", err->message);
    } else {
        const json_t *task = json_object_get (result, "task");
        const json_t *status = json_object_get (task ? task : result, "status");
        json_t *answer = json_object ();
        bool is_rejected = str_eq (json_get_string (status, "state"), "TASK_STATE_REJECTED");
        json_set_string (answer, "task", json_get_string (task ? task : result, "id"));
        json_set_string (answer, "state", json_get_string (status, "state"));
        if (is_rejected)
            json_set_string (answer, "error", "the capsule is busy: it takes no task now");
        ui_reply_json (a->x, is_rejected ? 409 : 200, answer);
        json_decref (result);
    }
    ui_world_poke (a->acts->world);
}

static json_t *
at_once (json_t *params)
{
    json_object_set_new (params, "configuration", json_pack ("{s:b}", "returnImmediately", 1));
    return params;
}

static void
act_task (const struct act *a)
{
    const char *text = json_get_string (a->asked, "text");
    if (! text || ! *text)
        ui_reply_error (a->x, 400, "text is missing: what the task is");
    else
        call_door (a, "SendMessage",
                   at_once (door_message (text, strlen (text),
                                          json_get_string (a->asked, "context"), NULL)));
}

static void
act_reply (const struct act *a)
{
    const char *task = json_get_string (a->asked, "task");
    const char *answer = json_get_string (a->asked, "answer");
    const char *question = json_get_string (a->asked, "question_id");
    if (! task || ! answer || ! *answer) {
        ui_reply_error (a->x, 400, "task and answer are wanted");
        return;
    }
    if (! question) {
        call_door (a, "SendMessage", at_once (door_message (answer, strlen (answer), NULL, task)));
        return;
    }
    _cleanup_json_ json_t *data = json_pack ("{s:s}", "question_id", question);
    call_door (a, "SendMessage", at_once (door_message_answer (task, data, answer)));
}

/* --- other commands of this program --- */

static void
run_command (const struct act *a, const char *const *words)
{
    struct ui_child_result r;
    _cleanup_error_ struct mur_error *err = NULL;
    if (! ui_child_run (words, CHILD_MS, a->acts->stop_fd, &r, &err)) {
        ui_reply_error (a->x, 500, "%s", err->message);
        return;
    }
    json_t *answer = json_object ();
    json_set_u64 (answer, "status", (uint64_t)r.status);
    json_set_bool (answer, "is_late", r.is_late);
    json_set_string_n (answer, "output", r.out.data ? r.out.data : "", r.out.len);
    json_set_string_n (answer, "errors", r.err.data ? r.err.data : "", r.err.len);
    ui_child_result_clear (&r);
    ui_world_poke (a->acts->world);
    ui_reply_json (a->x, 200, answer);
}

static bool
runs (const struct act *a)
{
    _cleanup_ui_door_ struct ui_door door = { 0 };
    if (ui_world_door (a->acts->world, a->session, &door))
        return true;
    ui_reply_error (a->x, 409, "the session does not run any more");
    return false;
}

static void
act_cancel (const struct act *a)
{
    const char *task = json_get_string (a->asked, "task");
    if (! task || ! str_starts (task, "tsk_"))
        ui_reply_error (a->x, 400, "task is missing: which one to cancel");
    else if (runs (a))
        run_command (a, (const char *const[]){ "cancel", a->session, task, NULL });
}

static void
act_stop (const struct act *a)
{
    if (runs (a))
        run_command (a, (const char *const[]){ "stop", a->session, NULL });
}

static void
act_replay (const struct act *a)
{
    _cleanup_ui_place_ struct ui_place place = { 0 };
    if (! ui_world_place (a->acts->world, a->session, &place))
        ui_reply_error (a->x, 404, "there is no such session");
    else
        run_command (a, (const char *const[]){ "replay", a->session, "--workdir", place.work_root,
                                               "--json", NULL });
}

/* What came before the turn is served, and from there on it is live, on the files of that turn. */
static void
act_fork (const struct act *a)
{
    uint64_t turn;
    _cleanup_ui_place_ struct ui_place place = { 0 };
    if (! json_get_u64 (a->asked, "turn", &turn)) {
        ui_reply_error (a->x, 400, "turn is missing: where to go on from");
        return;
    }
    if (! ui_world_place (a->acts->world, a->session, &place)) {
        ui_reply_error (a->x, 404, "there is no such session");
        return;
    }
    _cleanup_free_ char *from = x_asprintf ("%" PRIu64, turn);
    run_command (a, (const char *const[]){ "replay", a->session, "--workdir", place.work_root,
                                           "--from", from, "--json", NULL });
}

static const struct {
    const char *name;
    void (*run) (const struct act *a);
} acts[] = { { "task", act_task }, { "reply", act_reply },   { "cancel", act_cancel },
             { "stop", act_stop }, { "replay", act_replay }, { "fork", act_fork } };

bool
ui_act_exists (const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN (acts); i++)
        if (str_eq (acts[i].name, name))
            return true;
    return false;
}

/* --- once --- */

/* False: this was sent before. */
static bool
is_first (struct ui_acts *a, const char *request_id)
{
    bool is_new = true;
    pthread_mutex_lock (&a->lock);
    for (size_t i = 0; i < SEEN_MOST; i++)
        is_new &= strcmp (a->seen[i], request_id) != 0;
    if (is_new)
        snprintf (a->seen[a->next++ % SEEN_MOST], SEEN_LEN, "%s", request_id);
    pthread_mutex_unlock (&a->lock);
    return is_new;
}

void
ui_act (struct ui_acts *a, struct http_exchange *x, const char *session, const char *name)
{
    size_t len;
    const char *body = http_exchange_body (x, &len);
    _cleanup_json_ json_t *asked = json_loadb (body, len, JSON_REJECT_DUPLICATES, NULL);
    const char *request_id = json_get_string (asked, "request_id");
    struct act act = { a, x, session, asked };
    if (a->is_read_only) {
        ui_reply_error (x, 403, "this page is read-only: start mur ui without --read-only");
        return;
    }
    if (! request_id || ! *request_id || strlen (request_id) >= SEEN_LEN) {
        ui_reply_error (x, 400, "request_id is missing: a word of its own for each act");
        return;
    }
    if (! is_first (a, request_id)) {
        ui_reply_error (x, 409, "this was sent already");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN (acts); i++)
        if (str_eq (acts[i].name, name))
            acts[i].run (&act);
}
