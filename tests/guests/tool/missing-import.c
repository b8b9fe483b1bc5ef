/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool: imports example:absent/thing@0.1.0, which no host offers.
 */
#include "murmur_sdk.h"

#include "guest.h"

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    mur_passed (out, "%u %zu", (unsigned)example_absent_thing_call (), in->data_len);
}
