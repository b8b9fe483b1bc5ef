/* SPDX-License-Identifier: Apache-2.0
 *
 * Outbound HTTP of guests as the engine carries it, against a scripted handler: decisions,
 * streaming both ways, back-pressure, and that an exchange is released exactly once however it
 * ends.
 */
#include "engine/guest.h"
#include "guests.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One exchange at a time: a thread plays the server. */
struct server {
    /* the script */
    enum guest_http_error refuses;
    uint64_t body_bytes; /* to send */
    bool never_heads, never_ends, waits_for_upload;
    enum guest_http_error ends_with;
    size_t upload_chunk_limit; /* > 0: every first offer of a piece is refused and asked for again 2
                                  ms later */

    /* what was seen */
    char method[16], url[256], accept[64];
    atomic_uint started, cancelled, ended, refused_pieces, pauses;
    atomic_ullong uploaded;
    atomic_bool upload_was_complete;

    pthread_t thread;
    struct guest_http_reply *reply;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_cancelled, may_resume;
    bool has_offered;
};

/* Waits for resume; false when cancelled. */
static bool
wait_for_room (struct server *s)
{
    pthread_mutex_lock (&s->lock);
    while (! s->is_cancelled && ! s->may_resume)
        pthread_cond_wait (&s->changed, &s->lock);
    s->may_resume = false;
    bool alive = ! s->is_cancelled;
    pthread_mutex_unlock (&s->lock);
    return alive;
}

static bool
is_cancelled (struct server *s)
{
    pthread_mutex_lock (&s->lock);
    bool cancelled = s->is_cancelled;
    pthread_mutex_unlock (&s->lock);
    return cancelled;
}

static void *
serve (void *arg)
{
    struct server *s = arg;
    static const char piece[16 * 1024] = { 'b' };
    const struct guest_http_header headers[] = { { "x-test", "yes", 3 } };
    if (s->never_heads)
        return NULL;
    while (s->waits_for_upload && ! atomic_load (&s->ended) && ! is_cancelled (s))
        usleep (1000);
    guest_http_reply_head (s->reply, 200, headers, 1);
    for (uint64_t sent = 0; sent < s->body_bytes && ! is_cancelled (s);) {
        size_t len =
            s->body_bytes - sent < sizeof piece ? (size_t)(s->body_bytes - sent) : sizeof piece;
        if (guest_http_reply_body (s->reply, piece, len)) {
            sent += len;
            continue;
        }
        atomic_fetch_add (&s->pauses, 1);
        if (! wait_for_room (s))
            return NULL;
    }
    if (! s->never_ends && ! is_cancelled (s))
        guest_http_reply_end (s->reply, s->ends_with);
    return NULL;
}

static void *
start (void *ctx, const struct guest_http_request *request, struct guest_http_reply *reply,
       enum guest_http_error *refused)
{
    struct server *s = ctx;
    snprintf (s->method, sizeof s->method, "%s", request->method);
    snprintf (s->url, sizeof s->url, "%s|%s|%s", request->scheme,
              request->authority ? request->authority : "none", request->path_with_query);
    for (size_t i = 0; i < request->header_count; i++)
        if (strcmp (request->headers[i].name, "host") == 0)
            snprintf (s->accept, sizeof s->accept, "host");
    if (s->refuses) {
        *refused = s->refuses;
        return NULL;
    }
    atomic_fetch_add (&s->started, 1);
    s->reply = reply;
    s->is_cancelled = s->may_resume = false;
    assert_int_equal (pthread_create (&s->thread, NULL, serve, s), 0);
    return s;
}

static bool
body (void *exchange, const void *data _unused_, size_t len)
{
    struct server *s = exchange;
    if (s->upload_chunk_limit > 0 && ! s->has_offered) {
        s->has_offered = true;
        atomic_fetch_add (&s->refused_pieces, 1);
        guest_http_reply_ready (s->reply);
        return false;
    }
    s->has_offered = false;
    atomic_fetch_add (&s->uploaded, len);
    return true;
}

static void
body_end (void *exchange, bool is_complete)
{
    struct server *s = exchange;
    atomic_fetch_add (&s->ended, 1);
    atomic_store (&s->upload_was_complete, is_complete);
}

