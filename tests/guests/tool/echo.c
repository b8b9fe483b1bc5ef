/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool: answers with its input, byte for byte.
 */
#include "murmur_sdk.h"

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    struct mur_text text = { 0 };
    mur_text_add (&text, in->data, in->data_len);
    mur_passed_text (out, &text);
    mur_metadata (out, "state_effect", "read");
}
