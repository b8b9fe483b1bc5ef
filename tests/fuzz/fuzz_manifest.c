/* SPDX-License-Identifier: Apache-2.0
 *
 * The capsule manifest reader on any text: a manifest or an error; a masked copy never holds a literal key.
 */
#include "tests/fuzz/fuzzing.h"

#include "manifest/capsule.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_ (capsule_manifest_freep) struct capsule_manifest *manifest =
        capsule_manifest_parse (text, size, "fuzz.yaml", size & 1 ? MANIFEST_SECRETLESS : MANIFEST_WITH_SECRETS, &err);
    assert ((manifest == NULL) == (err != NULL));
    if (manifest) {
        _cleanup_buf_ struct buf masked = { 0 };
        capsule_manifest_mask (manifest, text, size, &masked);
    }
    free (text);
    return 0;
}
