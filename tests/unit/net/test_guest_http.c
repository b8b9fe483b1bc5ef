/* SPDX-License-Identifier: Apache-2.0
 *
 * Guests' outbound requests and the credential gateway, with this program standing in for the
 * engine's end of an exchange.
 */
#include "base/clock.h"
#include "net/guest_http.h"
#include "tests/unit/net/loop_server.h"
#include "tests/unit/testing.h"

#include <pthread.h>
#include <string.h>

/* --- the engine's end --- */

struct guest_http_reply {
    pthread_mutex_t lock;
    int status;
    struct buf head, body;
    unsigned heads, ends;
    enum guest_http_error error;
};

void
guest_http_reply_head (struct guest_http_reply *r, int status,
                       const struct guest_http_header *headers, size_t count)
{
    pthread_mutex_lock (&r->lock);
    r->heads++;
    r->status = status;
    for (size_t i = 0; i < count; i++)
        buf_printf (&r->head, "%s=%.*s\n", headers[i].name, (int)headers[i].value_len,
                    headers[i].value);
    pthread_mutex_unlock (&r->lock);
}

bool
guest_http_reply_body (struct guest_http_reply *r, const void *data, size_t len)
{
    pthread_mutex_lock (&r->lock);
    buf_append (&r->body, data, len);
    pthread_mutex_unlock (&r->lock);
    return true;
}

void
guest_http_reply_end (struct guest_http_reply *r, enum guest_http_error error)
{
    pthread_mutex_lock (&r->lock);
    r->ends++;
    r->error = error;
    pthread_mutex_unlock (&r->lock);
}

void
guest_http_reply_ready (struct guest_http_reply *r)
{
    (void)r;
}

static void
wait_for_end (struct guest_http_reply *r)
{
    uint64_t until = clock_monotonic_ms () + 10000;
    for (bool is_over = false; ! is_over;) {
        pthread_mutex_lock (&r->lock);
        is_over = r->ends > 0;
        pthread_mutex_unlock (&r->lock);
        if (! is_over && clock_monotonic_ms () > until)
            fail_msg ("no end");
        if (! is_over)
            usleep (1000);
    }
}

static void
reply_clear (struct guest_http_reply *r)
{
    buf_free (&r->head);
    buf_free (&r->body);
}

/* --- the provider --- */

struct provider {
    atomic_int requests;
    char heads[4][2048];
    char bodies[4][256];
    const char *answers[4]; /* whole answers; the last repeats */
};

static void
provide (void *ctx, int fd, int number)
{
    (void)number;
    struct provider *p = ctx;
    struct buf head = { 0 }, body = { 0 };
    while (loop_read_request (fd, &head, &body)) {
        int i = atomic_load (&p->requests);
        int slot = i < 4 ? i : 3;
        snprintf (p->heads[slot], sizeof p->heads[slot], "%s", head.data);
        snprintf (p->bodies[slot], sizeof p->bodies[slot], "%s", body.data ? body.data : "");
        atomic_fetch_add (&p->requests, 1);
        while (slot && ! p->answers[slot])
            slot--;
        loop_send (fd, p->answers[slot]);
    }
    buf_free (&head);
    buf_free (&body);
}

#define OK_ANSWER      "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
#define REFUSED_ANSWER "HTTP/1.1 401 Unauthorized\r\ncontent-length: 3\r\n\r\nbad"
#define BUSY_ANSWER    "HTTP/1.1 429 Slow\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n"

/* --- the operator's side --- */

struct operator
{
    pthread_mutex_t lock;
    const char *keys[4]; /* one a read; the last repeats; NULL: missing */
    unsigned reads;
    struct gateway_event events[4];
    unsigned event_count;
    bool is_admitted;
};

static void
read_key (void *ctx, struct gateway_key *out)
{
    struct operator* o = ctx;
    pthread_mutex_lock (&o->lock);
    const char *key = o->keys[o->reads < 4 ? o->reads : 3];
    o->reads++;
    pthread_mutex_unlock (&o->lock);
    out->source = GATEWAY_SOURCE_CONFIG;
    out->why = key ? GATEWAY_READABLE : GATEWAY_NO_ENTRY;
    out->value = key ? secret_new (key, strlen (key)) : NULL;
}

