/* SPDX-License-Identifier: Apache-2.0
 *
 * Install references, grant patterns and versions on any text: what a reference names can be
 * stored, matching agrees with covering, the order of versions is an order.
 */
#include "tests/fuzz/fuzzing.h"

#include "artifact/names/name.h"
#include "artifact/names/version.h"

static void
check_reference (const char *text)
{
    struct install_ref ref;
    if (! install_ref_parse (text, &ref, NULL))
        return;
    if (ref.kind == INSTALL_NAME) {
        assert (name_is_full (ref.name));
        assert (! ref.version || version_is_segment (ref.version));
    } else if (ref.kind == INSTALL_GITHUB) {
        assert (ref.owner[0] && ref.repo[0] && ref.tag[0]);
        assert (name_part_is_valid (ref.scope, strlen (ref.scope)));
    }
    install_ref_clear (&ref);
}

static void
check_patterns (const char *a, const char *b)
{
    char *a_problem = pattern_problem (a), *b_problem = pattern_problem (b);
    if (! a_problem && ! b_problem && pattern_covers (a, b) && name_is_full (b))
        assert (pattern_matches (a, b));
    if (! a_problem)
        assert (pattern_covers (a, a) && pattern_covers ("*", a));
    free (a_problem);
    free (b_problem);
}

static int
sign (int order)
{
    return (order > 0) - (order < 0);
}

static void
check_versions (const char *a, const char *b)
{
    assert (sign (version_compare (a, b)) == -sign (version_compare (b, a)));
    assert ((version_compare (a, b) == 0) == (strcmp (a, b) == 0));
    if (version_is_semver (a) && ! version_is_semver (b))
        assert (version_compare (a, b) > 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    /* Two texts: what stands before the first NUL and what stands after it. */
    size_t first = strlen (text);
    const char *second = first < size ? text + first + 1 : "";
    check_reference (text);
    check_patterns (text, second);
    check_versions (text, second);
    free (name_part_problem (text, first));
    free (text);
    return 0;
}
