/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine's tests share: one engine, the fixture components, a guest of the probe tool, and
 * clocks.
 */
#pragma once

#include "tests/unit/testing.h"

#include "engine/engine.h"
#include "engine/guest.h"
#include "host/linkage.h"
#include "host/tool.h"

extern struct engine *test_engine;

/* Group fixtures: the engine comes and goes with the program's group. */
int test_engine_up (void **state);
int test_engine_down (void **state);

/* Compiles a fixture of tests/guests once for the program; skips the running test when it was not
 * built. */
const struct component *test_component (const char *name);
/* The bytes of a fixture. */
void test_wasm (const char *name, struct buf *out);

/* Generous limits, no grants; change what the test is about. <bindings> must outlive the guest. */
struct guest_spec test_spec (const struct component *c, enum guest_kind kind,
                             struct host_binding bindings[LINKAGE_MAX]);

/* A tool-probe with this specification runs <script>; its report goes to <text>. */
enum guest_ending test_probe (const struct guest_spec *spec, const char *script, struct buf *text,
                              struct cancel *cancel, struct mur_error **err);

/* {"do": script}, to be freed. */
char *test_probe_input (const char *script);

/* Raises the cancel after <ms> from another thread. */
struct test_timer;
struct test_timer *test_raise_after (struct cancel *c, uint64_t ms);
void test_timer_join (struct test_timer *t);

size_t test_open_fds (void);
size_t test_threads (void);