static void
on_event (void *ctx, const struct gateway_event *event)
{
    struct operator* o = ctx;
    o->events[o->event_count++] = *event;
}

static bool
is_admitted (void *ctx)
{
    return ((struct operator*)ctx)->is_admitted;
}

/* --- one bench --- */

struct bench {
    struct provider provider;
    struct operator operator;
    struct loop_server *server;
    struct http_client *client;
    struct redactor *redactor;
    struct gateway *gateway;
    struct allow_list allow;
    struct guest_http *guest;
};

static void
bench_begin (struct bench *b, const char *key, bool is_keyless, bool is_metered)
{
    pthread_mutex_init (&b->operator.lock, NULL);
    for (size_t i = 0; i < 4; i++)
        if (! b->operator.keys[i])
            b->operator.keys[i] = i ? b->operator.keys[i - 1] : key;
    if (! b->provider.answers[0])
        b->provider.answers[0] = OK_ANSWER;
    b->server = loop_server_new (provide, &b->provider);
    b->client = http_client_new ();
    b->redactor = redactor_new ();
    _cleanup_free_ char *endpoint =
        x_asprintf ("http://127.0.0.1:%d/v1/", loop_server_port (b->server));
    struct mur_error *err = NULL;
    b->gateway = gateway_new (
        &(struct gateway_spec){
            .artifact = "local/driver",
            .endpoint = endpoint,
            .auth_header = "X-Api-Key",
            .auth_value = "Key {key}!",
            .is_keyless = is_keyless,
            .is_metered = is_metered,
            .read_key = read_key,
            .on_event = on_event,
            .ctx = &b->operator,
            .redactor = b->redactor,
        },
        &err);
    assert_non_null (b->gateway);
    b->guest = guest_http_new (&(struct guest_http_spec) {
        .client = b->client,
        .allow = &b->allow,
        .gateway = b->gateway,
        .is_admitted = is_admitted,
        .ctx = &b->operator,
    });
}

static void
bench_end (struct bench *b)
{
    guest_http_free (b->guest);
    gateway_free (b->gateway);
    redactor_free (b->redactor);
    http_client_free (b->client);
    loop_server_free (b->server);
    allow_list_free (&b->allow);
}

/* Sends one request as a guest does and waits for its end. NULL authority: none. */
static enum guest_http_error
send_as_guest (struct guest_http *guest, const char *scheme, const char *authority,
               const char *body, struct guest_http_reply *reply)
{
    static const struct guest_http_header headers[] = {
        { "x-api-key", "stolen", 6 },
        { "X-API-KEY", "stolen again", 12 },
        { "authorization", "Bearer forged", 13 },
        { "content-type", "text/plain", 10 },
    };
    *reply = (struct guest_http_reply){ .lock = PTHREAD_MUTEX_INITIALIZER };
    struct guest_http_request request = {
        .method = body ? "POST" : "GET",
        .scheme = scheme,
        .authority = authority,
        .path_with_query = "/v1/messages?x=1",
        .headers = headers,
        .header_count = ARRAY_LEN (headers),
    };
    enum guest_http_error refused = GUEST_HTTP_OK;
    void *x = guest_http_handler.start (guest, &request, reply, &refused);
    if (! x)
        return refused;
    if (body)
        assert_true (guest_http_handler.body (x, body, strlen (body)));
    guest_http_handler.body_end (x, true);
    wait_for_end (reply);
    guest_http_handler.cancel (x);
    assert_int_equal (reply->ends, 1);
    return reply->error;
}

static int
count_of (const char *text, const char *what)
{
    int count = 0;
    for (const char *at = text; (at = strcasestr (at, what)); at++)
        count++;
    return count;
}

/* --- tests --- */

