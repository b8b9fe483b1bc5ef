/* SPDX-License-Identifier: Apache-2.0
 *
 * The artifact index reader on any text: what it accepts, it writes in a form it accepts again, and
 * that form is stable.
 */
#include "tests/fuzz/fuzzing.h"

#include "artifact/sources/index.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    _cleanup_index_ struct artifact_index *index = index_parse (text, size, "index", NULL);
    if (index) {
        char *once = index_text (index);
        _cleanup_index_ struct artifact_index *again =
            index_parse (once, strlen (once), "index", NULL);
        assert (again);
        char *twice = index_text (again);
        assert (strcmp (once, twice) == 0);
        for (size_t i = 0; i < index->count; i++) {
            const struct index_artifact *a = &index->artifacts[i];
            assert (index_find (index, a->name) == a);
            const struct index_version *v = index_newest_fit (a, "linux-x86_64");
            assert (! v || index_asset_for (v, "linux-x86_64"));
        }
        free (once);
        free (twice);
    }
    free (text);
    return 0;
}
