/* SPDX-License-Identifier: Apache-2.0
 *
 * The client of an API server against a scripted one: answers are values, a list is watched over
 * pages, changes, and the server's having forgotten.
 */
#include "tests/unit/net/loop_server.h"
#include "tests/unit/testing.h"

#include "net/kube/kube.h"
#include "net/kube/kube_watch.h"

#include <string.h>

struct script {
    atomic_int lists, streams, refusals;
    struct buf told; /* what the watcher was told, a word each */
    struct cancel *cancel;
};

static void
send_stream (int fd, const char *lines)
{
    _cleanup_free_ char *text = x_asprintf (
        "HTTP/1.1 200 OK\r\ncontent-length: %zu\r\ncontent-type: application/json\r\n\r\n%s",
        strlen (lines), lines);
    loop_send (fd, text);
}

/* First a list of two pages, a stream that says 410, then another list and a stream. */
static void
serve (void *ctx, int fd, int number)
{
    (void)number;
    struct script *s = ctx;
    _cleanup_buf_ struct buf head = { 0 }, body = { 0 };
    while (loop_read_request (fd, &head, &body)) {
        const char *h = head.data;
        if (strstr (h, "GET /busy "))
            loop_answer (fd,
                         atomic_fetch_add (&s->refusals, 1) ? "200 OK"
                                                            : "429 Too Many\r\nretry-after: 0.01",
                         "{\"kind\":\"Job\"}");
        else if (strstr (h, "POST /quota "))
            loop_answer (
                fd, "403 Forbidden",
                "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"exceeded quota: q\"}");
        else if (strstr (h, "watch=true"))
            send_stream (fd,
                         atomic_fetch_add (&s->streams, 1)
                             ? "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"c\"}}}\n"
                             : "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"c\"}}}\n"
                               "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n");
        else if (strstr (h, "continue=more"))
            loop_answer (
                fd, "200 OK",
                "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"metadata\":{\"name\":\"b\"}}]}");
        else if (strstr (h, "GET /nothing "))
            loop_answer (fd, "200 OK", "<html>");
        else if (atomic_fetch_add (&s->lists, 1))
            loop_answer (fd, "200 OK", "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[]}");
        else
            loop_answer (
                fd, "200 OK",
                "{\"metadata\":{\"continue\":\"more\"},\"items\":[{\"metadata\":{\"name\":\"a\"}}]}");
        buf_truncate (&head, 0);
        buf_truncate (&body, 0);
    }
}

static struct kube *
client_of (struct loop_server *server)
{
    char path[] = "/tmp/kubeconfig-XXXXXX";
    FILE *f = fdopen (mkstemp (path), "w");
    assert_non_null (f);
    fprintf (
        f,
        "current-context: x\ncontexts: [{name: x, context: {cluster: x, user: x, namespace: n}}]\n"
        "clusters: [{name: x, cluster: {server: 'http://127.0.0.1:%d'}}]\n"
        "users: [{name: x, user: {token: t}}]\n",
        loop_server_port (server));
    fclose (f);
    struct kube *k = NULL;
    assert_succeeds ((k = kube_new (path, &err)) != NULL);
    unlink (path);
    return k;
}

static void
test_answers_are_values (void **state)
{
    (void)state;
    struct script s = { 0 };
    struct loop_server *server = loop_server_new (serve, &s);
    struct kube *k = client_of (server);
    struct kube_answer a;
    assert_string_equal (kube_namespace (k), "n");
    assert_succeeds (
        kube_call (k, &(struct kube_call){ .method = "GET", .path = "/busy" }, &a, &err));
    assert_int_equal (a.status, 200);
    assert_int_equal (s.refusals, 2);
    kube_answer_clear (&a);
    _cleanup_json_ json_t *body = json_object ();
    const struct kube_call post = { .method = "POST", .path = "/quota", .body = body };
    assert_succeeds (kube_call (k, &post, &a, &err));
    assert_int_equal (a.status, 403);
    assert_string_equal (a.reason, "Forbidden");
    assert_string_equal (a.message, "exceeded quota: q");
    kube_answer_clear (&a);
    assert_fails (
        kube_call (k, &(struct kube_call){ .method = "GET", .path = "/nothing" }, &a, &err),
        E_KUB_002);
    _cleanup_free_ char *escaped = kube_escape ("a=b/c");
    assert_string_equal (escaped, "a%3Db%2Fc");
    kube_free (k);
    loop_server_free (server);
}

static void
on_begin (void *ctx)
{
    buf_puts (&((struct script *)ctx)->told, "begin ");
}

static void
on_object (void *ctx, const json_t *object)
{
    const char *name = json_get_string (json_object_get (object, "metadata"), "name");
    buf_printf (&((struct script *)ctx)->told, "+%s ", name);
}

static void
on_end (void *ctx)
{
    buf_puts (&((struct script *)ctx)->told, "end ");
}

static void
on_gone (void *ctx, const json_t *object)
{
    struct script *s = ctx;
    const char *name = json_get_string (json_object_get (object, "metadata"), "name");
    buf_printf (&s->told, "-%s ", name);
    cancel_raise (s->cancel);
}

static void
test_a_list_is_watched_and_begun_anew_when_it_was_forgotten (void **state)
{
    (void)state;
    struct script s = { .cancel = cancel_new () };
    struct loop_server *server = loop_server_new (serve, &s);
    struct kube *k = client_of (server);
    const struct kube_watcher w = { .path = "/jobs",
                                    .query = "labelSelector=x",
                                    .begin = on_begin,
                                    .object = on_object,
                                    .end = on_end,
                                    .gone = on_gone,
                                    .ctx = &s };
    kube_watch (k, &w, s.cancel);
    assert_string_equal (s.told.data, "begin +a +b end +c begin end -c ");
    cancel_unref (s.cancel);
    buf_free (&s.told);
    kube_free (k);
    loop_server_free (server);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_answers_are_values),
        cmocka_unit_test (test_a_list_is_watched_and_begun_anew_when_it_was_forgotten),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