static void
test_containment_27_the_key_goes_upstream_once_and_only_there (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b, "sesame", false, false);
    struct guest_http_reply reply;
    assert_int_equal (send_as_guest (b.guest, "http", "127.0.0.1:9", "{}", &reply), GUEST_HTTP_OK);
    assert_int_equal (reply.status, 200);
    assert_string_equal (reply.body.data, "ok");
    const char *head = b.provider.heads[0];
    assert_true (strstr (head, "POST /v1/messages?x=1 HTTP/1.1\r\n") == head);
    assert_int_equal (count_of (head, "x-api-key:"), 1);
    assert_non_null (strstr (head, "\r\nx-api-key: Key sesame!\r\n"));
    assert_non_null (strstr (head, "\r\nauthorization: Bearer forged\r\n"));
    assert_int_equal (count_of (head, "\r\nhost: 127.0.0.1:"), 1);
    assert_null (strstr (head, "127.0.0.1:9\r\n"));
    assert_string_equal (b.provider.bodies[0], "{}");
    _cleanup_free_ char *clean = redactor_apply (b.redactor, "it said sesame there");
    assert_null (strstr (clean, "sesame"));
    _cleanup_free_ char *expected = x_asprintf ("127.0.0.1:%d", loop_server_port (b.server));
    assert_string_equal (gateway_host (b.gateway), expected);
    assert_string_equal (gateway_guest_endpoint (b.gateway), "http://127.0.0.1:9/v1");
    reply_clear (&reply);
    bench_end (&b);
}

static void
test_the_gateway_is_recognised_by_its_whole_authority (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b, "k3y!", false, false);
    static const struct {
        const char *scheme, *authority;
    } others[] = {
        { "https", "127.0.0.1:9" },
        { "http", "127.0.0.1" },
        { "http", "x@127.0.0.1:9" },
        { "http", "127.0.0.1:09" },
        { "http", "localhost:9" },
        { "http", NULL },
        { "http", "" },
        { "http", "127.0.0.1:9/a" },
    };
    struct guest_http_reply reply;
    for (size_t i = 0; i < ARRAY_LEN (others); i++) {
        assert_int_equal (
            send_as_guest (b.guest, others[i].scheme, others[i].authority, NULL, &reply),
            GUEST_HTTP_DENIED);
        assert_int_equal (reply.ends, 0);
    }
    assert_int_equal (b.operator.reads, 0);
    assert_int_equal (loop_server_connections (b.server), 0);
    bench_end (&b);
}

static void
test_containment_29_without_a_gateway_port_nine_is_an_ordinary_address (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b, "k3y!", false, false);
    struct guest_http *other =
        guest_http_new (&(struct guest_http_spec){ .client = b.client, .allow = &b.allow });
    struct guest_http_reply reply;
    assert_int_equal (send_as_guest (other, "http", "127.0.0.1:9", NULL, &reply),
                      GUEST_HTTP_DENIED);
    guest_http_free (other);
    bench_end (&b);
}

static void
test_a_metered_gateway_needs_an_open_admission (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b, "k3y!", false, true);
    struct guest_http_reply reply;
    assert_int_equal (send_as_guest (b.guest, "http", "127.0.0.1:9", "{}", &reply),
                      GUEST_HTTP_DENIED);
    assert_int_equal (b.operator.reads, 0);
    b.operator.is_admitted = true;
    assert_int_equal (send_as_guest (b.guest, "http", "127.0.0.1:9", "{}", &reply), GUEST_HTTP_OK);
    reply_clear (&reply);
    bench_end (&b);
}

static void
test_a_keyless_gateway_removes_and_adds_none (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b, NULL, true, false);
    struct guest_http_reply reply;
    assert_int_equal (send_as_guest (b.guest, "http", "127.0.0.1:9", "{}", &reply), GUEST_HTTP_OK);
    assert_int_equal (count_of (b.provider.heads[0], "x-api-key"), 0);
    assert_int_equal (b.operator.reads, 0);
    reply_clear (&reply);
    bench_end (&b);
}

