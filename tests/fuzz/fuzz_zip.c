/* SPDX-License-Identifier: Apache-2.0
 *
 * The guarded zip reader on any bytes: no entry gives more than the ceiling, no two entries share a
 * name; what it read can be packed again and is then read as it was.
 */
#include "tests/fuzz/fuzzing.h"

#include "artifact/package/zip.h"

#define CEILING (1u << 20)

static void
pack_again (const struct zip_entry *entry, const struct buf *content)
{
    const struct zip_source source = { entry->name, content->data ? content->data : "",
                                       content->len };
    _cleanup_buf_ struct buf packed = { 0 }, again = { 0 };
    assert (zip_write (&source, 1, &packed, NULL));
    _cleanup_ (zip_closep) struct zip *zip = zip_open (packed.data, packed.len, "again.zip", NULL);
    assert (zip && zip_count (zip) == 1 && zip_find (zip, entry->name));
    assert (zip_read (zip, zip_at (zip, 0), CEILING, &again, NULL, NULL));
    assert (again.len == content->len &&
            memcmp (source.data, again.data ? again.data : "", again.len) == 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *bytes = fuzz_text (data, size);
    _cleanup_ (zip_closep) struct zip *zip = zip_open (bytes, size, "fuzz.zip", NULL);
    for (size_t i = 0; zip && i < zip_count (zip); i++) {
        const struct zip_entry *entry = zip_at (zip, i);
        assert (zip_find (zip, entry->name) == entry);
        _cleanup_buf_ struct buf content = { 0 };
        _cleanup_error_ struct mur_error *err = NULL;
        bool is_over;
        (void)zip_name_is_root (entry->name);
        if (zip_read (zip, entry, CEILING, &content, &is_over, &err)) {
            assert (content.len <= CEILING);
            if (i < 4)
                pack_again (entry, &content);
            content.len = 0;
            assert (content.cap == 0 || ! zip_read (zip, entry, 0, &content, &is_over, NULL) ||
                    content.len == 0);
        }
    }
    zip_closep (&zip);
    zip = NULL;
    free (bytes);
    return 0;
}
