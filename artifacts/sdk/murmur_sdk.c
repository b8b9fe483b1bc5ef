/* SPDX-License-Identifier: Apache-2.0
 *
 * The half of the guest SDK that meets the host: files, environment, results, bindings, HTTP
 * (murmur_sdk.h says what each function does).
 *
 * Compiled once per guest, with MUR_ROLE_TOOL, MUR_ROLE_CAPSULE or MUR_ROLE_HOOK, beside the
 * bindings `guest.h` that `wit-bindgen c --rename-world guest` makes for that role. Unused parts
 * are dropped by the linker.
 */
#include "murmur_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Without a role only files and results are there, for tests on the build machine. */
#if defined(MUR_ROLE_TOOL) || defined(MUR_ROLE_CAPSULE) || defined(MUR_ROLE_HOOK)
#define HAS_HOST
#include "guest.h"
#endif

/* --- Files --- */

/* The sandbox's refusals are about where a path leads, not about modes. */
char *
mur_path_error (const char *path)
{
#if defined(ENOTCAPABLE)
    bool is_outside = errno == EPERM || errno == EACCES || errno == ENOTCAPABLE;
#else
    bool is_outside = errno == EPERM || errno == EACCES;
#endif
    return mur_format ("%s: %s", path,
                       is_outside ? "outside of what may be reached here" : strerror (errno));
}

/* Opening a pipe or a device may wait for ever: only plain files are opened. */
static bool
is_special (const struct stat *facts)
{
    return ! S_ISREG (facts->st_mode) && ! S_ISDIR (facts->st_mode);
}

char *
mur_file_read (const char *path, size_t limit_bytes, size_t *len, char **error)
{
    struct stat facts;
    FILE *file = NULL;
    bool is_there = stat (path, &facts) == 0;
    if (is_there && is_special (&facts))
        return set_error (error, mur_format ("%s is no regular file", path)), NULL;
    if (! is_there || (! S_ISDIR (facts.st_mode) && (file = fopen (path, "rb")) == NULL))
        return set_error (error, mur_path_error (path)), NULL;
    if (file == NULL)
        return set_error (error, mur_format ("%s is a folder", path)), NULL;
    struct mur_text text = { 0 };
    char chunk[4096];
    size_t got;
    while ((got = fread (chunk, 1, sizeof chunk, file)) > 0 && text.len <= limit_bytes)
        mur_text_add (&text, chunk, got);
    bool is_bad = ferror (file) != 0;
    fclose (file);
    if (is_bad || text.len > limit_bytes) {
        mur_text_free (&text);
        set_error (error, is_bad ? mur_format ("%s: cannot be read", path)
                                 : mur_format ("%s is larger than %zu bytes", path, limit_bytes));
        return NULL;
    }
    if (len != NULL)
        *len = text.len;
    return text.data != NULL ? text.data : copy_bytes ("", 0);
}

static bool
make_parents (const char *path, char **error)
{
    char *partial = copy_bytes (path, strlen (path));
    bool is_fine = true;
    for (char *slash = strchr (partial + 1, '/'); slash != NULL && is_fine;
         slash = strchr (slash + 1, '/')) {
        *slash = '\0';
        struct stat facts;
        if (stat (partial, &facts) < 0 && mkdir (partial, 0777) < 0 && errno != EEXIST) {
            set_error (error, mur_path_error (partial));
            is_fine = false;
        }
        *slash = '/';
    }
    free (partial);
    return is_fine;
}

bool
mur_file_write (const char *path, const char *bytes, size_t len, bool make_folders, char **error)
{
    if (make_folders && ! make_parents (path, error))
        return false;
    struct stat facts;
    if (stat (path, &facts) == 0 && is_special (&facts)) {
        set_error (error, mur_format ("%s is no regular file", path));
        return false;
    }
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    bool is_fine = fd >= 0;
    for (size_t done = 0; is_fine && done < len;) {
        ssize_t wrote = write (fd, bytes + done, len - done);
        is_fine = wrote > 0;
        done += is_fine ? (size_t)wrote : 0;
    }
    if (! is_fine)
        set_error (error, mur_path_error (path));
    if (fd >= 0)
        close (fd);
    return is_fine;
}

/* --- Environment --- */

const char *
mur_env (const char *name, const char *fallback)
{
    const char *value = getenv (name);
    return value != NULL ? value : fallback;
}

