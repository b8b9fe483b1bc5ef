/* SPDX-License-Identifier: Apache-2.0
 *
 * What every fuzzer starts with: the entry point libFuzzer calls, and an input copied to memory of
 * exactly its size, so that a read past the end is seen. A fuzzer states what must hold with
 * assert, and else only must not crash, leak or hang.
 */
#pragma once

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

/* A copy with a NUL after it, as file readers hand texts over. The caller frees it. */
static inline char *
fuzz_text (const uint8_t *data, size_t size)
{
    char *text = malloc (size + 1);
    if (! text)
        abort ();
    if (size > 0)
        memcpy (text, data, size);
    text[size] = '\0';
    return text;
}
