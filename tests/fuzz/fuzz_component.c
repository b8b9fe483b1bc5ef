/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of a component's import and export sections on any bytes: cut into pieces anywhere, it
 * reads the same.
 */
#include "tests/fuzz/fuzzing.h"

#include "artifact/names/wit.h"
#include "artifact/names/wit_reader.h"

/* The first byte says how large the pieces are. */
static void
read_in_pieces (const char *bytes, size_t size, enum wit_reading whole,
                const struct wit_contracts *wanted)
{
    size_t piece = size ? (unsigned char)bytes[size - 1] % 7 + 1 : 1;
    _cleanup_wit_stream_ struct wit_stream *stream = wit_stream_new ();
    for (size_t at = 0; at < size; at += piece)
        wit_stream_feed (stream, bytes + at, size - at < piece ? size - at : piece);
    _cleanup_contracts_ struct wit_contracts found = { 0 };
    assert (wit_stream_finish (stream, &found) == whole);
    assert (found.exports.len == wanted->exports.len && found.imports.len == wanted->imports.len);
    for (size_t i = 0; i < found.exports.len; i++)
        assert (strcmp (found.exports.items[i], wanted->exports.items[i]) == 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *bytes = malloc (size ? size : 1);
    memcpy (bytes, data, size);
    _cleanup_contracts_ struct wit_contracts contracts = { 0 };
    enum wit_reading reading = wit_read (bytes, size, &contracts);
    read_in_pieces (bytes, size, reading, &contracts);
    if (reading == WIT_READ) {
        _cleanup_misfits_ struct wit_misfits misfits = { 0 }, named = { 0 };
        _cleanup_error_ struct mur_error *err = NULL;
        bool fits = wit_fits (&contracts, wit_served_level (), &misfits);
        assert (fits == (misfits.len == 0));
        assert (fits == (wit_newest_fit (&contracts) >= wit_served_level ()));
        assert (wit_names_fit (&contracts.exports, wit_served_level (), &named) ==
                (named.len == 0));
        if (contracts.exports.len) {
            assert (wit_exports (&contracts, contracts.exports.items[0]));
            assert (wit_export_starting (&contracts, contracts.exports.items[0]));
        }
        if (! fits)
            assert (! wit_refuse ("ana/x", "1.0.0", &misfits, &err) &&
                    err->code == E_WIT_LEVEL_001);
        free (wit_misfits_text (&misfits));
    }
    free (bytes);
    return 0;
}
