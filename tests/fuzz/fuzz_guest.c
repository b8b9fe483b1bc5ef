/* SPDX-License-Identifier: Apache-2.0
 *
 * The readers of the guest SDK that no provider stands behind: server-sent events, a call's input
 * mended, a schema lowered. The first byte says which.
 */
#include "tests/fuzz/fuzzing.h"

#include <jansson.h>

#include "murmur_mend.h"
#include "murmur_schema.h"
#include "murmur_sse.h"

static void
take (void *context, const char *data, size_t len)
{
    struct mur_text *seen = context;
    assert (strlen (data) <= len);
    mur_text_puts (seen, "<");
    mur_text_add (seen, data, len);
    mur_text_puts (seen, ">");
}

/* The same events whether the bytes come at once or one by one. */
static void
events (const char *text, size_t len)
{
    struct mur_text at_once = { 0 }, one_by_one = { 0 };
    struct mur_sse whole = { .take = take, .context = &at_once };
    struct mur_sse pieces = { .take = take, .context = &one_by_one };
    mur_sse_feed (&whole, text, len);
    mur_sse_end (&whole);
    for (size_t i = 0; i < len; i++)
        mur_sse_feed (&pieces, text + i, 1);
    mur_sse_end (&pieces);
    assert (at_once.len == one_by_one.len);
    assert (at_once.len == 0 || memcmp (at_once.data, one_by_one.data, at_once.len) == 0);
    assert (at_once.len == 0 || mur_utf8_valid (at_once.data, at_once.len));
    mur_text_free (&at_once);
    mur_text_free (&one_by_one);
}

/* What is mended is an object every reader takes, and mending it again changes nothing; what the
 * host's own reader takes as it is keeps its meaning. */
static void
input (const char *text, size_t len)
{
    struct mur_text once = { 0 }, twice = { 0 };
    char *why = NULL;
    if (! mur_utf8_valid (text, len))
        return;
    if (! mur_mend_input (text, len, &once, &why)) {
        assert (why != NULL && strstr (why, "is no JSON object: ") != NULL);
        free (why);
        return;
    }
    json_t *object = json_loadb (once.data, once.len, 0, NULL);
    assert (json_is_object (object));
    assert (mur_mend_input (once.data, once.len, &twice, &why));
    assert (once.len == twice.len && memcmp (once.data, twice.data, once.len) == 0);
    json_t *as_it_was = json_loadb (text, len, 0, NULL);
    assert (! json_is_object (as_it_was) || json_equal (as_it_was, object));
    json_decref (as_it_was);
    json_decref (object);
    mur_text_free (&once);
    mur_text_free (&twice);
}

static void
schema (const char *text, size_t len)
{
    struct mur_json *json = mur_json_check (text, len, NULL) ? mur_json_parse (text, len) : NULL;
    for (int form = MUR_SCHEMA_COMMON; json != NULL && form <= MUR_SCHEMA_SMALL; form++) {
        struct mur_text lowered = { 0 };
        mur_schema_lower (json, 0, (enum mur_schema_form)form, &lowered);
        assert (mur_json_check (lowered.data, lowered.len, NULL) && lowered.data[0] == '{');
        mur_text_free (&lowered);
    }
    mur_json_free (json);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static void (*const readers[]) (const char *, size_t) = { events, input, schema };
    if (size == 0)
        return 0;
    char *text = fuzz_text (data + 1, size - 1);
    readers[data[0] % 3](text, size - 1);
    free (text);
    return 0;
}
