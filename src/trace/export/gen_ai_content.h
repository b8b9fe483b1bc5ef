/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages as the GenAI conventions write them: [{role, parts: [{type, content} ...]}], from the
 * bodies a session keeps under trace.capture: content.
 */
#pragma once

#include "base/json.h"
#include "fs/root.h"

/* The messages of the blobs named, as JSON text; NULL when one cannot be read. Owned. */
char *gen_ai_input_messages (struct fs_root *records, const json_t *shas);
/* The answer in a response's blob, as JSON text of one message; NULL likewise. Owned. */
char *gen_ai_output_messages (struct fs_root *records, const char *sha, const char *finish_reason);
/* The system text in a blob as a list of parts. Owned, or NULL. */
char *gen_ai_system_instructions (struct fs_root *records, const char *sha);
/* A blob as it is, or NULL. Owned. */
char *gen_ai_blob (struct fs_root *records, const char *sha);
/* The text parts of a message's JSON text joined, or NULL when there are none. Owned. */
char *gen_ai_plain_text (const json_t *message);
