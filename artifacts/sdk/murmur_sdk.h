/* SPDX-License-Identifier: Apache-2.0
 *
 * What a guest in C needs to be a murmur tool, driver, script capsule or hook: JSON in and out,
 * results, progress, files and HTTP, over the generated component bindings. Copy this folder's
 * sources beside your own.
 *
 * A whole tool:
 *
 *     #include "murmur_sdk.h"
 *
 *     void
 *     mur_tool (const struct mur_input *in, struct mur_result *out)
 *     {
 *         char *name = mur_json_text (in->json, mur_json_get (in->json, 0, "name"));
 *         if (name == NULL)
 *             mur_failed (out, "name: a string is needed");
 *         else
 *             mur_passed (out, "Hello, %s!", name);
 *     }
 *
 * Memory: everything returned by pointer is malloc'ed and the caller's. Freeing it is good manners
 * and rarely needed: each call of a tool runs in an instance of its own. When memory runs out the
 * guest traps.
 */
#ifndef MURMUR_SDK_H
#define MURMUR_SDK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- Text: a growing buffer, always zero-terminated once something was added --- */

struct mur_text {
    char *data;
    size_t len;
    size_t capacity;
};

void mur_text_add (struct mur_text *text, const char *bytes, size_t len);
void mur_text_puts (struct mur_text *text, const char *string);
void mur_text_printf (struct mur_text *text, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));
void mur_text_vprintf (struct mur_text *text, const char *format, va_list arguments)
    __attribute__ ((format (printf, 2, 0)));
/* Adds `string` as a JSON string, quotes included. Bytes that are no UTF-8 become U+FFFD. */
void mur_text_json (struct mur_text *text, const char *string);
void mur_text_json_bytes (struct mur_text *text, const char *bytes, size_t len);
/* Adds one character; a code that is none, or NUL, as U+FFFD. */
void mur_text_character (struct mur_text *text, uint32_t code);
/* Adds the bytes as they are, those that are no UTF-8 as U+FFFD. */
void mur_text_utf8 (struct mur_text *text, const char *bytes, size_t len);
void mur_text_free (struct mur_text *text);

/* Length of the longest prefix of `bytes` that is at most `limit` and ends on a character boundary.
 */
size_t mur_utf8_prefix (const char *bytes, size_t len, size_t limit);
bool mur_utf8_valid (const char *bytes, size_t len);

/* ---- JSON out: members of the object, or items of the array, that the text ends in; commas come
 * by themselves ---- */

struct mur_json;
typedef int mur_node;

void mur_text_comma (struct mur_text *text);
void mur_text_key (struct mur_text *text, const char *key);
/* `"key":"string"`; nothing when the string is NULL. */
void mur_text_string (struct mur_text *text, const char *key, const char *string);
/* A node as it stands in its document, under the key (NULL: none, and no comma); nothing when it is
 * absent. */
void
mur_text_node (struct mur_text *text, const char *key, const struct mur_json *json, mur_node node);

/* --- JSON in: a parsed document and node numbers into it; 0 is the root, -1 an absent node --- */

enum mur_json_kind {
    MUR_JSON_ABSENT,
    MUR_JSON_NULL,
    MUR_JSON_BOOL,
    MUR_JSON_NUMBER,
    MUR_JSON_STRING,
    MUR_JSON_ARRAY,
    MUR_JSON_OBJECT,
};

/* True when the text is one JSON value by the letter (RFC 8259), at most 512 levels deep, in UTF-8;
 * else *wrong_at (unless NULL) is the offset of what is wrong. The parser below is more lenient:
 * check what came from elsewhere before handing it on as it is. */
bool mur_json_check (const char *text, size_t len, size_t *wrong_at);
/* Parses a copy of the text. Returns NULL when it is no JSON object or array. */
struct mur_json *mur_json_parse (const char *text, size_t len);
void mur_json_free (struct mur_json *json);

/* Each of these takes an absent document or node and answers "absent": look-ups chain without
 * checks. */
enum mur_json_kind mur_json_kind (const struct mur_json *json, mur_node node);
mur_node mur_json_get (const struct mur_json *json, mur_node object, const char *key);
/* Walks an array or object: for (n = mur_json_first (j, a); n >= 0; n = mur_json_next (j, n)). In
 * an object n is the value. */
mur_node mur_json_first (const struct mur_json *json, mur_node container);
mur_node mur_json_next (const struct mur_json *json, mur_node node);
/* The key of a value inside an object; NULL elsewhere. */
char *mur_json_key (const struct mur_json *json, mur_node value);
mur_node mur_json_at (const struct mur_json *json, mur_node array, size_t index);
size_t mur_json_count (const struct mur_json *json, mur_node container);
/* A string's text with its escapes resolved (an escaped NUL is U+FFFD); NULL for any other kind. */
char *mur_json_text (const struct mur_json *json, mur_node node);
bool mur_json_is (const struct mur_json *json, mur_node node, const char *string);
int64_t mur_json_int (const struct mur_json *json, mur_node node, int64_t fallback);
bool mur_json_bool (const struct mur_json *json, mur_node node, bool fallback);
/* The node as it stands in the text (not terminated), for passing JSON through untouched. */
const char *mur_json_raw (const struct mur_json *json, mur_node node, size_t *len);

