/* SPDX-License-Identifier: Apache-2.0
 *
 * The host of a native driver. See driver_host.h.
 */
#include "tests/native/driver_host.h"
#include "tests/native/track_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- The provider --- */

static const struct native_answer *answer;
static struct native_outcome outcome;
static size_t at;

static char *
copied (const char *bytes, size_t len)
{
    char *copy = track_malloc (len + 1);
    memcpy (copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

bool
mur_http_open (const struct mur_http_request *request, struct mur_http_response *response,
               char **error)
{
    at = 0;
    outcome.requests++;
    free (outcome.request);
    outcome.request = strndup (request->body, request->body_len);
    *response = (struct mur_http_response){ .status = (uint16_t)answer->status };
    if (answer->is_refused)
        *error = mur_format ("%s: connection refused", request->url);
    return ! answer->is_refused;
}

char *
mur_http_header (const struct mur_http_response *response, const char *name)
{
    (void)response;
    bool is_known = strcmp (name, "content-type") == 0 && answer->content_type != NULL;
    return is_known ? copied (answer->content_type, strlen (answer->content_type)) : NULL;
}

long
mur_http_read (struct mur_http_response *response, char *buffer, size_t size, char **error)
{
    (void)response;
    size_t left = answer->len - at;
    size_t len = answer->piece > 0 && answer->piece < size ? answer->piece : size;
    if (len > left)
        len = left;
    if (len == 0 && answer->is_broken) {
        *error = copied ("the answer broke off", 20);
        return -1;
    }
    memcpy (buffer, answer->body + at, len);
    at += len;
    return (long)len;
}

void
mur_http_close (struct mur_http_response *response)
{
    (void)response;
}

/* --- What the runtime would show --- */

static void
expect_text (const char *bytes, size_t len)
{
    if (! mur_utf8_valid (bytes, len))
        abort (); /* it would trap at the component's boundary */
}

void
mur_emit (const char *bytes, size_t len)
{
    expect_text (bytes, len);
}

void
mur_emit_thinking (const char *bytes, size_t len)
{
    expect_text (bytes, len);
}

void
mur_call_started (const char *id, const char *name)
{
    expect_text (id, strlen (id));
    expect_text (name, strlen (name));
}

void
mur_call_bytes (const char *id, uint64_t total_bytes)
{
    (void)total_bytes;
    expect_text (id, strlen (id));
}

/* --- A call --- */

static const char *
metadata (const struct mur_result *result, const char *key)
{
    for (size_t i = 0; i < result->metadata_count; i++)
        if (strcmp (result->metadata[i].key, key) == 0)
            return result->metadata[i].value;
    return NULL;
}

struct native_outcome
native_call (const char *request, const struct native_answer *given)
{
    struct mur_result result = { .status = MUR_PASSED };
    struct mur_json *json = mur_json_parse (request, strlen (request));
    const struct mur_input in = { .data = request, .data_len = strlen (request), .json = json };
    answer = given;
    outcome = (struct native_outcome){ 0 };
    mur_tool (&in, &result);
    const char *word = metadata (&result, "transient");
    const char *id = metadata (&result, "continuation_id");
    expect_text (result.data, result.data_len);
    if (result.summary != NULL)
        expect_text (result.summary, strlen (result.summary));
    outcome.json = strndup (result.data, result.data_len);
    outcome.is_failed = result.status != MUR_PASSED;
    outcome.transient = word == NULL ? -1 : strcmp (word, "true") == 0;
    outcome.continuation_id = id != NULL ? strdup (id) : NULL;
    track_free_all ();
    return outcome;
}

void
native_outcome_free (struct native_outcome *done)
{
    free (done->json);
    free (done->continuation_id);
    free (done->request);
    *done = (struct native_outcome){ 0 };
}
