/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP of a guest over the generated bindings (murmur_sdk.h says what each function does). Unused
 * parts are dropped by the linker.
 */
#include "murmur_internal.h"

#include <stdio.h>

#if defined(MUR_ROLE_TOOL) || defined(MUR_ROLE_CAPSULE) || defined(MUR_ROLE_HOOK)

#include "guest.h"

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
