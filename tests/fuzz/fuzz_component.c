/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of a component's import and export sections on any bytes.
 */
#include "tests/fuzz/fuzzing.h"

#include "artifact/wit.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *bytes = malloc (size ? size : 1);
    memcpy (bytes, data, size);
    _cleanup_contracts_ struct wit_contracts contracts = { 0 };
    if (wit_read (bytes, size, &contracts) == WIT_READ) {
        _cleanup_misfits_ struct wit_misfits misfits = { 0 };
        bool fits = wit_fits (&contracts, wit_served_level (), &misfits);
        assert (fits == (misfits.len == 0));
        free (wit_misfits_text (&misfits));
    }
    free (bytes);
    return 0;
}
