/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace reader on any text, in each of its modes: strict accepts no more than tolerant.
 */
#include "tests/fuzz/fuzzing.h"

#include "trace/read/reader.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    _cleanup_trace_ struct trace *strict =
        trace_parse ("fuzz.jsonl", text, size, TRACE_STRICT, NULL);
    _cleanup_trace_ struct trace *tolerant =
        trace_parse ("fuzz.jsonl", text, size, TRACE_TOLERANT, NULL);
    assert (! strict || tolerant);
    assert (! strict || strict->is_complete);
    if (tolerant)
        for (size_t i = 0; i < tolerant->count; i++)
            assert (trace_find (tolerant, trace_type (tolerant, i), i)->index == i &&
                    json_object_size (trace_at (tolerant, i)->object) > 0);
    free (text);
    return 0;
}
