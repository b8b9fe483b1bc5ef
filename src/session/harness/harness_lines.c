/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/harness_lines.h"

#include "base/alloc.h"
#include "session/harness/harness_events.h"
#include "session/harness/harness_tape.h"
#include "session/state/session.h"

#include <sys/wait.h>

#define INACTIVITY_SECS     600
#define INACTIVITY_VARIABLE "MURMUR_HARNESS_INACTIVITY_SECS"

/* --- lines --- */

static void
fail_driver (struct harness_run *run, struct mur_error *why)
{
    const struct staged_artifact *driver = run->session->rooms.harness->driver;
    _cleanup_error_ struct mur_error *caught = why;
    struct mur_error *err = NULL;
    mur_fail (&err, E_RUN_034, "driver %s: %s", driver->full_name, caught->message);
    harness_tape_stop (run, err);
}

size_t
harness_lines_most (const struct harness_run *run)
{
    return run->log.tape || run->log.then ? 1 : HARNESS_LINES_A_PARSE;
}

void
harness_lines_take (struct harness_run *run, const char *const *lines, const size_t *lens,
                    size_t count)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct process_events events;
    struct mur_error *err = NULL;
    if (! host_process_parse (run->driver, lines, lens, count, arena, &events, &err)) {
        fail_driver (run, err);
        return;
    }
    if (! harness_tape_line (run, lines[0], lens[0], &events, &err)) {
        harness_tape_stop (run, err);
        return;
    }
    for (size_t i = 0; i < events.len && run->end.cause == HARNESS_RUNS; i++)
        harness_event_take (run, &events.items[i]);
}

/* --- the end --- */

/* The output ended without a word of an end: the driver judges by how the process went. */
static bool
classify (struct harness_run *run, struct arena *arena, struct process_event *e)
{
    const struct harness_child *c = &run->child;
    bool was_signalled = WIFSIGNALED (c->status);
    struct process_exit how = { .has_code = ! was_signalled,
                                .code = WEXITSTATUS (c->status),
                                .has_signal = was_signalled,
                                .signal_number = was_signalled ? WTERMSIG (c->status) : 0 };
    how.stderr_tail = harness_child_tail (c, &how.stderr_len);
    struct mur_error *err = NULL;
    if (! host_process_classify (run->driver, &how, arena, e, &err)) {
        fail_driver (run, err);
        return false;
    }
    if (e->kind != PROCESS_TURN_END && e->kind != PROCESS_TURN_FAILED) {
        mur_fail (&err, E_RUN_034, "classify-exit answered neither turn-end nor turn-failed");
        fail_driver (run, err);
        return false;
    }
    return true;
}

void
harness_lines_end (struct harness_run *run, const char *cause)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct process_event e;
    struct mur_error *err = NULL;
    bool is_judged = run->end.cause == HARNESS_EOF && classify (run, arena, &e);
    if (! harness_tape_end (run, cause, is_judged ? &e : NULL, &err))
        harness_tape_stop (run, err);
    else if (is_judged)
        harness_event_take (run, &e);
}

/* --- ends that are no line --- */

uint64_t
harness_inactivity_ms (void)
{
    const char *text = getenv (INACTIVITY_VARIABLE);
    char *end;
    unsigned long long secs = text ? strtoull (text, &end, 10) : 0;
    return (text && text[0] && ! *end && secs ? secs : INACTIVITY_SECS) * 1000;
}

void
harness_fail_inactive (struct harness_run *run, uint64_t window_ms)
{
    const struct harness *h = run->session->rooms.harness;
    run->end.cause = HARNESS_INACTIVITY;
    mur_fail (&run->end.error, E_RUN_035,
              "the harness %s gave neither output nor a tool call for %llu s", h->is.harness,
              (unsigned long long)(window_ms / 1000));
    harness_failed_turn_line (run, "harness_inactive", run->end.error->message);
}

void
harness_fail_key (struct harness_run *run)
{
    harness_run_fail (run, HARNESS_KEY_REFUSED, FAILURE_AUTH,
                      "the provider refuses the key (401), however often the program asks: it was "
                      "ended");
}

void
harness_fail_line (struct harness_run *run)
{
    harness_run_fail (run, HARNESS_DRIVER_ERROR, FAILURE_OTHER,
                      "the harness wrote a line of more than 32 MiB");
}
