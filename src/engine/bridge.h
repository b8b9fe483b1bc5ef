/* SPDX-License-Identifier: Apache-2.0
 *
 * What the Rust half (bridge/) offers beside Wasmtime's C API. Only engine/ includes this.
 *
 * The structures are mirrored by repr(C) types in bridge/src: change both. A `char **error`
 * receives a text the caller frees with bridge_text_free.
 */
#pragma once

#include "engine/engine.h"
#include "engine/guest.h"

#include <wasmtime.h>
#include <wasmtime/component.h>

void bridge_text_free (char *text);

/* --- engine.rs --- */

/* The compile configuration in words: part of every compiled form's name. Static; needs no engine.
 */
const char *bridge_config_text (void);
wasm_engine_t *bridge_engine_new (char **error);
bool bridge_component_compile (const wasm_engine_t *e, const void *wasm, size_t len,
                               wasmtime_component_t **out, char **error);
bool bridge_component_load (const wasm_engine_t *e, const void *form, size_t len,
                            wasmtime_component_t **out, char **error);
bool bridge_component_exports (const wasmtime_component_t *c, const char *name);

/* --- link.rs --- */

struct bridge_interface {
    const char *name;
    const char *const *functions;
    size_t function_count;
};

/* Every host function arrives here, with the guest of its store and its place in the linker's
 * tables. Writes *result when the function returns a value (ownership passes to the bridge). False
 * = trap, *error a malloc'ed text the bridge frees. */
typedef bool bridge_host_call (void *guest, size_t interface, size_t function,
                               const wasmtime_component_val_t *args, size_t arg_count,
                               wasmtime_component_val_t *result, char **error);

struct bridge_linker;
struct bridge_linked;

struct bridge_linker *
bridge_linker_new (const wasm_engine_t *e, const struct bridge_interface *interfaces,
                   size_t interface_count, bool has_http, bridge_host_call *call, char **error);
void bridge_linker_free (struct bridge_linker *l);
/* Resolves every import of a component. NULL, *error naming the first that is not offered. */
struct bridge_linked *
bridge_link (const struct bridge_linker *l, const wasmtime_component_t *c, char **error);
void bridge_linked_free (struct bridge_linked *l);

/* --- drive.rs --- */

/* Stops one call from any thread. */
struct bridge_stop;
struct bridge_stop *bridge_stop_new (const wasm_engine_t *e);
void bridge_stop_raise (struct bridge_stop *s);
void bridge_stop_free (struct bridge_stop *s);

/* --- guest.rs --- */

struct bridge_guest_spec {
    void *guest; /* handed to bridge_host_call */
    const struct guest_preopen *preopens;
    size_t preopen_count;
    char *const *env;
    size_t env_count;
    uint64_t memory_bytes;
    uint64_t table_elements;
    uint64_t instances;
    uint64_t deadline_ms;
    const struct guest_http_handler *http;
    void *http_ctx;
    bool has_stdio;
    const struct guest_senses *senses;
};

struct bridge_guest;

struct bridge_guest *bridge_guest_new (const struct bridge_linked *l,
                                       const struct bridge_guest_spec *spec, char **error);
void bridge_guest_free (struct bridge_guest *g);
/* Instantiates. Every ending but GUEST_OK comes with *error. */
enum guest_ending bridge_guest_start (struct bridge_guest *g, const struct bridge_linked *l,
                                      struct bridge_stop *stop, char **error);
/* *result belongs to the caller when *has_result is set. */
enum guest_ending
bridge_guest_call (struct bridge_guest *g, const struct bridge_linked *l, const char *interface,
                   const char *function, const wasmtime_component_val_t *args, size_t arg_count,
                   bool *has_result, wasmtime_component_val_t *result, struct bridge_stop *stop,
                   char **error);
/* *words is the last the guest wrote on stderr since it was asked, "" when nothing; freed like an
 * error. */
void bridge_guest_last_words (struct bridge_guest *g, char **words);