static void
test_a_keyed_gateway_without_a_key_sends_nothing (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b, NULL, false, false);
    struct guest_http_reply reply;
    assert_int_equal (send_as_guest (b.guest, "http", "127.0.0.1:9", "{}", &reply),
                      GUEST_HTTP_INTERNAL_ERROR);
    assert_int_equal (loop_server_connections (b.server), 0);
    assert_int_equal (b.operator.event_count, 1);
    assert_int_equal (b.operator.events[0].change, GATEWAY_KEY_UNREADABLE);
    assert_string_equal (gateway_unreadable_name (b.operator.events[0].why), "no_entry");
    reply_clear (&reply);
    bench_end (&b);
}

static void
test_a_refused_key_that_did_not_change_is_recorded_and_the_401_returned (void **state)
{
    (void)state;
    struct bench b = { .provider.answers = { REFUSED_ANSWER } };
    bench_begin (&b, "stale", false, false);
    struct guest_http_reply reply;
    assert_int_equal (send_as_guest (b.guest, "http", "127.0.0.1:9", "{}", &reply), GUEST_HTTP_OK);
    assert_int_equal (reply.status, 401);
    assert_string_equal (reply.body.data, "bad");
    assert_int_equal (b.provider.requests, 1);
    assert_int_equal (b.operator.event_count, 1);
    assert_int_equal (b.operator.events[0].change, GATEWAY_REJECTED);
    assert_int_equal (b.operator.events[0].status, 401);
    assert_false (b.operator.events[0].is_retried);
    struct guest_http_observation seen;
    guest_http_observe (b.guest, &seen);
    assert_true (seen.is_credential_rejected);
    assert_int_equal (seen.status, 401);
    reply_clear (&reply);
    bench_end (&b);
}

static void
test_a_rotated_key_is_tried_once_with_the_same_bytes (void **state)
{
    (void)state;
    struct bench b = { .provider.answers = { REFUSED_ANSWER, OK_ANSWER },
                       .operator.keys = { "old-key", "new-key" } };
    bench_begin (&b, NULL, false, false);
    struct guest_http_reply reply;
    assert_int_equal (send_as_guest (b.guest, "http", "127.0.0.1:9", "bytes", &reply),
                      GUEST_HTTP_OK);
    assert_int_equal (reply.heads, 1);
    assert_int_equal (reply.status, 200);
    assert_string_equal (reply.body.data, "ok");
    assert_int_equal (b.provider.requests, 2);
    assert_non_null (strstr (b.provider.heads[0], "Key old-key!"));
    assert_non_null (strstr (b.provider.heads[1], "Key new-key!"));
    assert_string_equal (b.provider.bodies[1], "bytes");
    assert_int_equal (b.operator.event_count, 1);
    assert_int_equal (b.operator.events[0].change, GATEWAY_ROTATED);
    assert_true (b.operator.events[0].by_rejection);
    struct guest_http_observation seen;
    guest_http_observe (b.guest, &seen);
    assert_false (seen.is_credential_rejected);
    assert_int_equal (seen.status, 200);
    assert_int_equal (seen.requests, 1);
    reply_clear (&reply);
    bench_end (&b);
}

static void
test_a_second_refusal_is_final (void **state)
{
    (void)state;
    struct bench b = { .provider.answers = { REFUSED_ANSWER },
                       .operator.keys = { "key-one", "key-two", "key-three" } };
    bench_begin (&b, NULL, false, false);
    struct guest_http_reply reply;
    assert_int_equal (send_as_guest (b.guest, "http", "127.0.0.1:9", "bytes", &reply),
                      GUEST_HTTP_OK);
    assert_int_equal (reply.status, 401);
    assert_int_equal (b.provider.requests, 2);
    assert_int_equal (b.operator.event_count, 2);
    assert_int_equal (b.operator.events[1].change, GATEWAY_REJECTED);
    assert_true (b.operator.events[1].is_retried);
    reply_clear (&reply);
    bench_end (&b);
}

