/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool: {"url": "...", "upload_bytes": "N"} sends N bytes (none without it) and counts the
 * answer's, keeping nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "murmur_sdk.h"

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    static char chunk[64 * 1024];
    struct mur_http_request request = { 0 };
    struct mur_http_response response;
    char *error = NULL;
    unsigned long long total = 0;
    long got;

    request.url = mur_json_text (in->json, mur_json_get (in->json, 0, "url"));
    char *upload = mur_json_text (in->json, mur_json_get (in->json, 0, "upload_bytes"));
    if (upload != NULL) {
        request.body_len = strtoul (upload, NULL, 10);
        char *body = malloc (request.body_len);
        memset (body, 'u', request.body_len);
        request.body = body;
    }
    if (request.url == NULL) {
        mur_failed (out, "url: a string is needed");
        return;
    }
    if (! mur_http_open (&request, &response, &error)) {
        mur_failed (out, "%s", error);
        return;
    }
    while ((got = mur_http_read (&response, chunk, sizeof chunk, &error)) > 0)
        total += (unsigned long long)got;
    mur_http_close (&response);
    if (got < 0)
        mur_failed (out, "after %llu bytes: %s", total, error);
    else
        mur_passed (out, "%llu", total);
}
