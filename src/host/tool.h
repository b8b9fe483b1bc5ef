/* SPDX-License-Identifier: Apache-2.0
 *
 * Calling a tool or an http driver: murmur:tool/run@0.1.0 (spec/artifacts.md 15.2).
 *
 * Also the shape of a tool result, shared with murmur:tool-registry.
 */
#pragma once

#include "engine/engine.h"
#include "engine/guest.h"

enum tool_status {
    TOOL_PASSED,
    TOOL_FAILED,
    TOOL_ERROR,
};

struct tool_metadata {
    const char *key;
    const char *value;
};

/* Every string is NULL when the guest gave none; UTF-8, NUL-terminated, may hold NUL bytes within
 * its length. */
struct tool_result {
    enum tool_status status;
    const char *summary;
    size_t summary_len;
    const char *data;
    size_t data_len;
    const char *data_path;
    bool is_truncated;
    const struct tool_metadata *metadata;
    size_t metadata_count;
};

/* The first value under this key, or NULL. */
const char *tool_metadata_get (const struct tool_result *r, const char *key);

/* The instance a tool or driver must export. */
extern const char host_tool_interface[]; /* "murmur:tool/run@0.1.0" */

/* Calls run. <data> may be NULL (none); <log_path> may be NULL (none). The result lives in <arena>.
 * Returns how the call ended; for all but GUEST_OK *err is set as by guest_call, and a missing
 * export names the expected instance and advises a rebuild. Of GUEST_TRAPPED the summary is what
 * the guest wrote on stderr last. */
enum guest_ending host_tool_run (struct guest *g, const char *data, size_t len,
                                 const char *log_path, struct arena *arena, struct tool_result *out,
                                 struct cancel *cancel, struct mur_error **err);

/* A tool-result record from its C form, for interfaces that hand one to a guest. Strings are copied
 * into <arena>. */
struct value tool_result_to_value (struct arena *arena, const struct tool_result *r);
