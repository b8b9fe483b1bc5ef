/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole door under load: clients that send, watch, cancel and leave at random, and a task loop
 * that runs what they send. Made for the thread sanitizer (scripts/check-threads); without it, a
 * short run of what must always hold.
 *
 * Asserted: each accepted task ends exactly once, whatever raced with it; a watch sees every id in
 * order or is told how many it lost; closing leaves nobody waiting.
 *
 *   stress_door [MILLISECONDS]
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "door/door.h"
#include "door/tasks/intake.h"
#include "door/tasks/registry.h"
#include "door/tasks/streams.h"
#include "door/tasks/tasks.h"
#include "tests/unit/net/loop_server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#undef assert /* these must hold in every build */
#define assert(fact)                                                                               \
    do {                                                                                           \
        if (! (fact)) {                                                                            \
            fprintf (stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact);                            \
            abort ();                                                                              \
        }                                                                                          \
    } while (0)

#define CLIENTS  6
#define WATCHERS 3
#define HEAD     "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n"

struct stress {
    struct registry *registry;
    struct door *door;
    unsigned port;
    atomic_bool is_over;
    atomic_ulong sent, answered, tasks_run, tasks_canceled;
};

struct client {
    struct stress *s;
    pthread_t thread;
    uint64_t seed;
    char known[16][64]; /* ids of tasks, to ask about */
};

static uint64_t
draw (struct client *c, uint64_t bound)
{
    c->seed = c->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (c->seed >> 33) % bound;
}

