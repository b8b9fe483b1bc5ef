/* SPDX-License-Identifier: Apache-2.0
 *
 * The component engine: compile or load a component, instantiate it as a guest with exactly what it
 * was granted, call it, abandon the call. The only folder that knows Wasmtime.
 *
 * One engine per process, made on first need. Always true: a guest sees only the preopens,
 * variables, interfaces and HTTP handler of its guest_spec; a dropped call has really stopped
 * before guest_call returns; no host callback runs after guest_free returns.
 */
#pragma once

#include "base/buf.h"
#include "base/cancel.h"
#include "base/error.h"
#include "engine/value.h"

#include <stdint.h>

/* --- engine and components --- */

struct engine;
struct component;

/* Creates the engine (no ticker thread until a guest runs). Fails with E-RUN-001. */
struct engine *engine_new (struct mur_error **err);
void engine_free (struct engine *e);
DEFINE_CLEANUP (struct engine, engine_free)

/* 16 hex digits that change with the engine's version, its compile configuration and
 * <ceiling_bytes> (the decompression ceiling): the second half of a compiled form's name. Needs no
 * engine: usable before engine_new. */
void engine_key (uint64_t ceiling_bytes, char out[17]);

/* Compiles wasm bytes, by an engine apart. Fails with E-RUN-001 carrying the engine's reason. */
struct component *
component_compile (struct engine *e, const void *wasm, size_t len, struct mur_error **err);
/* Loads a compiled form from memory. The caller vouches for the bytes: they are native code.
 * E-RUN-001 when incompatible. */
struct component *
component_deserialize (struct engine *e, const void *form, size_t len, struct mur_error **err);
/* Compiles wasm straight to a compiled form. */
bool component_precompile (struct engine *e, const void *wasm, size_t len, struct buf *form,
                           struct mur_error **err);
/* The same by an engine that is gone again: an engine that compiled keeps its compiler's memory. */
bool
component_precompile_apart (const void *wasm, size_t len, struct buf *form, struct mur_error **err);
void component_free (struct component *c);
DEFINE_CLEANUP (struct component, component_free)
/* True when the component exports an instance of this exact name ("murmur:tool/run@0.1.0"). */
bool component_exports (const struct component *c, const char *interface);
/* True when that instance holds this function. */
bool
component_exports_function (const struct component *c, const char *interface, const char *function);

/* --- outbound HTTP of guests --- */

struct guest_http_header {
    const char *name; /* lower case */
    const char *value;
    size_t value_len;
};

struct guest_http_request {
    const char *method;
    const char *scheme;    /* "http" or "https" */
    const char *authority; /* "host[:port]"; NULL when the guest gave none */
    const char *path_with_query;
    const struct guest_http_header *headers;
    size_t header_count;
    uint64_t connect_timeout_ms, first_byte_timeout_ms, between_bytes_timeout_ms;
};

/* wasi:http error codes the handler can end an exchange with. */
enum guest_http_error {
    GUEST_HTTP_OK,
    GUEST_HTTP_DENIED, /* HTTP-request-denied */
    GUEST_HTTP_DNS_ERROR,
    GUEST_HTTP_CONNECTION_REFUSED,
    GUEST_HTTP_CONNECTION_TERMINATED,
    GUEST_HTTP_CONNECTION_TIMEOUT,
    GUEST_HTTP_TLS_ERROR,
    GUEST_HTTP_RESPONSE_INCOMPLETE,
    GUEST_HTTP_RESPONSE_TIMEOUT,
    GUEST_HTTP_INTERNAL_ERROR,
};

struct guest_http_reply; /* the engine's end of one exchange */

/* What net/ implements. `start` runs on the guest's thread and must not block: it decides, and
 * either refuses by returning NULL with *refused set, or starts the transfer and returns the
 * exchange. The other calls come from engine threads and must not block either. After `cancel`
 * returns, the handler touches neither the exchange nor the reply again; `cancel` is called exactly
 * once per started exchange, also after a complete one (it is the release). */
struct guest_http_handler {
    void *(*start) (void *ctx, const struct guest_http_request *request,
                    struct guest_http_reply *reply, enum guest_http_error *refused);
    /* A piece of the request body, in order. The bytes are only valid during the call. False =
     * nothing was taken: the same piece is offered again after guest_http_reply_ready. */
    bool (*body) (void *exchange, const void *data, size_t len);
    /* The request body is complete, or (false) the guest broke it off. Always called once unless
     * cancelled. */
    void (*body_end) (void *exchange, bool is_complete);
    /* The guest has drained its buffer: replies refused by guest_http_reply_body may be offered
     * again. */
    void (*resume) (void *exchange);
    void (*cancel) (void *exchange);
};

/* Called by the handler, from any thread, in this order: head once, body any number of times, end
 * once. Before a head, end with an error makes the response future fail with that code. */
void guest_http_reply_head (struct guest_http_reply *r, int status,
                            const struct guest_http_header *headers, size_t header_count);
/* Offers body bytes (copied). False = the buffer (at most 256 KiB) is full, nothing was taken:
 * pause, wait for resume. */
bool guest_http_reply_body (struct guest_http_reply *r, const void *data, size_t len);
void guest_http_reply_end (struct guest_http_reply *r, enum guest_http_error error);
/* The handler has room for request body again, after its `body` returned false. From any thread,
 * any number of times. */
void guest_http_reply_ready (struct guest_http_reply *r);

/* --- clocks and random numbers of guests --- */

/* Where a guest has them from in place of the host. Called on the guest's thread. */
struct guest_senses {
    void *ctx;
    uint64_t (*wall_ns) (void *ctx); /* since 1970 */
    uint64_t (*monotonic_ns) (void *ctx);
    void (*random) (void *ctx, void *out, size_t len);
    bool is_past; /* it runs again: what it waits for has come, sleeps end at once */
};

/* --- host functions --- */

/* One function of a host interface. Arguments and result live in <arena>, which dies after the
 * call. Returning false traps the guest with err's message. Runs on the guest's thread; may block
 * only if it watches guest_cancel (the cancel of the running call, NULL outside one). */
typedef bool host_fn (void *ctx, struct arena *arena, const struct value *args, size_t arg_count,
                      struct value *result, struct mur_error **err);

struct host_function {
    const char *name; /* "invoke" */
    host_fn *call;
};

struct host_interface {
    const char *name; /* "murmur:tool-registry/invoke@0.1.0" */
    const struct host_function *functions;
    size_t function_count;
};

struct host_binding {
    const struct host_interface *interface;
    void *ctx; /* borrowed for the guest's life */
};

/* --- guests --- */

struct guest_preopen {
    int dir_fd;             /* borrowed; the guest gets this very directory */
    const char *guest_path; /* ".", "murmur-runtime", "state" */
    bool is_read_only;
};

struct guest_limits {
    uint64_t memory_bytes;
    uint64_t table_elements;
    uint64_t instances;
    /* per invocation; instantiation and the call each get a full budget */
    uint64_t deadline_seconds;
};

struct guest_spec {
    struct engine *engine;
    const struct component *component;
    struct guest_limits limits;
    const struct guest_preopen *preopens;
    size_t preopen_count;
    char *const *env; /* "NAME=value", NULL-terminated; may be NULL */
    const struct host_binding *bindings;
    size_t binding_count;
    const struct guest_http_handler *http; /* NULL: every request is denied */
    void *http_ctx;
    const struct guest_senses *senses; /* NULL: the host's */
    bool is_empty; /* a process driver's: no stdio, no HTTP interface (preopens, env and bindings
                      must be empty too) */
};
