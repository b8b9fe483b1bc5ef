/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of replay.jsonl on any text: what it takes is at a place and has what a replay asks
 * for; what is whole was vouched for.
 */
#include "tests/fuzz/fuzzing.h"

#include "base/alloc.h"
#include "replay/record/record_read.h"
#include "replay/record/tape_read.h"

#include <stdio.h>

static char dir[] = "/dev/shm/fuzz-tape-XXXXXX";

static void
clear (void)
{
    _cleanup_free_ char *command = x_asprintf ("rm -rf '%s'", dir);
    if (system (command) != 0)
        abort ();
}

static void
put (const char *name, const void *data, size_t size)
{
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, name);
    FILE *file = fopen (path, "w");
    if (! file || fwrite (data, 1, size, file) != size || fclose (file) != 0)
        abort ();
}

static void
begin (void)
{
    static const char trace[] =
        "{\"event_type\":\"session_start\",\"session_id\":\"ses_1\",\"capture\":\"replay\"}\n"
        "{\"event_type\":\"session_end\",\"exit_status\":\"ok\"}\n";
    if (dir[sizeof dir - 2] != 'X')
        return;
    if (! mkdtemp (dir))
        abort ();
    atexit (clear);
    put ("trace.jsonl", trace, strlen (trace));
}

static void
look (const struct record *r)
{
    const struct rec_tape *t = r->tape;
    for (size_t i = 0; i < t->guest_count; i++)
        assert (t->guests[i].place && record_guest (r, t->guests[i].place));
    for (size_t i = 0; i < t->harness_count; i++) {
        const struct rec_harness *h = &t->harness[i];
        assert (h->session_id && (! h->end.is_set || h->end.cause));
        for (size_t k = 0; k < h->count; k++)
            assert (h->items[k].what < REC_HARNESS_WHATS &&
                    (h->items[k].what != REC_HARNESS_CALL || h->items[k].name));
    }
    (void)record_input (r, 0, 0);
    (void)record_tree_before (r, 0, 3);
    (void)record_tree_after (r, 0, 1, 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    begin ();
    put (TAPE_FILE, data, size);
    _cleanup_error_ struct mur_error *err = NULL, *body_err = NULL;
    _cleanup_record_ struct record *r = record_read (dir, &err);
    assert (r || err);
    if (! r)
        return 0;
    look (r);
    assert (record_check (r, &body_err) || body_err);
    return 0;
}
