/* SPDX-License-Identifier: Apache-2.0
 *
 * What a driver call shows on its task's stream. This program is the stream: it writes down what it
 * is given.
 */
#include "tests/unit/testing.h"

#include "base/clock.h"
#include "door/tasks/registry.h"
#include "session/model/stream_frames.h"
#include "session/state/session.h"

#include <string.h>
#include <unistd.h>

/* What was shown, one after the other: "text(hi)", "started(c1 weigh)", "bytes(c1 40)". */
static struct buf shown;

struct streams *
registry_streams (struct registry *r)
{
    (void)r;
    return (struct streams *)&shown;
}

void
streams_text (struct streams *s, const struct task *t, const char *text, size_t len, bool is_last)
{
    (void)s, (void)t;
    buf_printf (&shown, "%s(%.*s) ", is_last ? "end" : "text", (int)len, text);
}

void
streams_thinking (struct streams *s, const struct task *t, const char *text, size_t len)
{
    (void)s, (void)t;
    buf_printf (&shown, "thinking(%.*s) ", (int)len, text);
}

void
streams_tool_started (struct streams *s, const struct task *t, const char *id, const char *name)
{
    (void)s, (void)t;
    buf_printf (&shown, "started(%s %s) ", id, name);
}

void
streams_tool_progress (struct streams *s, const struct task *t, const char *id, uint64_t bytes)
{
    (void)s, (void)t;
    buf_printf (&shown, "bytes(%s %llu) ", id, (unsigned long long)bytes);
}

static struct session session;
static const struct task task = { .id = "tsk" };

static void
begin (struct frames *f, bool is_driver)
{
    buf_truncate (&shown, 0);
    frames_begin (f, &session, &task, is_driver);
}

static void
assert_shown (const char *expected)
{
    assert_string_equal (shown.len ? shown.data : "", expected);
}

static void
chunk (struct frames *f, const char *text)
{
    f->host.chunk (f->host.ctx, text, strlen (text));
}

static void
bytes (struct frames *f, const char *id, uint64_t count)
{
    f->host.tool_call_input_bytes (f->host.ctx, id, count);
}

static void
started (struct frames *f, const char *id)
{
    f->host.tool_call_started (f->host.ctx, id, "weigh");
}

/* --- text --- */

static void
test_text_is_shown_as_it_comes_and_its_end_once (void **state)
{
    (void)state;
    struct frames f;
    begin (&f, true);
    f.host.thinking_chunk (f.host.ctx, "hm", 2);
    f.host.thinking_chunk (f.host.ctx, "", 0);
    chunk (&f, "a");
    chunk (&f, "");
    chunk (&f, "b");
    frames_settle (&f);
    assert_shown ("thinking(hm) text(a) text(b) end() ");
    frames_clear (&f);
}

static void
test_without_text_no_end_of_it_is_shown (void **state)
{
    (void)state;
    struct frames f;
    begin (&f, true);
    f.host.thinking_chunk (f.host.ctx, "hm", 2);
    chunk (&f, "");
    frames_settle (&f);
    assert_shown ("thinking(hm) ");
    frames_clear (&f);
}

/* --- calls the model is still writing --- */

#define SOON_MS 200 /* below the 250 after which a size is shown again */

/* Runs steps whose sizes come in one moment; again where the machine made a pause of them. */
static void
in_one_moment (void (*steps) (struct frames *f), const char *expected, const char *at_end)
{
    uint64_t began_ms;
    struct frames f;
    do {
        begin (&f, true);
        began_ms = clock_monotonic_ms ();
        steps (&f);
        if (clock_monotonic_ms () - began_ms < SOON_MS)
            break;
        frames_clear (&f);
    } while (true);
    assert_shown (expected);
    frames_settle (&f);
    assert_shown (at_end);
    frames_clear (&f);
}

static void
test_a_call_starts_once (void **state)
{
    (void)state;
    struct frames f;
    begin (&f, true);
    started (&f, "c1");
    started (&f, "c1");
    started (&f, "");
    started (&f, "c2");
    assert_shown ("started(c1 weigh) started(c2 weigh) ");
    frames_clear (&f);
}

static void
sizes_of_one (struct frames *f)
{
    bytes (f, "c1", 5); /* of no call that started */
    started (f, "c1");
    bytes (f, "c1", 0);
    bytes (f, "c1", 10); /* the first at once */
    bytes (f, "c1", 10);
    bytes (f, "c1", 20); /* held: too soon */
    bytes (f, "c1", 15); /* it never shrinks */
}

static void
test_sizes_grow_and_are_not_shown_too_often (void **state)
{
    (void)state;
    in_one_moment (sizes_of_one, "started(c1 weigh) bytes(c1 10) ",
                   "started(c1 weigh) bytes(c1 10) bytes(c1 20) ");
}

static void
test_after_a_while_a_size_is_shown_again (void **state)
{
    (void)state;
    struct frames f;
    begin (&f, true);
    started (&f, "c1");
    bytes (&f, "c1", 1);
    uint64_t until = clock_monotonic_ms () + 20000, count = 1;
    size_t before = shown.len;
    while (shown.len == before && clock_monotonic_ms () < until) {
        bytes (&f, "c1", ++count);
        usleep (2000);
    }
    char expected[64];
    snprintf (expected, sizeof expected, "started(c1 weigh) bytes(c1 1) bytes(c1 %llu) ",
              (unsigned long long)count);
    assert_shown (expected);
    assert_true (count > 2);
    frames_clear (&f);
}

static void
sizes_of_two (struct frames *f)
{
    started (f, "c1");
    started (f, "c2");
    bytes (f, "c1", 3);
    bytes (f, "c2", 4);
    bytes (f, "c2", 9);
}

static void
test_calls_are_held_each_for_itself (void **state)
{
    (void)state;
    in_one_moment (sizes_of_two, "started(c1 weigh) started(c2 weigh) bytes(c1 3) bytes(c2 4) ",
                   "started(c1 weigh) started(c2 weigh) bytes(c1 3) bytes(c2 4) bytes(c2 9) ");
}

static void
test_what_is_settled_stays_so (void **state)
{
    (void)state;
    struct frames f;
    begin (&f, true);
    started (&f, "c1");
    bytes (&f, "c1", 3);
    frames_settle (&f);
    buf_truncate (&shown, 0);
    started (&f, "c1");
    bytes (&f, "c1", 99);
    frames_settle (&f);
    assert_shown ("");
    frames_clear (&f);
}

static void
test_only_a_driver_starts_calls (void **state)
{
    (void)state;
    struct frames f;
    begin (&f, false);
    assert_null (f.host.tool_call_started);
    assert_null (f.host.tool_call_input_bytes);
    chunk (&f, "a summary");
    frames_settle (&f);
    assert_shown ("text(a summary) end() ");
    frames_clear (&f);
    frames_clear (&f);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_text_is_shown_as_it_comes_and_its_end_once),
        cmocka_unit_test (test_without_text_no_end_of_it_is_shown),
        cmocka_unit_test (test_a_call_starts_once),
        cmocka_unit_test (test_sizes_grow_and_are_not_shown_too_often),
        cmocka_unit_test (test_after_a_while_a_size_is_shown_again),
        cmocka_unit_test (test_calls_are_held_each_for_itself),
        cmocka_unit_test (test_what_is_settled_stays_so),
        cmocka_unit_test (test_only_a_driver_starts_calls),
    };
    int failed = cmocka_run_group_tests (tests, NULL, NULL);
    buf_free (&shown);
    return failed;
}
