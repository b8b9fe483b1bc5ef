/* SPDX-License-Identifier: Apache-2.0
 *
 * What engine.c, guest.c and convert.c share. Nobody outside engine/ includes this.
 */
#pragma once

#include "engine/bridge.h"

#include <pthread.h>

/* A linker serves every guest with the same set of interfaces. */
struct linkage {
    const struct host_interface *
        *interfaces; /* the set, in the order of the first guest's bindings */
    size_t interface_count;
    bool is_empty;
    struct bridge_linker *linker;
};

struct engine {
    wasm_engine_t *wasm;
    pthread_mutex_t lock; /* linkages and the ticker's state; never held across a call */
    struct linkage **linkages;
    size_t linkage_count, linkage_cap;
    pthread_cond_t ticker_wakes;
    pthread_t ticker;
    bool has_ticker;
    bool is_closing;
    size_t running; /* calls now inside a guest */
};

/* A component resolved against one linkage, kept for the next instance of it. */
struct linked {
    const struct linkage *linkage;
    struct bridge_linked *linked;
};

struct component {
    wasmtime_component_t *wasm;
    pthread_mutex_t lock; /* the list below */
    struct linked *linked;
    size_t linked_count, linked_cap;
};

/* Brackets a stretch in which guest code may run: the epoch ticks meanwhile. E-RUN-001: it cannot,
 * and there is nothing to leave. */
bool engine_enter (struct engine *e, struct mur_error **err);
void engine_leave (struct engine *e);

/* Copies a value tree into the engine's form. Text that is not UTF-8 has its bad bytes replaced by
 * U+FFFD. */
void convert_to_wasm (const struct value *v, wasmtime_component_val_t *out);
/* Copies the engine's value into <arena>. False for kinds no murmur interface uses (resources,
 * maps). */
bool convert_from_wasm (const wasmtime_component_val_t *v, struct arena *arena, struct value *out);
