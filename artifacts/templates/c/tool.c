/* SPDX-License-Identifier: Apache-2.0 */
/* A whole tool: JSON in, a text out. murmur_sdk.h says what else there is. */
#include "murmur_sdk.h"

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    char *name = mur_json_text (in->json, mur_json_get (in->json, 0, "name"));
    if (name == NULL)
        mur_failed (out, "name: a string is needed");
    else
        mur_passed (out, "Hello, %s!", name);
}
