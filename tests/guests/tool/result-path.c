/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool: passes without data and names the file at {"path": "..."} as its result.
 */
#include <string.h>

#include "murmur_sdk.h"

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    char *path = mur_json_text (in->json, mur_json_get (in->json, 0, "path"));
    out->status = MUR_PASSED;
    out->data_path = strdup (path != NULL ? path : "");
}
