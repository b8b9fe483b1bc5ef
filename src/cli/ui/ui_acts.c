/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_acts.h"

#include "base/alloc.h"
#include "cli/running/door_task.h"
#include "cli/ui/ui_capsules.h"
#include "cli/ui/ui_child.h"
#include "cli/ui/ui_gate.h"
#include "cli/ui/ui_launch.h"
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
#define MODEL_LEN 200
#define MOST_SECS 315360000 /* as mur run takes them */

struct ui_acts {
    struct ui_world *world;
    struct http_client *client;
    const char *workdir;
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
ui_acts_new (struct ui_world *world, struct http_client *client, const char *workdir,
             bool is_read_only)
{
    struct ui_acts *a = x_new0 (struct ui_acts);
    pthread_mutex_init (&a->lock, NULL);
    a->world = world;
    a->client = client;
    a->workdir = workdir;
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

#define MOST_WORDS 10

/* A command about the session: what it is, what comes behind the session (NULL: nothing), and where
 * the session is. */
static void
run_about (const struct act *a, const char *command, const char *what)
{
    const char *words[MOST_WORDS] = { command, a->session, what };
    const char *const *where = ui_world_words (a->acts->world, a->session);
    for (size_t len = what ? 3 : 2; *where && len < MOST_WORDS - 1; where++)
        words[len++] = *where;
    run_command (a, words);
}

static void
act_cancel (const struct act *a)
{
    const char *task = json_get_string (a->asked, "task");
    if (! task || ! str_starts (task, "tsk_"))
        ui_reply_error (a->x, 400, "task is missing: which one to cancel");
    else if (runs (a))
        run_about (a, "cancel", task);
}

static void
act_stop (const struct act *a)
{
    if (runs (a))
        run_about (a, "stop", NULL);
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

/* --- a new session --- */

/* A number somebody may give. False: what is there is none. */
static bool
number_given (const json_t *asked, const char *key, uint64_t most, uint64_t *n)
{
    const json_t *value = json_object_get (asked, key);
    *n = json_is_integer (value) && json_integer_value (value) > 0
             ? (uint64_t)json_integer_value (value)
             : 0;
    return ! value || json_is_null (value) || (*n && *n <= most);
}

static bool
is_model_name (const char *text)
{
    size_t len = strlen (text);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return len && len <= MODEL_LEN && text[strspn (text, " ")];
}

/* NULL, or what is wrong with what was sent. */
static const char *
read_launch (const json_t *asked, struct ui_launch *l)
{
    static const char *const known[] = { "request_id", "capsule", "seen",     "task",
                                         "model",      "goes_on", "deadline", "max_session_tokens",
                                         NULL };
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)asked, key, value)
    {
        size_t i = 0;
        while (known[i] && ! str_eq (known[i], key))
            i++;
        if (! known[i])
            return "there is a key that is none: capsule, seen, task, model, max_session_tokens, "
                   "deadline and goes_on are taken";
    }
    const json_t *model = json_object_get (asked, "model"),
                 *goes_on = json_object_get (asked, "goes_on");
    l->task = json_get_string (asked, "task");
    l->model = json_string_value (model);
    l->goes_on = json_is_true (goes_on);
    if (! l->task || l->task[strspn (l->task, " \t\r\n")] == '\0')
        return "task is missing: what it shall do";
    if (model && ! json_is_null (model) && (! l->model || ! is_model_name (l->model)))
        return "model is a name of at most 200 bytes";
    if (goes_on && ! json_is_boolean (goes_on))
        return "goes_on is true or false";
    if (! number_given (asked, "max_session_tokens", INT64_MAX, &l->max_session_tokens))
        return "max_session_tokens is a number above 0";
    if (! number_given (asked, "deadline", MOST_SECS, &l->deadline_secs))
        return "deadline is a number of seconds, from 1 to 315360000";
    return NULL;
}

static void
act_run (const struct act *a)
{
    struct ui_launch launch = { 0 };
    _cleanup_ui_capsules_ struct ui_capsules all = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    const char *id = json_get_string (a->asked, "capsule");
    const char *wrong = read_launch (a->asked, &launch);
    if (! id)
        wrong = "capsule is missing: an id of GET /api/capsules";
    if (wrong) {
        ui_reply_error (a->x, 400, "%s", wrong);
        return;
    }
    if (! ui_capsules_read (a->acts->workdir, &all, &err)) {
        ui_reply_error (a->x, 500, "%s", err->message);
        return;
    }
    launch.capsule = ui_capsules_find (&all, id);
    if (! launch.capsule) {
        ui_reply_error (a->x, 404, "no such capsule is known here: look again");
    } else if (launch.capsule->why_not) {
        ui_reply_error (a->x, 422, "%s", launch.capsule->why_not);
    } else if (! str_eq (json_get_string (a->asked, "seen"), launch.capsule->seen)) {
        ui_reply_error (a->x, 409,
                        "its manifest is another than the one you looked at: look again");
    } else {
        _cleanup_free_ char *session = ui_launch (&launch, a->acts->stop_fd, &err);
        ui_world_poke (a->acts->world);
        if (session)
            ui_reply_json (a->x, 200, json_pack ("{s:s}", "session", session));
        else
            ui_reply_error (a->x, 422, "%s", err->message);
    }
}

/* --- which there are --- */

static const struct {
    const char *name;
    bool is_of_session;
    void (*run) (const struct act *a);
} acts[] = { { "task", true, act_task },     { "reply", true, act_reply },
             { "cancel", true, act_cancel }, { "stop", true, act_stop },
             { "replay", true, act_replay }, { "fork", true, act_fork },
             { "run", false, act_run } };

bool
ui_act_exists (const char *name, bool is_of_session)
{
    for (size_t i = 0; i < ARRAY_LEN (acts); i++)
        if (str_eq (acts[i].name, name) && acts[i].is_of_session == is_of_session)
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