static void
resume (void *exchange)
{
    struct server *s = exchange;
    pthread_mutex_lock (&s->lock);
    s->may_resume = true;
    pthread_cond_signal (&s->changed);
    pthread_mutex_unlock (&s->lock);
}

static void
cancel (void *exchange)
{
    struct server *s = exchange;
    pthread_mutex_lock (&s->lock);
    s->is_cancelled = true;
    pthread_cond_signal (&s->changed);
    pthread_mutex_unlock (&s->lock);
    pthread_join (s->thread, NULL);
    atomic_fetch_add (&s->cancelled, 1);
}

static const struct guest_http_handler handler = { start, body, body_end, resume, cancel };

static void
server_init (struct server *s)
{
    memset (s, 0, sizeof *s);
    pthread_mutex_init (&s->lock, NULL);
    pthread_cond_init (&s->changed, NULL);
}

static enum guest_ending
run (const char *guest, struct server *s, const char *input, struct buf *text, struct cancel *c)
{
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component (guest), GUEST_TOOL, bindings);
    spec.http = s ? &handler : NULL;
    spec.http_ctx = s;
    enum guest_ending ending;
    struct guest *g = guest_new (&spec, c, &ending, NULL);
    if (! g)
        return ending;
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct tool_result result;
    ending = host_tool_run (g, input, strlen (input), NULL, arena, &result, c, NULL);
    if (ending == GUEST_OK && result.data)
        buf_append (text, result.data, result.data_len);
    if (ending == GUEST_OK && result.summary)
        buf_append (text, result.summary, result.summary_len);
    guest_free (g);
    return ending;
}

static void
test_without_a_handler_every_request_is_denied (void **state)
{
    (void)state;
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_free_ char *input = test_probe_input ("fetch http://example.com/\n");
    assert_int_equal (run ("tool-probe", NULL, input, &text, NULL), GUEST_OK);
    print_message ("%s", text.data);
    assert_non_null (strstr (text.data, "fetch: error: "));
    assert_non_null (strstr (text.data, "denied"));
}

static void
test_a_refusal_reaches_the_guest_and_starts_nothing (void **state)
{
    (void)state;
    struct server s;
    server_init (&s);
    s.refuses = GUEST_HTTP_DENIED;
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_free_ char *input = test_probe_input ("fetch http://h.example:81/a?b=c\n");
    assert_int_equal (run ("tool-probe", &s, input, &text, NULL), GUEST_OK);
    assert_non_null (strstr (text.data, "denied"));
    assert_string_equal (s.url, "http|h.example:81|/a?b=c");
    assert_string_equal (s.method, "GET");
    assert_string_equal (s.accept, ""); /* the handler names the host itself */
    assert_int_equal (s.cancelled, 0);
}

static void
test_an_answer_streams_to_the_guest (void **state)
{
    (void)state;
    struct server s;
    server_init (&s);
    s.body_bytes = 3;
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_free_ char *input = test_probe_input ("fetch https://h.example\n");
    assert_int_equal (run ("tool-probe", &s, input, &text, NULL), GUEST_OK);
    assert_non_null (strstr (text.data, "fetch: 200\n"));
    assert_string_equal (s.url, "https|h.example|/");
    assert_int_equal (s.ended, 1);
    assert_true (s.upload_was_complete);
    assert_int_equal (s.started, 1);
    assert_int_equal (s.cancelled, 1);
}

static void
test_an_error_after_the_head_is_the_guests_read_error (void **state)
{
    (void)state;
    struct server s;
    server_init (&s);
    s.body_bytes = 100;
    s.ends_with = GUEST_HTTP_CONNECTION_TERMINATED;
    _cleanup_buf_ struct buf text = { 0 };
    assert_int_equal (run ("http-sink", &s, "{\"url\":\"http://h/\"}", &text, NULL), GUEST_OK);
    print_message ("%s\n", text.data);
    assert_non_null (strstr (text.data, "after 100 bytes"));
    assert_int_equal (s.cancelled, 1);
}