struct mur_json *
mur_config (void)
{
    const char *text = getenv ("MURMUR_ARTIFACT_CONFIG");
    return text == NULL ? NULL : mur_json_parse (text, strlen (text));
}

void
mur_sleep_ms (uint64_t milliseconds)
{
    struct timespec left = { (time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000 };
    while (nanosleep (&left, &left) < 0 && errno == EINTR)
        continue;
}

uint64_t
mur_monotonic_ms (void)
{
    struct timespec now;
    clock_gettime (CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void
mur_log (const char *format, ...)
{
    struct mur_text line = { 0 };
    va_list arguments;
    va_start (arguments, format);
    mur_text_vprintf (&line, format, arguments);
    va_end (arguments);
    mur_text_puts (&line, "\n");
    for (size_t done = 0; done < line.len;) {
        ssize_t wrote = write (STDERR_FILENO, line.data + done, line.len - done);
        if (wrote <= 0)
            break;
        done += (size_t)wrote;
    }
    mur_text_free (&line);
}

/* --- Results --- */

static void
set_outcome (struct mur_result *out, enum mur_status status, struct mur_text *text)
{
    if (text->data == NULL)
        mur_text_add (text, "", 0);
    out->status = status;
    free (out->data);
    out->data = text->data;
    out->data_len = text->len;
    *text = (struct mur_text){ 0 };
}

void
mur_passed (struct mur_result *out, const char *format, ...)
{
    struct mur_text text = { 0 };
    va_list arguments;
    va_start (arguments, format);
    mur_text_vprintf (&text, format, arguments);
    va_end (arguments);
    set_outcome (out, MUR_PASSED, &text);
}

void
mur_failed (struct mur_result *out, const char *format, ...)
{
    struct mur_text text = { 0 };
    va_list arguments;
    va_start (arguments, format);
    mur_text_vprintf (&text, format, arguments);
    va_end (arguments);
    set_outcome (out, MUR_FAILED, &text);
}

void
mur_passed_text (struct mur_result *out, struct mur_text *text)
{
    set_outcome (out, MUR_PASSED, text);
}

void
mur_metadata (struct mur_result *out, const char *key, const char *value)
{
    if (out->metadata_count == MUR_MAX_METADATA)
        return;
    out->metadata[out->metadata_count].key = copy_bytes (key, strlen (key));
    out->metadata[out->metadata_count].value = copy_bytes (value, strlen (value));
    out->metadata_count++;
}

/* --- Bindings --- */

#if defined(MUR_ROLE_TOOL) || defined(MUR_ROLE_CAPSULE)

static guest_string_t
borrow (const char *string)
{
    return (guest_string_t){ (uint8_t *)(uintptr_t)string, strlen (string) };
}

#endif

#if defined(MUR_ROLE_TOOL)

void
mur_emit (const char *bytes, size_t len)
{
    guest_string_t chunk = { (uint8_t *)(uintptr_t)bytes, len };
    murmur_stream_events_emit_chunk (&chunk);
}

void
mur_emit_thinking (const char *bytes, size_t len)
{
    guest_string_t chunk = { (uint8_t *)(uintptr_t)bytes, len };
    murmur_stream_events_emit_thinking_chunk (&chunk);
}

void
mur_call_started (const char *id, const char *name)
{
    guest_string_t id_string = borrow (id);
    guest_string_t name_string = borrow (name);
    murmur_stream_events_tool_call_started (&id_string, &name_string);
}

void
mur_call_bytes (const char *id, uint64_t total_bytes)
{
    guest_string_t id_string = borrow (id);
    murmur_stream_events_tool_call_input_bytes (&id_string, total_bytes);
}

static guest_option_string_t
give (char *string, size_t len)
{
    return (guest_option_string_t){ string != NULL, { (uint8_t *)string, len } };
}

static void
give_result (struct mur_result *from, exports_murmur_tool_run_tool_result_t *to)
{
    to->status = (exports_murmur_tool_run_status_t)from->status;
    to->summary = give (from->summary, from->summary ? strlen (from->summary) : 0);
    to->data = give (from->data, from->data_len);
    to->data_path = give (from->data_path, from->data_path ? strlen (from->data_path) : 0);
    to->truncated = from->truncated;
    to->metadata.len = from->metadata_count;
    to->metadata.ptr = must (calloc (from->metadata_count + 1, sizeof *to->metadata.ptr));
    for (size_t i = 0; i < from->metadata_count; i++) {
        char *key = from->metadata[i].key;
        char *value = from->metadata[i].value;
        to->metadata.ptr[i].f0 = (guest_string_t){ (uint8_t *)key, strlen (key) };
        to->metadata.ptr[i].f1 = (guest_string_t){ (uint8_t *)value, strlen (value) };
    }
}

void
exports_murmur_tool_run_run (exports_murmur_tool_run_tool_input_t *input,
                             exports_murmur_tool_run_tool_result_t *ret)
{
    struct mur_input in = { .data = "" };
    if (input->data.is_some) {
        in.data = copy_bytes (input->data.val.ptr, input->data.val.len);
        in.data_len = input->data.val.len;
    }
    if (input->log_path.is_some)
        in.log_path = copy_bytes (input->log_path.val.ptr, input->log_path.val.len);
    in.json = mur_json_parse (in.data, in.data_len);
    struct mur_result out = { .status = MUR_PASSED };
    mur_tool (&in, &out);
    give_result (&out, ret);
}

#elif defined(MUR_ROLE_CAPSULE)

void
exports_murmur_capsule_run_run (void)
{
    mur_capsule ();
}

static char *
take_option (const guest_option_string_t *from)
{
    return from->is_some ? copy_bytes (from->val.ptr, from->val.len) : NULL;
}

bool
mur_invoke (const char *tool, const char *json, struct mur_result *out, char **refusal)
{
    guest_string_t name = borrow (tool);
    murmur_tool_registry_invoke_tool_input_t input = { 0 };
    input.data = (guest_option_string_t){ true, borrow (json) };
    murmur_tool_registry_invoke_tool_result_t result;
    guest_string_t why;
    *out = (struct mur_result){ .status = MUR_ERROR };
    if (! murmur_tool_registry_invoke_invoke (&name, &input, &result, &why)) {
        set_error (refusal, copy_bytes (why.ptr, why.len));
        return false;
    }
    out->status = (enum mur_status)result.status;
    out->summary = take_option (&result.summary);
    out->data = take_option (&result.data);
    out->data_len = result.data.is_some ? result.data.val.len : 0;
    out->data_path = take_option (&result.data_path);
    out->truncated = result.truncated;
    for (size_t i = 0; i < result.metadata.len && i < MUR_MAX_METADATA; i++) {
        guest_string_t *pair[2] = { &result.metadata.ptr[i].f0, &result.metadata.ptr[i].f1 };
        out->metadata[i].key = copy_bytes (pair[0]->ptr, pair[0]->len);
        out->metadata[i].value = copy_bytes (pair[1]->ptr, pair[1]->len);
        out->metadata_count++;
    }
    return true;
}

#endif

/* --- HTTP --- */

#if defined(HAS_HOST)

struct mur_http_handles {
    wasi_http_types_own_incoming_response_t response;
    wasi_http_types_own_incoming_body_t body;
    wasi_http_types_own_input_stream_t stream;
};

/* In the order of wasi:http/types error-code. */
static const char *const http_errors[] = {
    "DNS timeout",
    "DNS error",
    "destination not found",
    "destination unavailable",
    "destination address prohibited",
    "destination address unroutable",
    "connection refused",
    "connection terminated",
    "connection timeout",
    "connection read timeout",
    "connection write timeout",
    "connection limit reached",
    "TLS protocol error",
    "TLS certificate error",
    "TLS alert received",
    "HTTP-request-denied",
    "request length required",
    "request body size",
    "request method invalid",
    "request URI invalid",
    "request URI too long",
    "request header section size",
    "request header size",
    "request trailer section size",
    "request trailer size",
    "response incomplete",
    "response header section size",
    "response header size",
    "response body size",
    "response trailer section size",
    "response trailer size",
    "response transfer coding",
    "response content coding",
    "response timeout",
    "upgrade failed",
    "HTTP protocol error",
    "loop detected",
    "configuration error",
    "internal error",
};

static void
http_error (char **error, const char *url, const wasi_http_types_error_code_t *code)
{
    size_t known = sizeof http_errors / sizeof *http_errors;
    const char *name = code->tag < known ? http_errors[code->tag] : "unknown error";
    const guest_option_string_t *detail = &code->val.internal_error;
    if (code->tag == WASI_HTTP_TYPES_ERROR_CODE_INTERNAL_ERROR && detail->is_some)
        set_error (error, mur_format ("%s: %s: %.*s", url, name, (int)detail->val.len,
                                      (const char *)detail->val.ptr));
    else
        set_error (error, mur_format ("%s: %s", url, name));
}

/* The parts of an absolute URL; the fragment stays behind. */
struct url_parts {
    bool is_https;
    guest_string_t authority;
    guest_string_t path_with_query;
};

static bool
split_url (const char *url, struct url_parts *parts)
{
    static const char *const schemes[] = { "http://", "https://" };
    const char *rest = NULL;
    for (size_t i = 0; i < 2; i++)
        if (strncasecmp (url, schemes[i], strlen (schemes[i])) == 0)
            rest = url + strlen (schemes[i]), parts->is_https = i == 1;
    if (rest == NULL)
        return false;
    size_t authority_len = strcspn (rest, "/?#");
    if (authority_len == 0)
        return false;
    const char *path = rest + authority_len;
    size_t path_len = strcspn (path, "#");
    struct mur_text whole = { 0 };
    if (*path != '/')
        mur_text_puts (&whole, "/");
    mur_text_add (&whole, path, path_len);
    parts->authority = (guest_string_t){ (uint8_t *)(uintptr_t)rest, authority_len };
    parts->path_with_query = (guest_string_t){ (uint8_t *)whole.data, whole.len };
    return true;
}

static wasi_http_types_method_t
http_method (const char *name)
{
    static const char *const methods[] = { "GET",     "HEAD",    "POST",  "PUT",  "DELETE",
                                           "CONNECT", "OPTIONS", "TRACE", "PATCH" };
    wasi_http_types_method_t method = { .tag = WASI_HTTP_TYPES_METHOD_OTHER };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp (name, methods[i]) == 0)
            return method.tag = (uint8_t)i, method;
    method.val.other = (guest_string_t){ (uint8_t *)(uintptr_t)name, strlen (name) };
    return method;
}

static bool
http_header_add (wasi_http_types_own_fields_t fields, const char *header, const char *text,
                 char **error)
{
    wasi_http_types_field_name_t name = { (uint8_t *)(uintptr_t)header, strlen (header) };
    wasi_http_types_field_value_t value = { (uint8_t *)(uintptr_t)text, strlen (text) };
    wasi_http_types_header_error_t refusal;
    bool is_fine = wasi_http_types_method_fields_append (wasi_http_types_borrow_fields (fields),
                                                         &name, &value, &refusal);
    if (! is_fine)
        set_error (error, mur_format ("header %s cannot be sent", header));
    return is_fine;
}

/* The headers of the request; a body's length is told, since not every server takes chunks. */
static bool
http_headers_new (const struct mur_http_request *from, wasi_http_types_own_fields_t *fields,
                  char **error)
{
    bool is_fine = true, has_length = from->body == NULL;
    *fields = wasi_http_types_constructor_fields ();
    for (size_t i = 0; i < from->header_count && is_fine; i++) {
        const struct mur_http_header *header = &from->headers[i];
        has_length = has_length || strcasecmp (header->name, "content-length") == 0;
        is_fine = http_header_add (*fields, header->name, header->value, error);
    }
    char length[24];
    snprintf (length, sizeof length, "%zu", from->body_len);
    if (is_fine && ! has_length)
        is_fine = http_header_add (*fields, "content-length", length, error);
    if (! is_fine)
        wasi_http_types_fields_drop_own (*fields);
    return is_fine;
}

static bool
http_request_new (const struct mur_http_request *from, wasi_http_types_own_outgoing_request_t *to,
                  char **error)
{
    struct url_parts parts;
    wasi_http_types_own_fields_t fields;
    if (! split_url (from->url, &parts))
        return set_error (error, mur_format ("%s: not an absolute http or https URL", from->url)),
               false;
    if (! http_headers_new (from, &fields, error))
        return false;
    *to = wasi_http_types_constructor_outgoing_request (fields);
    wasi_http_types_borrow_outgoing_request_t request =
        wasi_http_types_borrow_outgoing_request (*to);
    const char *fallback = from->body != NULL ? "POST" : "GET";
    wasi_http_types_method_t method = http_method (from->method != NULL ? from->method : fallback);
    wasi_http_types_scheme_t scheme = { .tag = parts.is_https ? WASI_HTTP_TYPES_SCHEME_HTTPS
                                                              : WASI_HTTP_TYPES_SCHEME_HTTP };
    bool is_fine =
        wasi_http_types_method_outgoing_request_set_method (request, &method) &&
        wasi_http_types_method_outgoing_request_set_scheme (request, &scheme) &&
        wasi_http_types_method_outgoing_request_set_authority (request, &parts.authority) &&
        wasi_http_types_method_outgoing_request_set_path_with_query (request,
                                                                     &parts.path_with_query);
    free (parts.path_with_query.ptr);
    if (! is_fine) {
        wasi_http_types_outgoing_request_drop_own (*to);
        set_error (error, mur_format ("%s: not a URL or method that can be sent", from->url));
    }
    return is_fine;
}

static wasi_http_types_own_request_options_t
http_options (const struct mur_http_request *from)
{
    wasi_http_types_own_request_options_t options = wasi_http_types_constructor_request_options ();
    wasi_http_types_borrow_request_options_t borrowed =
        wasi_http_types_borrow_request_options (options);
    static bool (*const setters[]) (wasi_http_types_borrow_request_options_t,
                                    wasi_http_types_duration_t *) = {
        wasi_http_types_method_request_options_set_connect_timeout,
        wasi_http_types_method_request_options_set_first_byte_timeout,
        wasi_http_types_method_request_options_set_between_bytes_timeout
    };
    uint32_t bounds[] = { from->connect_timeout_ms, from->first_byte_timeout_ms,
                          from->between_bytes_timeout_ms };
    for (size_t i = 0; i < 3; i++) {
        wasi_http_types_duration_t nanoseconds = (wasi_http_types_duration_t)bounds[i] * 1000000;
        if (bounds[i] != 0)
            setters[i](borrowed, &nanoseconds);
    }
    return options;
}

/* Sends the body after the request is on its way: a large one would otherwise wait for a reader
 * that is not there yet. A failure here is not told: the answer's future says more. */
static void
http_send_body (wasi_http_types_own_outgoing_body_t body, const char *bytes, size_t len)
{
    wasi_http_types_own_output_stream_t stream;
    wasi_http_types_error_code_t code;
    bool is_open = wasi_http_types_method_outgoing_body_write (
        wasi_http_types_borrow_outgoing_body (body), &stream);
    for (size_t done = 0; is_open && done < len;) {
        guest_list_u8_t piece = { (uint8_t *)(uintptr_t)bytes + done,
                                  len - done < 4096 ? len - done : 4096 };
        wasi_io_streams_stream_error_t failure;
        if (! wasi_io_streams_method_output_stream_blocking_write_and_flush (
                wasi_io_streams_borrow_output_stream (stream), &piece, &failure)) {
            wasi_io_streams_stream_error_free (&failure);
            break;
        }
        done += piece.len;
    }
    if (is_open)
        wasi_io_streams_output_stream_drop_own (stream);
    if (! wasi_http_types_static_outgoing_body_finish (body, NULL, &code))
        wasi_http_types_error_code_free (&code);
}

static bool
http_await (wasi_http_types_own_future_incoming_response_t future, const char *url,
            wasi_http_types_own_incoming_response_t *response, char **error)
{
    wasi_http_types_borrow_future_incoming_response_t borrowed =
        wasi_http_types_borrow_future_incoming_response (future);
    wasi_http_types_own_pollable_t ready =
        wasi_http_types_method_future_incoming_response_subscribe (borrowed);
    wasi_io_poll_method_pollable_block (wasi_io_poll_borrow_pollable (ready));
    wasi_io_poll_pollable_drop_own (ready);
    wasi_http_types_result_result_own_incoming_response_error_code_void_t answer;
    bool is_there =
        wasi_http_types_method_future_incoming_response_get (borrowed, &answer) && ! answer.is_err;
    bool is_fine = is_there && ! answer.val.ok.is_err;
    if (is_fine)
        *response = answer.val.ok.val.ok;
    else if (is_there)
        http_error (error, url, &answer.val.ok.val.err);
    else
        set_error (error, mur_format ("%s: no answer", url));
    wasi_http_types_future_incoming_response_drop_own (future);
    return is_fine;
}

bool
mur_http_open (const struct mur_http_request *request, struct mur_http_response *response,
               char **error)
{
    *response = (struct mur_http_response){ 0 };
    wasi_http_types_own_outgoing_request_t outgoing;
    if (! http_request_new (request, &outgoing, error))
        return false;
    wasi_http_types_own_outgoing_body_t body;
    wasi_http_types_method_outgoing_request_body (
        wasi_http_types_borrow_outgoing_request (outgoing), &body);
    wasi_http_types_own_request_options_t options = http_options (request);
    wasi_http_types_own_future_incoming_response_t future;
    wasi_http_types_error_code_t code;
    if (! wasi_http_outgoing_handler_handle (outgoing, &options, &future, &code)) {
        wasi_http_types_outgoing_body_drop_own (body);
        return http_error (error, request->url, &code), false;
    }
    http_send_body (body, request->body, request->body != NULL ? request->body_len : 0);
    wasi_http_types_own_incoming_response_t incoming;
    if (! http_await (future, request->url, &incoming, error))
        return false;
    struct mur_http_handles *handles = must (calloc (1, sizeof *handles));
    handles->response = incoming;
    wasi_http_types_borrow_incoming_response_t borrowed =
        wasi_http_types_borrow_incoming_response (incoming);
    response->status = wasi_http_types_method_incoming_response_status (borrowed);
    response->handles = handles;
    wasi_http_types_method_incoming_response_consume (borrowed, &handles->body);
    wasi_http_types_method_incoming_body_stream (
        wasi_http_types_borrow_incoming_body (handles->body), &handles->stream);
    return true;
}

char *
mur_http_header (const struct mur_http_response *response, const char *name)
{
    wasi_http_types_own_headers_t headers = wasi_http_types_method_incoming_response_headers (
        wasi_http_types_borrow_incoming_response (response->handles->response));
    wasi_http_types_field_name_t key = { (uint8_t *)(uintptr_t)name, strlen (name) };
    wasi_http_types_list_field_value_t values;
    wasi_http_types_method_fields_get (wasi_http_types_borrow_fields (headers), &key, &values);
    char *value = values.len > 0 ? copy_bytes (values.ptr[0].ptr, values.ptr[0].len) : NULL;
    wasi_http_types_list_field_value_free (&values);
    wasi_http_types_fields_drop_own (headers);
    return value;
}

long
mur_http_read (struct mur_http_response *response, char *buffer, size_t size, char **error)
{
    guest_list_u8_t bytes;
    wasi_io_streams_stream_error_t failure;
    wasi_io_streams_borrow_input_stream_t stream =
        wasi_io_streams_borrow_input_stream (response->handles->stream);
    for (;;) {
        if (! wasi_io_streams_method_input_stream_blocking_read (stream, size, &bytes, &failure)) {
            bool is_end = failure.tag == WASI_IO_STREAMS_STREAM_ERROR_CLOSED;
            if (! is_end)
                set_error (error, mur_format ("the answer broke off"));
            wasi_io_streams_stream_error_free (&failure);
            return is_end ? 0 : -1;
        }
        if (bytes.len > 0)
            break;
    }
    memcpy (buffer, bytes.ptr, bytes.len);
    long count = (long)bytes.len;
    guest_list_u8_free (&bytes);
    return count;
}

void
mur_http_close (struct mur_http_response *response)
{
    if (response->handles == NULL)
        return;
    wasi_io_streams_input_stream_drop_own (response->handles->stream);
    wasi_http_types_incoming_body_drop_own (response->handles->body);
    wasi_http_types_incoming_response_drop_own (response->handles->response);
    free (response->handles);
    response->handles = NULL;
}

bool
mur_http_fetch (const struct mur_http_request *request, size_t limit_bytes, uint16_t *status,
                struct mur_text *body, bool *truncated, char **error)
{
    struct mur_http_response response;
    if (! mur_http_open (request, &response, error))
        return false;
    *status = response.status;
    char chunk[8192];
    long got = 0;
    while (body->len <= limit_bytes &&
           (got = mur_http_read (&response, chunk, sizeof chunk, error)) > 0)
        mur_text_add (body, chunk, (size_t)got);
    mur_http_close (&response);
    if (truncated != NULL)
        *truncated = body->len > limit_bytes;
    mur_text_add (body, "", 0);
    if (body->len > limit_bytes)
        body->data[body->len = mur_utf8_prefix (body->data, body->len, limit_bytes)] = '\0';
    return got >= 0;
}

#endif