static void
test_rotation_reaches_the_next_request (void **state)
{
    (void)state;
    struct bench b = { .operator.keys = { "first-key", "second-key" } };
    bench_begin (&b, NULL, false, false);
    for (int i = 0; i < 2; i++) {
        struct guest_http_reply reply;
        assert_int_equal (send_as_guest (b.guest, "http", "127.0.0.1:9", "{}", &reply),
                          GUEST_HTTP_OK);
        reply_clear (&reply);
    }
    assert_non_null (strstr (b.provider.heads[1], "Key second-key!"));
    assert_int_equal (b.operator.event_count, 1);
    assert_int_equal (b.operator.events[0].change, GATEWAY_ROTATED);
    assert_false (b.operator.events[0].by_rejection);
    assert_int_equal (loop_server_connections (b.server), 1);
    bench_end (&b);
}

static void
test_the_providers_status_and_wait_are_seen (void **state)
{
    (void)state;
    struct bench b = { .provider.answers = { BUSY_ANSWER } };
    bench_begin (&b, "k3y!", false, false);
    struct guest_http_reply reply;
    assert_int_equal (send_as_guest (b.guest, "http", "127.0.0.1:9", "{}", &reply), GUEST_HTTP_OK);
    struct guest_http_observation seen;
    guest_http_observe (b.guest, &seen);
    assert_int_equal (seen.status, 429);
    assert_int_equal (seen.failure, HTTP_OK);
    assert_true (seen.has_retry_after);
    assert_int_equal (seen.retry_after_ms, 2000);
    reply_clear (&reply);
    bench_end (&b);
}

static void
test_allowed_requests_stream_and_carry_no_key (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b, "k3y!", false, false);
    _cleanup_free_ char *authority = x_asprintf ("127.0.0.1:%d", loop_server_port (b.server));
    struct guest_http_reply reply;
    assert_int_equal (send_as_guest (b.guest, "http", authority, "up", &reply), GUEST_HTTP_DENIED);
    assert_succeeds (allow_list_add (&b.allow, authority, &err));
    assert_int_equal (send_as_guest (b.guest, "http", authority, "up", &reply), GUEST_HTTP_OK);
    assert_string_equal (b.provider.bodies[0], "up");
    assert_non_null (strstr (b.provider.heads[0], "x-api-key: stolen\r\n"));
    assert_null (strstr (b.provider.heads[0], "k3y!"));
    reply_clear (&reply);
    assert_int_equal (send_as_guest (b.guest, "http", authority, NULL, &reply), GUEST_HTTP_OK);
    assert_null (strcasestr (b.provider.heads[1], "transfer-encoding"));
    reply_clear (&reply);
    bench_end (&b);
}

static void
test_member_addresses_are_denied_whatever_is_allowed (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b, "k3y!", false, false);
    assert_succeeds (allow_list_add (&b.allow, "x.formation.invalid", &err));
    struct guest_http_reply reply;
    assert_int_equal (send_as_guest (b.guest, "http", "x.formation.invalid", NULL, &reply),
                      GUEST_HTTP_DENIED);
    bench_end (&b);
}

static void
test_endpoints_and_auth_headers_are_judged (void **state)
{
    (void)state;
    static const char *const bad[] = {
        "${URL}",
        "ftp://h",
        "h",
        "https://",
        "https://u:p@h",
        "https://h/?q",
        "https://h/#f",
        "http://h",
        "http://0.0.0.0",
        "http://10.0.0.1",
        "http://[::ffff:127.0.0.1]",
    };
    static const char *const good[] = { "https://h", "https://h:8443/v1/", "http://localhost:1",
                                        "http://127.9.9.9", "http://[::1]:80/x" };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++)
        if (! gateway_endpoint_fault (bad[i]))
            fail_msg ("accepted: %s", bad[i]);
    for (size_t i = 0; i < ARRAY_LEN (good); i++)
        assert_null (gateway_endpoint_fault (good[i]));
    assert_null (gateway_auth_fault ("x-api-key", "{key}"));
    assert_null (gateway_auth_fault ("Authorization", "Bearer {key}"));
    assert_non_null (gateway_auth_fault ("Host", "{key}"));
    assert_non_null (gateway_auth_fault ("x y", "{key}"));
    assert_non_null (gateway_auth_fault ("x", "key"));
    assert_non_null (gateway_auth_fault ("x", "{key}{key}"));
    assert_non_null (gateway_auth_fault ("x", "a\n{key}"));

    struct mur_error *err = NULL;
    struct gateway_spec spec = { .artifact = "a/b",
                                 .endpoint = "https://user:hunter2@h/",
                                 .auth_header = "x",
                                 .auth_value = "{key}" };
    assert_null (gateway_new (&spec, &err));
    assert_string_equal (diag_code_name (err->code), "E-MAN-003");
    assert_null (strstr (err->message, "hunter2"));
    assert_non_null (strstr (err->message, "***@h"));
    mur_error_free (err);
    err = NULL;
    spec.endpoint = "https://h";
    spec.auth_value = NULL;
    assert_null (gateway_new (&spec, &err));
    assert_string_equal (diag_code_name (err->code), "E-RUN-025");
    mur_error_free (err);
}

