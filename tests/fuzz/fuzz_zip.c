/* SPDX-License-Identifier: Apache-2.0
 *
 * The guarded zip reader on any bytes: no entry gives more than the ceiling, no two entries share a name.
 */
#include "tests/fuzz/fuzzing.h"

#include "artifact/zip.h"

#define CEILING (1u << 20)

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *bytes = fuzz_text (data, size);
    _cleanup_ (zip_closep) struct zip *zip = zip_open (bytes, size, "fuzz.zip", NULL);
    for (size_t i = 0; zip && i < zip_count (zip); i++) {
        const struct zip_entry *entry = zip_at (zip, i);
        assert (zip_find (zip, entry->name) == entry);
        _cleanup_buf_ struct buf content = { 0 };
        if (zip_read (zip, entry, CEILING, &content, NULL, NULL))
            assert (content.len <= CEILING);
    }
    zip_closep (&zip);
    zip = NULL;
    free (bytes);
    return 0;
}
