/* SPDX-License-Identifier: Apache-2.0
 *
 * The interfaces a component names, read from its bytes as they come (spec/artifacts.md 11).
 *
 * Only the outermost component's import and export sections are kept until they are whole;
 * everything else is counted and dropped, so that a component of any size is read in little memory.
 */
#pragma once

#include "artifact/names/wit.h"

enum wit_reading {
    WIT_READ,        /* a component; its contracts are filled */
    WIT_CORE_MODULE, /* wasm, but no component */
    WIT_UNREADABLE,  /* does not parse */
};

enum wit_reading wit_read (const void *wasm, size_t len, struct wit_contracts *out);

/* The same of bytes that come in pieces; memory used does not grow with the component. */
struct wit_stream;
struct wit_stream *wit_stream_new (void);
void wit_stream_feed (struct wit_stream *s, const void *data, size_t len);
/* All bytes were fed. */
enum wit_reading wit_stream_finish (struct wit_stream *s, struct wit_contracts *out);
void wit_stream_free (struct wit_stream *s);
DEFINE_CLEANUP (struct wit_stream, wit_stream_free)
#define _cleanup_wit_stream_ _cleanup_ (wit_stream_freep)
