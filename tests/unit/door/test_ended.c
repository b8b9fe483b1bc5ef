/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks that ended long ago: answered from disk as they were from memory, in lists beside those
 * that are still held.
 */
#include "tests/unit/testing.h"

#include "base/json.h"
#include "door/tasks/ended.h"
#include "door/tasks/intake.h"
#include "door/tasks/registry.h"
#include "door/tasks/task_json.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const struct caller admin = { .credential = "operator" };
static const struct caller dash = { .credential = "dash" };

static int
temporary_folder (void)
{
    const char *path = getenv ("TMPDIR") ? getenv ("TMPDIR") : "/tmp";
    return open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* --- the store --- */

static void
put (struct ended_tasks *x, unsigned number, const char *owner)
{
    char id[40], context[40], response[40];
    snprintf (id, sizeof (id), "tsk_%032x", number);
    snprintf (context, sizeof (context), "ctx_%u", number % 7);
    snprintf (response, sizeof (response), "answer \"%u\"", number);
    const struct task_view view = { .id = id,
                                    .context_id = context,
                                    .state = number % 3 ? TASK_COMPLETED : TASK_FAILED,
                                    .timestamp_ms = 1000000 + number,
                                    .status_text = "task completed",
                                    .response = number % 3 ? response : NULL };
    assert_true (ended_tasks_put (x, &view, owner, 10 * (number + 1)));
}

static void
test_what_was_put_is_found_by_its_id (void **state)
{
    (void)state;
    _cleanup_close_ int dir = temporary_folder ();
    struct ended_tasks *x = ended_tasks_new (dir);
    struct ended_task t;
    assert_false (ended_tasks_find (x, "tsk_00000000000000000000000000000001", &t));
    for (unsigned i = 0; i < 2000; i++)
        put (x, i, i % 2 ? "dash" : NULL);
    for (unsigned i = 0; i < 2000; i += 37) {
        char id[40], response[40];
        snprintf (id, sizeof (id), "tsk_%032x", i);
        snprintf (response, sizeof (response), "answer \"%u\"", i);
        assert_true (ended_tasks_find (x, id, &t));
        assert_string_equal (t.view.id, id);
        assert_int_equal (t.view.timestamp_ms, 1000000 + i);
        assert_int_equal (t.revision, 10 * (i + 1));
        if (i % 3)
            assert_string_equal (t.view.response, response);
        else
            assert_null (t.view.response);
        assert_true (i % 2 ? strcmp (t.owner, "dash") == 0 : ! t.owner);
        ended_task_clear (&t);
    }
    assert_false (ended_tasks_find (x, "tsk_0000000000000000000000000000ffff", &t));
    ended_tasks_free (x);
}

static size_t
listed (const struct ended_tasks *x, const struct ended_filter *f, uint64_t below)
{
    size_t count = 0, at = ended_tasks_below (x, below);
    uint64_t last = UINT64_MAX;
    struct ended_task t = { 0 };
    while (ended_tasks_next (x, f, &at, &t)) {
        assert_true (t.revision < last && t.revision < below);
        last = t.revision;
        count++;
        ended_task_clear (&t);
    }
    return count;
}

static void
test_lists_are_filtered_and_counted_alike (void **state)
{
    (void)state;
    _cleanup_close_ int dir = temporary_folder ();
    struct ended_tasks *x = ended_tasks_new (dir);
    for (unsigned i = 0; i < 2100; i++)
        put (x, i, i % 2 ? "dash" : NULL);
    const struct {
        struct ended_filter filter;
        size_t count;
    } rows[] = {
        { { 0 }, 2100 },
        { { .has_state = true, .state = TASK_FAILED }, 700 },
        { { .has_state = true, .state = TASK_REJECTED }, 0 },
        { { .context_id = "ctx_3" }, 300 },
        { { .context_id = "ctx_9" }, 0 },
        { { .is_owned = true, .owner = "dash" }, 1050 },
        { { .is_owned = true, .owner = "zed" }, 0 },
        { { .is_owned = true }, 0 },
        { { .is_owned = true, .owner = "dash", .has_state = true, .state = TASK_FAILED }, 350 },
        { { .is_owned = true, .owner = "dash", .context_id = "ctx_3" }, 150 },
        { { .has_after = true, .after_ms = 1002000 }, 100 },
        { { .has_after = true, .after_ms = 1001500, .context_id = "ctx_0" }, 85 },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        assert_int_equal (ended_tasks_count (x, &rows[i].filter), rows[i].count);
        assert_int_equal (listed (x, &rows[i].filter, UINT64_MAX), rows[i].count);
    }
    assert_int_equal (listed (x, &rows[0].filter, 1001), 100);
    assert_int_equal (listed (x, &rows[0].filter, 10), 0);
    ended_tasks_free (x);
}

/* A few among many: whole stretches without a match are passed over, none of the few is. */
static void
test_a_few_among_many_are_listed_in_order (void **state)
{
    (void)state;
    _cleanup_close_ int dir = temporary_folder ();
    struct ended_tasks *x = ended_tasks_new (dir);
    for (unsigned i = 0; i < 9000; i++)
        put (x, i, i == 3 || i == 4095 || i == 4096 || i == 8999 ? "rare" : "dash");
    const struct ended_filter rare = { .is_owned = true, .owner = "rare" };
    assert_int_equal (ended_tasks_count (x, &rare), 4);
    assert_int_equal (listed (x, &rare, UINT64_MAX), 4);
    assert_int_equal (listed (x, &rare, 40970), 2);
    assert_int_equal (listed (x, &rare, 40971), 3);
    const struct ended_filter late = {
        .is_owned = true, .owner = "rare", .has_after = true, .after_ms = 1004096
    };
    assert_int_equal (ended_tasks_count (x, &late), 2);
    assert_int_equal (listed (x, &late, UINT64_MAX), 2);
    ended_tasks_free (x);
}

static void
test_what_cannot_be_written_is_not_put (void **state)
{
    (void)state;
    struct ended_tasks *x = ended_tasks_new (-1);
    const struct task_view view = { .id = "tsk_1", .context_id = "c", .status_text = "s" };
    assert_false (ended_tasks_put (x, &view, NULL, 1));
    assert_int_equal (ended_tasks_count (x, &(struct ended_filter){ 0 }), 0);
    ended_tasks_free (x);
}

/* --- the registry over both --- */

struct bench {
    struct registry *registry;
    int dir;
    char first[ID_LEN + 1];
};

/* <count> tasks, one after the other, each ended; the third of three fails. */
static void
run_tasks (struct bench *b, unsigned count, const struct caller *caller)
{
    for (unsigned i = 0; i < count; i++) {
        struct route_result routed;
        char text[32];
        snprintf (text, sizeof (text), "task %u", i);
        registry_route (
            b->registry, caller,
            &(struct message_intake){ .text = text, .message_id = "m", .context_id = "c" },
            &routed);
        assert_int_equal (routed.outcome, ROUTE_NEW);
        if (! b->first[0])
            memcpy (b->first, routed.id, sizeof (b->first));
        route_result_clear (&routed);
        const struct task *task;
        assert_int_equal (registry_next (b->registry, 0, &task), REGISTRY_TASK);
        const struct task_ending ending = { .state = i % 3 == 2 ? TASK_FAILED : TASK_COMPLETED,
                                            .status_text = "said",
                                            .response = text };
        registry_end (b->registry, task, &ending);
    }
}

static void
bench_begin (struct bench *b, bool has_records)
{
    *b = (struct bench){ .dir = temporary_folder () };
    const struct registry_spec spec = { .acceptance = ACCEPT_QUEUE,
                                        .queue_depth = 2000,
                                        .has_records = has_records,
                                        .records_fd = b->dir };
    b->registry = registry_new (&spec);
}

static void
bench_end (struct bench *b)
{
    registry_free (b->registry);
    close (b->dir);
}

/* All tasks of a query, page by page; the ids one after the other. */
static char *
all_pages (struct registry *r, const struct caller *caller, struct list_query query,
           uint64_t *total)
{
    struct buf ids = { 0 };
    _cleanup_free_ char *cursor_id = NULL;
    for (;;) {
        _cleanup_json_ json_t *page = registry_list_json (r, caller, &query);
        size_t i;
        const json_t *task;
        json_array_foreach (json_object_get (page, "tasks"), i, task)
            buf_printf (&ids, "%s %s\n", json_get_string (task, "id"),
                        json_get_string (json_object_get (task, "status"), "state"));
        assert_true (json_get_u64 (page, "totalSize", total));
        const char *token = json_get_string (page, "nextPageToken");
        if (! *token)
            return buf_steal (&ids);
        free (steal_ptr (&cursor_id));
        assert_true (task_page_token_read (token, &query.cursor_revision, &cursor_id));
        query.has_cursor = true;
    }
}

static size_t
lines_of (const char *text)
{
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void
test_reliability_F7_lists_go_over_held_and_ended_tasks_alike (void **state)
{
    (void)state;
    struct bench b;
    bench_begin (&b, true);
    run_tasks (&b, 1000, &dash);
    run_tasks (&b, 200, &admin);
    const struct {
        struct list_query query;
        const struct caller *caller;
        size_t count;
    } rows[] = {
        { { .page_size = 100 }, &admin, 1200 },
        { { .page_size = 7 }, &admin, 1200 },
        { { .page_size = 100 }, &dash, 1000 },
        { { .page_size = 100 }, &(struct caller){ .credential = "zed" }, 0 },
        { { .page_size = 100, .has_state = true, .state = TASK_FAILED }, &admin, 399 },
        { { .page_size = 100, .context_id = "c" }, &dash, 1000 },
        { { .page_size = 100, .context_id = "d" }, &dash, 0 },
        { { .page_size = 100, .matches_nothing = true }, &dash, 0 },
        { { .page_size = 100, .has_after = true, .after_ms = UINT64_MAX }, &dash, 0 },
        { { .page_size = 100, .has_after = true, .after_ms = 1 }, &dash, 1000 },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        uint64_t total;
        _cleanup_free_ char *ids = all_pages (b.registry, rows[i].caller, rows[i].query, &total);
        assert_int_equal (total, rows[i].count);
        assert_int_equal (lines_of (ids), rows[i].count);
        /* Newest first: ids fall, so each is there once. */
        for (char *line = ids; *line && strchr (line, '\n')[1]; line = strchr (line, '\n') + 1)
            assert_true (strcmp (line, strchr (line, '\n') + 1) > 0);
    }
    bench_end (&b);
}

static void
test_reliability_F7_an_ended_task_is_answered_as_before (void **state)
{
    (void)state;
    struct bench held, retired;
    bench_begin (&held, false);
    bench_begin (&retired, true);
    run_tasks (&held, 600, &dash);
    run_tasks (&retired, 600, &dash);
    struct bench *both[] = { &held, &retired };
    for (size_t i = 0; i < ARRAY_LEN (both); i++) {
        struct registry *r = both[i]->registry;
        const char *id = both[i]->first;
        bool is_settled = false;
        enum task_state is = TASK_SUBMITTED;
        _cleanup_json_ json_t *task = registry_task_json (r, &dash, id, &is_settled, &is);
        assert_string_equal (json_get_string (task, "id"), id);
        assert_string_equal (json_get_string (task, "contextId"), "c");
        assert_true (is_settled && is == TASK_COMPLETED);
        json_t *artifact = json_array_get (json_object_get (task, "artifacts"), 0);
        json_t *part = json_array_get (json_object_get (artifact, "parts"), 0);
        assert_string_equal (json_get_string (part, "text"), "task 0");
        json_t *message = json_object_get (json_object_get (task, "status"), "message");
        part = json_array_get (json_object_get (message, "parts"), 0);
        assert_string_equal (json_get_string (part, "text"), "said");
        const struct caller zed = { .credential = "zed" };
        assert_null (registry_task_json (r, &zed, id, NULL, NULL));
        json_t *canceled = NULL;
        assert_int_equal (registry_cancel (r, &dash, id, &canceled, &is), CANCEL_ENDED);
        assert_int_equal (is, TASK_COMPLETED);
        assert_int_equal (registry_cancel (r, &zed, id, &canceled, &is), CANCEL_NOT_FOUND);
        struct route_result routed;
        registry_route (r, &dash, &(struct message_intake){ .text = "x", .task_id = id }, &routed);
        assert_int_equal (routed.outcome, ROUTE_NOT_WAITING);
        assert_int_equal (routed.state, TASK_COMPLETED);
        route_result_clear (&routed);
        bench_end (both[i]);
    }
}

/* Tasks cancelled while they are queued end, too, whatever the loop is at. */
static void
test_reliability_F7_cancelled_ones_do_not_pile_up_behind_a_running_task (void **state)
{
    (void)state;
    struct bench b;
    bench_begin (&b, true);
    struct route_result routed;
    const struct message_intake message = { .text = "x", .message_id = "m" };
    registry_route (b.registry, &dash, &message, &routed);
    route_result_clear (&routed);
    const struct task *running;
    assert_int_equal (registry_next (b.registry, 0, &running), REGISTRY_TASK);
    _cleanup_free_ char *running_id = x_strdup (running->id);
    _cleanup_strv_ struct strv ids = { 0 };
    for (int i = 0; i < 700; i++) {
        registry_route (b.registry, &dash, &message, &routed);
        strv_push (&ids, routed.id);
        route_result_clear (&routed);
        json_t *task = NULL;
        enum task_state is;
        assert_int_equal (registry_cancel (b.registry, &dash, ids.items[i], &task, &is),
                          CANCEL_DONE);
        json_decref (task);
    }
    assert_string_equal (running->id, running_id);
    registry_end (b.registry, running, &(struct task_ending){ .state = TASK_COMPLETED });
    const struct task *task;
    size_t canceled = 0;
    while (registry_next (b.registry, 0, &task) == REGISTRY_CANCELED_QUEUED) {
        assert_string_equal (task->id, ids.items[canceled]);
        canceled++;
    }
    assert_int_equal (canceled, 700);
    uint64_t total;
    _cleanup_free_ char *all =
        all_pages (b.registry, &dash, (struct list_query){ .page_size = 50 }, &total);
    assert_int_equal (total, 701);
    assert_int_equal (lines_of (all), 701);
    bench_end (&b);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_what_was_put_is_found_by_its_id),
        cmocka_unit_test (test_lists_are_filtered_and_counted_alike),
        cmocka_unit_test (test_a_few_among_many_are_listed_in_order),
        cmocka_unit_test (test_what_cannot_be_written_is_not_put),
        cmocka_unit_test (test_reliability_F7_lists_go_over_held_and_ended_tasks_alike),
        cmocka_unit_test (test_reliability_F7_an_ended_task_is_answered_as_before),
        cmocka_unit_test (test_reliability_F7_cancelled_ones_do_not_pile_up_behind_a_running_task),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