static int
dial (const struct stress *s)
{
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons ((uint16_t)s->port),
                              .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
    struct timeval patience = { .tv_sec = 20 };
    setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect (fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close (fd);
    return -1;
}

/* --- the task loop --- */

static void
run_task (struct stress *s, const struct task *task, unsigned number)
{
    struct streams *streams = registry_streams (s->registry);
    streams_working (streams, task, "inference turn 1", 0);
    for (unsigned i = 0; i < number % 40 && ! cancel_is_raised (task->cancel); i++)
        streams_text (streams, task, "text", 4, false);
    if (number % 5 == 0) {
        const struct question question = { .text = "what?" };
        _cleanup_ (question_reply_clear) struct question_reply reply = { 0 };
        registry_ask (s->registry, task, &question, 3, &reply);
    }
    if (number % 7 == 0)
        cancel_sleep (task->cancel, 2);
    struct task_ending ending = { .state = number % 3 ? TASK_COMPLETED : TASK_FAILED,
                                  .response = "the answer" };
    enum task_state stands = registry_end (s->registry, task, &ending);
    assert (stands == ending.state || stands == TASK_CANCELED);
    atomic_fetch_add (stands == TASK_CANCELED ? &s->tasks_canceled : &s->tasks_run, 1);
}

static void *
loop (void *ctx)
{
    struct stress *s = ctx;
    for (unsigned number = 0;; number++) {
        const struct task *task;
        enum registry_next next = registry_next (s->registry, UINT64_MAX, &task);
        if (next == REGISTRY_INTERRUPTED)
            return NULL;
        if (next == REGISTRY_TASK)
            run_task (s, task, number);
    }
}

/* What ends beside the loop pokes it, as commands do. */
static void *
poke (void *ctx)
{
    struct stress *s = ctx;
    while (! s->is_over) {
        registry_poke (s->registry);
        const struct timespec pause = { .tv_nsec = 300000 };
        nanosleep (&pause, NULL);
    }
    return NULL;
}

/* --- clients --- */

static void
post (int fd, const char *method, const char *params)
{
    _cleanup_free_ char *body = x_asprintf (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}", method, params);
    _cleanup_free_ char *request =
        x_asprintf (HEAD "A2A-Extensions: https://docs.murmur.nexus/reference/streaming-protocol/"
                         "#murmur-stream-v1\r\nContent-Length: %zu\r\n\r\n%s",
                    strlen (body), body);
    (void)! send (fd, request, strlen (request), MSG_NOSIGNAL);
}

static void
remember (struct client *c, const char *answer)
{
    const char *id = strstr (answer, "\"tsk_");
    if (id)
        snprintf (c->known[draw (c, 16)], sizeof c->known[0], "%.36s", id + 1);
}

/* One answer is read whole, or the connection is dropped on the way. */
static void
ask (struct client *c)
{
    static const char message[] =
        "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}]}%s}";
    static const char *const about_task[] = { "GetTask", "CancelTask", "SubscribeToTask" };
    int fd = dial (c->s);
    if (fd < 0)
        return;
    uint64_t what = draw (c, 10);
    char params[256];
    snprintf (params, sizeof params, message,
              what == 0 ? ",\"configuration\":{\"returnImmediately\":true}" : "");
    if (what < 2)
        post (fd, "SendMessage", params);
    else if (what == 2)
        post (fd, "SendStreamingMessage", params);
    else if (what == 3)
        post (fd, "ListTasks", "{\"pageSize\":20,\"includeArtifacts\":true}");
    else if (what == 4 && draw (c, 20) == 0)
        post (fd, "murmur.StopSession", "{}");
    else {
        snprintf (params, sizeof params, "{\"id\":\"%s\"}", c->known[draw (c, 16)]);
        post (fd, about_task[what % 3], params);
    }
    atomic_fetch_add (&c->s->sent, 1);
    if (draw (c, 4)) {
        char answer[16384];
        ssize_t n = recv (fd, answer, sizeof answer - 1, 0);
        assert (n >= 0 || errno == ECONNRESET || c->s->is_over);
        if (n > 0) {
            answer[n] = '\0';
            remember (c, answer);
            atomic_fetch_add (&c->s->answered, 1);
        }
    }
    close (fd);
}

static void *
client (void *ctx)
{
    struct client *c = ctx;
    while (! c->s->is_over)
        ask (c);
    return NULL;
}

/* Every id comes in order, and what is missing was told. */
static void
check_events (const char *text, uint64_t *last)
{
    const char *id = strstr (text, "id: ");
    if (strncmp (text, "id: ", 4) == 0) {
        uint64_t number = strtoull (id + 4, NULL, 10);
        assert (number == *last + 1);
        *last = number;
        return;
    }
    const char *missed = strstr (text, "\"missed\":");
    if (missed)
        *last += strtoull (missed + strlen ("\"missed\":"), NULL, 10);
    const char *gap = strstr (text, "\"firstAvailableId\":");
    if (gap)
        *last = strtoull (gap + strlen ("\"firstAvailableId\":"), NULL, 10) - 1;
}

static void
watch_once (struct client *c)
{
    int fd = dial (c->s);
    if (fd < 0)
        return;
    post (fd, "murmur.WatchSession", "{}");
    struct buf text = { 0 };
    uint64_t last = 0, events = 0, most = 50 + draw (c, 2000);
    bool has_head = false;
    char chunk[4096];
    ssize_t n;
    while (events < most && (n = recv (fd, chunk, sizeof chunk, 0)) > 0) {
        buf_append (&text, chunk, (size_t)n);
        char *at = text.data, *end;
        if (! has_head && (end = strstr (at, "\r\n\r\n"))) {
            has_head = true;
            at = end + 4;
        }
        while (has_head && (end = strstr (at, "\n\n"))) {
            *end = '\0';
            check_events (at, &last);
            events++;
            at = end + 2;
        }
        size_t left = text.len - (size_t)(at - text.data);
        memmove (text.data, at, left);
        buf_truncate (&text, left);
        if (draw (c, 16) == 0) { /* slow at times */
            const struct timespec pause = { .tv_nsec = 2000000 };
            nanosleep (&pause, NULL);
        }
    }
    buf_free (&text);
    close (fd);
}

static void *
watcher (void *ctx)
{
    struct client *c = ctx;
    while (! c->s->is_over)
        watch_once (c);
    return NULL;
}

/* --- the end --- */

static void
check_that_all_ended (struct stress *s)
{
    static const struct caller everyone = { .credential = NULL };
    const struct list_query live[] = {
        { .page_size = 100, .has_state = true, .state = TASK_WORKING },
        { .page_size = 100, .has_state = true, .state = TASK_SUBMITTED }
    };
    for (size_t i = 0; i < ARRAY_LEN (live); i++) {
        _cleanup_json_ json_t *left = registry_list_json (s->registry, &everyone, &live[i]);
        assert (json_integer_value (json_object_get (left, "totalSize")) == 0);
    }
}

int
main (int argc, char **argv)
{
    uint64_t run_ms = argc > 1 ? strtoull (argv[1], NULL, 10) : 1500;
    const struct registry_spec spec = { .acceptance = ACCEPT_QUEUE,
                                        .queue_depth = 8,
                                        .is_public = true };
    struct stress s = { .registry = registry_new (&spec) };
    struct mur_error *err = NULL;
    s.door = door_bind ("127.0.0.1", 0, &err);
    assert (s.door);
    s.port = door_port (s.door);
    const struct card_facts facts = { .capsule_name = "stress",
                                      .capsule_version = "1",
                                      .session_id = "ses_00000000000000000000000000000001",
                                      .acceptance = ACCEPT_QUEUE };
    assert (door_serve (s.door, &facts, s.registry, &err));

    pthread_t loop_thread, poker;
    struct client clients[CLIENTS + WATCHERS] = { 0 };
    pthread_create (&loop_thread, NULL, loop, &s);
    pthread_create (&poker, NULL, poke, &s);
    for (size_t i = 0; i < ARRAY_LEN (clients); i++) {
        clients[i].s = &s;
        clients[i].seed = i * 7919 + 1;
        pthread_create (&clients[i].thread, NULL, i < CLIENTS ? client : watcher, &clients[i]);
    }
    const struct timespec run = { (time_t)(run_ms / 1000), (long)(run_ms % 1000) * 1000000 };
    nanosleep (&run, NULL);

    /* As a session ends: cancel, interrupt, refuse what is queued, close the door. */
    struct strv ids = { 0 };
    registry_cancel_all (s.registry, &ids);
    registry_interrupt (s.registry);
    strv_free (&ids);
    pthread_join (loop_thread, NULL);
    const struct task **tasks, *task;
    registry_close (s.registry, true, &tasks);
    free (tasks);
    while (registry_next (s.registry, 0, &task) == REGISTRY_CANCELED_QUEUED)
        ;
    check_that_all_ended (&s);
    s.is_over = true;
    door_close (s.door);
    for (size_t i = 0; i < ARRAY_LEN (clients); i++)
        pthread_join (clients[i].thread, NULL);
    pthread_join (poker, NULL);
    printf ("%lu requests, %lu answers, %lu tasks run, %lu cancelled\n", s.sent, s.answered,
            s.tasks_run, s.tasks_canceled);
    assert (s.answered && s.tasks_run && s.tasks_canceled);
    registry_free (s.registry);
    return 0;
}