/* ---- Files: plain C works too; these read and write whole files with a bound and an error
 * sentence ---- */

/* Returns the bytes, zero-terminated, or NULL with *error set (unless NULL). A larger file is an
 * error. */
char *mur_file_read (const char *path, size_t limit_bytes, size_t *len, char **error);
/* Writes the whole file; with `make_folders` its parents too. */
bool
mur_file_write (const char *path, const char *bytes, size_t len, bool make_folders, char **error);

/* `<path>: <what errno says>`, for calls of your own. */
char *mur_path_error (const char *path);

/* --- Environment --- */

/* `config:` of this artifact's entry in murmur.yaml, or NULL. */
struct mur_json *mur_config (void);
const char *mur_env (const char *name, const char *fallback);
void mur_sleep_ms (uint64_t milliseconds);
uint64_t mur_monotonic_ms (void);
/* One line on standard error. */
void mur_log (const char *format, ...) __attribute__ ((format (printf, 1, 2)));
char *mur_format (const char *format, ...) __attribute__ ((format (printf, 1, 2)));

/* --- Results: of a tool's own call, or of one a script capsule made --- */

enum mur_status {
    MUR_PASSED,
    MUR_FAILED,
    MUR_ERROR,
};

#define MUR_MAX_METADATA 8

struct mur_result {
    enum mur_status status;
    char *summary; /* NULL: none */
    char *data;    /* NULL: none; what the caller reads */
    size_t data_len;
    char *data_path;
    bool truncated;
    struct {
        char *key;
        char *value;
    } metadata[MUR_MAX_METADATA];
    size_t metadata_count;
};

/* Set the status and the text the caller reads. The last call wins. */
void mur_passed (struct mur_result *out, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));
void mur_failed (struct mur_result *out, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));
/* Takes the buffer over as the data of a passed call. */
void mur_passed_text (struct mur_result *out, struct mur_text *text);
/* Reserved keys: continuation_id, state_effect (read, mutate), resource_id, transient. */
void mur_metadata (struct mur_result *out, const char *key, const char *value);

#if defined(MUR_ROLE_TOOL)

struct mur_input {
    const char *data; /* never NULL; "" when the caller gave none */
    size_t data_len;
    const struct mur_json *json; /* the same, parsed; NULL when it is no JSON object or array */
    const char *log_path;        /* NULL: none */
};

/* Yours to write: one call. `out` starts as passed and empty. */
void mur_tool (const struct mur_input *in, struct mur_result *out);

/* Progress of the current task; no effect outside one. */
void mur_emit (const char *bytes, size_t len);
void mur_emit_thinking (const char *bytes, size_t len);
void mur_call_started (const char *id, const char *name);
void mur_call_bytes (const char *id, uint64_t total_bytes);

#elif defined(MUR_ROLE_CAPSULE)

/* Yours to write: the capsule's whole run. */
void mur_capsule (void);

/* Calls a tool of the session. Returns false with *refusal set when it could not be called at all.
 */
bool mur_invoke (const char *tool, const char *json, struct mur_result *out, char **refusal);

#endif

/* --- HTTP: only what the manifest's network.allow and gateway let through --- */

struct mur_http_header {
    const char *name;
    const char *value;
};

struct mur_http_request {
    const char *method; /* NULL: GET, or POST when there is a body */
    const char *url;    /* absolute, http or https */
    const struct mur_http_header *headers;
    size_t header_count;
    const char *body; /* NULL: none */
    size_t body_len;
    uint32_t connect_timeout_ms; /* 0: the host's own bound, in each of the three */
    uint32_t first_byte_timeout_ms;
    uint32_t between_bytes_timeout_ms;
};

struct mur_http_response {
    uint16_t status;
    struct mur_http_handles *handles; /* the SDK's own */
};

/* Sends the request and waits for the head of the answer; a 3xx is an answer like any other.
 * Returns false with *error set: the request was denied, no connection, a timeout. */
bool mur_http_open (const struct mur_http_request *request, struct mur_http_response *response,
                    char **error);
/* First value of a header, or NULL. */
char *mur_http_header (const struct mur_http_response *response, const char *name);
/* Reads what has come, waiting for at least one byte. Returns the count, 0 at the end, -1 with
 * *error set. */
long mur_http_read (struct mur_http_response *response, char *buffer, size_t size, char **error);
void mur_http_close (struct mur_http_response *response);
/* Open, read the whole body up to the limit, close. A longer body is cut and *truncated set (unless
 * NULL). */
bool mur_http_fetch (const struct mur_http_request *request, size_t limit_bytes, uint16_t *status,
                     struct mur_text *body, bool *truncated, char **error);

#endif
