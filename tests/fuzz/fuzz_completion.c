/* SPDX-License-Identifier: Apache-2.0
 *
 * What one session reads of another that it does not trust: a completion record and a spawner's
 * handle. A record that is accepted is written in a form that says the same again.
 */
#include "tests/fuzz/fuzzing.h"

#include "base/buf.h"
#include "spawn/child/spawner.h"
#include "spawn/report/completion.h"

static void
record (const char *text, size_t len)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct completion one, two;
    if (! completion_parse (text, len, arena, &one, NULL))
        return;
    _cleanup_free_ char *written = completion_text (&one);
    assert (completion_parse (written, strlen (written), arena, &two, NULL));
    assert (one.status == two.status && one.reported_by == two.reported_by);
    assert (one.duration_ms == two.duration_ms && one.is_delivered == two.is_delivered);
    assert (str_eq (one.delegation_id, two.delegation_id) && str_eq (one.workdir, two.workdir));
    assert (str_eq (one.result_path, two.result_path) && ! one.detail == ! two.detail);
    _cleanup_free_ char *again = completion_text (&two);
    if (! one.detail || strlen (one.detail) <= 2000) /* a cut one is cut anew with its mark */
        assert (strcmp (written, again) == 0);
}

static void
handle (const char *text)
{
    struct spawner s;
    struct mur_error *err = NULL;
    bool is_good = spawner_parse (text, &s, &err);
    assert (is_good == ! err);
    assert (! s.session_id == ! s.delegation_id && ! s.session_id == ! s.context_id);
    assert (s.session_id || ! s.url);
    spawner_clear (&s);
    mur_error_free (err);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    record (text, size);
    handle (text);
    free (text);
    return 0;
}
