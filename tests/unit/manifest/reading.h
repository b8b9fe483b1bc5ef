/* SPDX-License-Identifier: Apache-2.0
 *
 * Short words for the manifest tests: a text is accepted, or refused with a code and words a person
 * needs.
 */
#pragma once

#include "tests/unit/testing.h"

#include "base/alloc.h"
#include "manifest/capsule/capsule.h"
#include "manifest/capsule/capsule_entry.h"
#include "manifest/capsule/capsule_mask.h"

#include <string.h>

#define HEAD "name: a\nversion: 1\n"

static struct capsule_manifest *
accept_as (const char *text, enum manifest_reading how)
{
    struct mur_error *err = NULL;
    struct capsule_manifest *m = capsule_manifest_parse (text, strlen (text), "m.yaml", how, &err);
    if (! m)
        fail_msg ("refused: %s: %s\n%s", diag_code_name (err->code), err->message, text);
    assert_null (err);
    return m;
}

_unused_ static struct capsule_manifest *
accept (const char *text)
{
    return accept_as (text, MANIFEST_WITH_SECRETS);
}

/* Reads and drops. */
_unused_ static void
accepts (const char *text)
{
    capsule_manifest_free (accept (text));
}

_unused_ static void
assert_says (const char *text, const char *words)
{
    if (! text || ! strstr (text, words))
        fail_msg ("'%s' is not in: %s", words, text ? text : "(nothing)");
}

/* The text is refused with <code>; message and hint together hold each of the NULL-terminated
 * words. */
_unused_ static void
refuses (const char *text, enum diag_code code, ...)
{
    for (int secretless = 0; secretless < 2; secretless++) {
        _cleanup_error_ struct mur_error *err = NULL;
        struct capsule_manifest *m =
            capsule_manifest_parse (text, strlen (text), "m.yaml",
                                    secretless ? MANIFEST_SECRETLESS : MANIFEST_WITH_SECRETS, &err);
        if (m)
            fail_msg ("accepted:\n%s", text);
        assert_non_null (err);
        if (err->code != code)
            fail_msg ("%s instead of %s: %s\n%s", diag_code_name (err->code), diag_code_name (code),
                      err->message, text);
        _cleanup_free_ char *all = x_asprintf ("%s\n%s", err->message, err->hint ? err->hint : "");
        va_list words;
        va_start (words, code);
        for (const char *w; (w = va_arg (words, const char *));)
            assert_says (all, w);
        va_end (words);
    }
}