static void
stall (void *ctx, int fd, int number)
{
    (void)number;
    struct provider *p = ctx;
    struct buf head = { 0 }, body = { 0 };
    (void)loop_read_request (fd, &head, &body);
    atomic_fetch_add (&p->requests, 1);
    char byte;
    (void)! read (fd, &byte, 1);
    buf_free (&head);
    buf_free (&body);
}

static void
test_a_cancelled_exchange_touches_its_reply_no_more (void **state)
{
    (void)state;
    struct provider provider = { 0 };
    struct loop_server *server = loop_server_new (stall, &provider);
    struct http_client *client = http_client_new ();
    struct allow_list allow = { 0 };
    assert_succeeds (allow_list_add (&allow, "127.0.0.1", &err));
    struct guest_http *guest =
        guest_http_new (&(struct guest_http_spec){ .client = client, .allow = &allow });
    _cleanup_free_ char *authority = x_asprintf ("127.0.0.1:%d", loop_server_port (server));
    struct guest_http_request request = {
        .method = "GET", .scheme = "http", .authority = authority, .path_with_query = "/"
    };
    struct guest_http_reply *reply = x_new0 (struct guest_http_reply);
    pthread_mutex_init (&reply->lock, NULL);
    enum guest_http_error refused;
    void *x = guest_http_handler.start (guest, &request, reply, &refused);
    assert_non_null (x);
    guest_http_handler.body_end (x, true);
    uint64_t until = clock_monotonic_ms () + 10000;
    while (atomic_load (&provider.requests) == 0 && clock_monotonic_ms () < until)
        usleep (1000);
    uint64_t start = clock_monotonic_us ();
    guest_http_handler.cancel (x);
    assert_true (clock_monotonic_us () - start < 20000);
    free (reply); /* a late touch is what the sanitizer would see */
    loop_server_free (server);
    guest_http_free (guest);
    http_client_free (client);
    allow_list_free (&allow);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_containment_27_the_key_goes_upstream_once_and_only_there),
        cmocka_unit_test (test_the_gateway_is_recognised_by_its_whole_authority),
        cmocka_unit_test (test_containment_29_without_a_gateway_port_nine_is_an_ordinary_address),
        cmocka_unit_test (test_a_metered_gateway_needs_an_open_admission),
        cmocka_unit_test (test_a_keyless_gateway_removes_and_adds_none),
        cmocka_unit_test (test_a_keyed_gateway_without_a_key_sends_nothing),
        cmocka_unit_test (test_a_refused_key_that_did_not_change_is_recorded_and_the_401_returned),
        cmocka_unit_test (test_a_rotated_key_is_tried_once_with_the_same_bytes),
        cmocka_unit_test (test_a_second_refusal_is_final),
        cmocka_unit_test (test_rotation_reaches_the_next_request),
        cmocka_unit_test (test_the_providers_status_and_wait_are_seen),
        cmocka_unit_test (test_allowed_requests_stream_and_carry_no_key),
        cmocka_unit_test (test_member_addresses_are_denied_whatever_is_allowed),
        cmocka_unit_test (test_endpoints_and_auth_headers_are_judged),
        cmocka_unit_test (test_a_cancelled_exchange_touches_its_reply_no_more),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
