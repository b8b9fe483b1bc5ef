/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/door/door_bench.h"

#include "base/clock.h"
#include "door/tasks/tasks.h"
#include "tests/unit/net/loop_server.h"
#include "tests/unit/testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static const char *const tools[] = { "local/echo-tool" };

struct card_facts
facts_of (const struct bench *b)
{
    return (struct card_facts){ .capsule_name = "demo",
                                .capsule_version = "1.2.3",
                                .session_id = "ses_00000000000000000000000000000001",
                                .tools = tools,
                                .tool_count = 1,
                                .has_network = true,
                                .acceptance = b->spec.acceptance };
}

void
bench_begin (struct bench *b)
{
    b->spec.is_public = true;
    b->registry = registry_new (&b->spec);
    assert_succeeds (b->door = door_bind ("127.0.0.1", 0, &err));
    struct card_facts facts = facts_of (b);
    assert_succeeds (door_serve (b->door, &facts, b->registry, &err));
}

void
bench_end (struct bench *b)
{
    door_close (b->door);
    registry_free (b->registry);
}

int
dial (const struct bench *b)
{
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons ((uint16_t)door_port (b->door)),
                              .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
    assert_int_equal (connect (fd, (struct sockaddr *)&to, sizeof to), 0);
    struct timeval patience = { .tv_sec = 10 };
    setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

/* Reads one answer; its head (owned) in *head when not NULL. */
char *
read_answer (int fd, char **head)
{
    struct buf h = { 0 }, body = { 0 };
    if (! loop_read_request (fd, &h, &body))
        fail_msg ("no answer");
    if (head)
        *head = buf_steal (&h);
    buf_free (&h);
    return buf_steal (&body);
}

char *
exchange (const struct bench *b, const char *request, char **head)
{
    int fd = dial (b);
    loop_send (fd, request);
    char *body = read_answer (fd, head);
    close (fd);
    return body;
}

void
post (int fd, const char *headers, const char *body)
{
    _cleanup_free_ char *request =
        x_asprintf ("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s"
                    "Content-Length: %zu\r\n\r\n%s",
                    headers, strlen (body), body);
    loop_send (fd, request);
}

json_t *
call (const struct bench *b, const char *headers, const char *body)
{
    int fd = dial (b);
    post (fd, headers, body);
    _cleanup_free_ char *text = read_answer (fd, NULL);
    close (fd);
    json_t *answer = json_loads (text, 0, NULL);
    if (! answer)
        fail_msg ("not JSON: %s", text);
    return answer;
}

json_int_t
error_code (const json_t *answer)
{
    return json_integer_value (json_object_get (json_object_get (answer, "error"), "code"));
}

const char *
reason_of (const json_t *answer)
{
    const json_t *data = json_object_get (json_object_get (answer, "error"), "data");
    return json_get_string (json_array_get (data, 0), "reason");
}

json_t *
send_text (const struct bench *b, const char *text)
{
    _cleanup_free_ char *body = x_asprintf (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":"
        "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"%s\"}]},"
        "\"configuration\":{\"returnImmediately\":true}}}",
        text);
    return call (b, VERSION, body);
}

json_t *
task_of (const json_t *answer)
{
    return json_object_get (json_object_get (answer, "result"), "task");
}

const char *
state_of (const json_t *task)
{
    return json_get_string (json_object_get (task, "status"), "state");
}

json_t *
get_task (const struct bench *b, const char *id)
{
    _cleanup_free_ char *body = x_asprintf (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":{\"id\":\"%s\"}}", id);
    return call (b, VERSION, body);
}

void
finish (struct bench *b, const struct task *task, const char *answer)
{
    struct task_ending ending = { .state = TASK_COMPLETED, .response = answer };
    assert_int_equal (registry_end (b->registry, task, &ending), TASK_COMPLETED);
}
