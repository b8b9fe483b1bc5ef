/* SPDX-License-Identifier: Apache-2.0
 *
 * Allow rules on any entry and authority: a rule covers itself, and what does not parse matches
 * nothing.
 */
#include "tests/fuzz/fuzzing.h"

#include "net/allow.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *entry = fuzz_text (data, size);
    char *authority = strchr (entry, '\n');
    if (authority)
        *authority++ = '\0';
    _cleanup_allow_list_ struct allow_list list = { 0 };
    if (allow_list_add (&list, entry, NULL)) {
        assert (list.len == 1);
        assert (allow_rule_covers (&list.rules[0], &list.rules[0]));
    } else {
        assert (list.len == 0);
        assert (! allow_list_matches_authority (&list, "https", authority));
    }
    if (authority)
        allow_list_matches_authority (&list, "http", authority);
    free (entry);
    return 0;
}