static size_t
peak_kib (void)
{
    FILE *f = fopen ("/proc/self/status", "r");
    char line[256];
    size_t kib = 0;
    while (fgets (line, sizeof line, f))
        if (sscanf (line, "VmHWM: %zu kB", &kib) == 1)
            break;
    fclose (f);
    return kib;
}

static void
test_a_hundred_megabytes_stream_in_bounded_memory (void **state)
{
    (void)state;
    struct server s;
    server_init (&s);
    s.body_bytes = 100ULL << 20;
    _cleanup_buf_ struct buf text = { 0 };
    /* warm: the guest and its component are there */
    assert_int_equal (run ("http-sink", NULL, "{\"url\":\"http://h/\"}", &text, NULL), GUEST_OK);
    buf_truncate (&text, 0);
    size_t before = peak_kib ();
    uint64_t start_ms = clock_monotonic_ms ();
    assert_int_equal (run ("http-sink", &s, "{\"url\":\"http://h/\"}", &text, NULL), GUEST_OK);
    print_message ("100 MiB in %llu ms, peak +%zu KiB, %u pauses\n",
                   (unsigned long long)(clock_monotonic_ms () - start_ms), peak_kib () - before,
                   s.pauses);
    assert_string_equal (text.data, "104857600");
    assert_true (s.pauses > 0);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed */
    assert_in_range (peak_kib () - before, 0, 4096);
#endif
}

static void
test_an_upload_is_held_back_by_a_slow_handler (void **state)
{
    (void)state;
    struct server s;
    server_init (&s);
    s.upload_chunk_limit = 1;
    s.waits_for_upload = true;
    s.body_bytes = 10;
    _cleanup_buf_ struct buf text = { 0 };
    const char *input = "{\"url\":\"http://h/\",\"upload_bytes\":\"3000000\"}";
    assert_int_equal (run ("http-sink", &s, input, &text, NULL), GUEST_OK);
    assert_string_equal (s.method, "POST");
    assert_int_equal (s.uploaded, 3000000);
    assert_true (s.refused_pieces > 1);
    assert_true (s.upload_was_complete);
    assert_int_equal (s.cancelled, 1);
}

static void
is_cancelled_at_once (struct server *s, const char *input)
{
    struct cancel *c = cancel_new ();
    struct test_timer *t = test_raise_after (c, 100);
    _cleanup_buf_ struct buf text = { 0 };
    uint64_t start_ms = clock_monotonic_ms ();
    enum guest_ending ending = run ("http-sink", s, input, &text, c);
    uint64_t took = clock_monotonic_ms () - start_ms;
    test_timer_join (t);
    cancel_unref (c);
    assert_int_equal (ending, GUEST_CANCELLED);
    assert_in_range (took, 95, 600);
    assert_int_equal (s->started, 1);
    assert_int_equal (s->cancelled, 1);
}

static void
test_a_guest_in_a_slow_body_is_cancelled (void **state)
{
    (void)state;
    struct server s;
    server_init (&s);
    s.body_bytes = 1000;
    s.never_ends = true;
    size_t fds = test_open_fds ();
    is_cancelled_at_once (&s, "{\"url\":\"http://h/\"}");
    assert_int_equal (test_open_fds (), fds);
}

static void
test_a_guest_waiting_for_a_head_is_cancelled (void **state)
{
    (void)state;
    struct server s;
    server_init (&s);
    s.never_heads = true;
    is_cancelled_at_once (&s, "{\"url\":\"http://h/\"}");
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_without_a_handler_every_request_is_denied),
        cmocka_unit_test (test_a_refusal_reaches_the_guest_and_starts_nothing),
        cmocka_unit_test (test_an_answer_streams_to_the_guest),
        cmocka_unit_test (test_an_error_after_the_head_is_the_guests_read_error),
        cmocka_unit_test (test_a_hundred_megabytes_stream_in_bounded_memory),
        cmocka_unit_test (test_an_upload_is_held_back_by_a_slow_handler),
        cmocka_unit_test (test_a_guest_in_a_slow_body_is_cancelled),
        cmocka_unit_test (test_a_guest_waiting_for_a_head_is_cancelled),
    };
    return cmocka_run_group_tests_name ("engine http", tests, test_engine_up, test_engine_down);
}
