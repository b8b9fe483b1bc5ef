/* SPDX-License-Identifier: Apache-2.0
 *
 * The ticker exists from the first call on and advances the epoch every 100 ms while some call
 * runs; it sleeps otherwise and is joined at once when the engine goes.
 */
#include "base/alloc.h"
#include "base/condition.h"
#include "base/digest.h"
#include "base/thread.h"
#include "engine/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#define TICK_MS 100

static bool
fail_with_text (struct mur_error **err, enum diag_code code, const char *what, char *text)
{
    mur_fail (err, code, "%s: %s", what, text ? text : "no reason given");
    bridge_text_free (text);
    return false;
}

struct engine *
engine_new (struct mur_error **err)
{
    char *text = NULL;
    wasm_engine_t *wasm = bridge_engine_new (&text);
    if (! wasm)
        return fail_with_text (err, E_RUN_001, "the component engine did not start", text), NULL;
    struct engine *e = x_new0 (struct engine);
    e->wasm = wasm;
    pthread_mutex_init (&e->lock, NULL);
    condition_init (&e->ticker_wakes);
    return e;
}

void
engine_free (struct engine *e)
{
    if (! e)
        return;
    pthread_mutex_lock (&e->lock);
    e->is_closing = true;
    pthread_cond_signal (&e->ticker_wakes);
    pthread_mutex_unlock (&e->lock);
    if (e->has_ticker)
        pthread_join (e->ticker, NULL);
    for (size_t i = 0; i < e->linkage_count; i++) {
        bridge_linker_free (e->linkages[i]->linker);
        free (e->linkages[i]->interfaces);
        free (e->linkages[i]);
    }
    free (e->linkages);
    pthread_cond_destroy (&e->ticker_wakes);
    pthread_mutex_destroy (&e->lock);
    wasm_engine_delete (e->wasm);
    free (e);
}

void
engine_key (uint64_t ceiling_bytes, char out[17])
{
    struct utsname host;
    uname (&host);
    _cleanup_free_ char *text =
        x_asprintf ("%s\n%s\n%s\n%llu", WASMTIME_VERSION, bridge_config_text (), host.machine,
                    (unsigned long long)ceiling_bytes);
    char digest[SHA256_HEX_LEN + 1];
    sha256_hex (text, strlen (text), digest);
    memcpy (out, digest, 16);
    out[16] = '\0';
}

/* --- the ticker --- */

static void
tick_from_now (struct timespec *at)
{
    clock_gettime (CLOCK_MONOTONIC, at);
    at->tv_nsec += TICK_MS * 1000000L;
    if (at->tv_nsec >= 1000000000L) {
        at->tv_nsec -= 1000000000L;
        at->tv_sec++;
    }
}

static void *
tick (void *arg)
{
    struct engine *e = arg;
    struct timespec next;
    tick_from_now (&next);
    pthread_mutex_lock (&e->lock);
    while (! e->is_closing) {
        if (e->running == 0) {
            pthread_cond_wait (&e->ticker_wakes, &e->lock);
            tick_from_now (&next);
        } else if (pthread_cond_timedwait (&e->ticker_wakes, &e->lock, &next) == ETIMEDOUT) {
            wasmtime_engine_increment_epoch (e->wasm);
            tick_from_now (&next);
        }
    }
    pthread_mutex_unlock (&e->lock);
    return NULL;
}

/* Signals are the main thread's. Without a ticker a deadline cannot fire: then no guest runs. */
static bool
start_ticker (struct engine *e, struct mur_error **err)
{
    int failed = thread_start (&e->ticker, tick, e);
    e->has_ticker = ! failed;
    errno = failed;
    return ! failed ||
           mur_fail_errno (err, E_RUN_001, "cannot start the thread that ends what runs too long");
}

bool
engine_enter (struct engine *e, struct mur_error **err)
{
    pthread_mutex_lock (&e->lock);
    bool can_run = e->has_ticker || start_ticker (e, err);
    e->running += can_run;
    if (can_run && e->running == 1)
        pthread_cond_signal (&e->ticker_wakes);
    pthread_mutex_unlock (&e->lock);
    return can_run;
}

void
engine_leave (struct engine *e)
{
    pthread_mutex_lock (&e->lock);
    e->running--;
    pthread_mutex_unlock (&e->lock);
}

/* --- components --- */

static struct component *
component_take (wasmtime_component_t *wasm)
{
    struct component *c = x_new0 (struct component);
    c->wasm = wasm;
    pthread_mutex_init (&c->lock, NULL);
    return c;
}

struct component *
component_deserialize (struct engine *e, const void *form, size_t len, struct mur_error **err)
{
    char *text = NULL;
    wasmtime_component_t *c = NULL;
    if (! bridge_component_load (e->wasm, form, len, &c, &text))
        return fail_with_text (err, E_RUN_001, "the compiled form does not load", text), NULL;
    return component_take (c);
}

static bool
serialize (const wasmtime_component_t *c, struct buf *form, struct mur_error **err)
{
    wasm_byte_vec_t bytes;
    wasmtime_error_t *failed = wasmtime_component_serialize (c, &bytes);
    if (failed) {
        wasm_name_t message;
        wasmtime_error_message (failed, &message);
        mur_fail (err, E_RUN_001, "the component cannot be serialized: %.*s", (int)message.size,
                  message.data);
        wasm_byte_vec_delete (&message);
        wasmtime_error_delete (failed);
        return false;
    }
    buf_append (form, bytes.data, bytes.size);
    wasm_byte_vec_delete (&bytes);
    return true;
}

bool
component_precompile (struct engine *e, const void *wasm, size_t len, struct buf *form,
                      struct mur_error **err)
{
    char *text = NULL;
    wasmtime_component_t *c = NULL;
    if (! bridge_component_compile (e->wasm, wasm, len, &c, &text))
        return fail_with_text (err, E_RUN_001, "the component does not compile", text);
    bool ok = serialize (c, form, err);
    wasmtime_component_delete (c);
    return ok;
}

bool
component_precompile_apart (const void *wasm, size_t len, struct buf *form, struct mur_error **err)
{
    _cleanup_ (engine_freep) struct engine *compiler = engine_new (err);
    return compiler && component_precompile (compiler, wasm, len, form, err);
}

struct component *
component_compile (struct engine *e, const void *wasm, size_t len, struct mur_error **err)
{
    _cleanup_buf_ struct buf form = { 0 };
    return component_precompile_apart (wasm, len, &form, err)
               ? component_deserialize (e, form.data, form.len, err)
               : NULL;
}

void
component_free (struct component *c)
{
    if (! c)
        return;
    for (size_t i = 0; i < c->linked_count; i++)
        bridge_linked_free (c->linked[i].linked);
    free (c->linked);
    pthread_mutex_destroy (&c->lock);
    wasmtime_component_delete (c->wasm);
    free (c);
}

bool
component_exports (const struct component *c, const char *interface)
{
    return bridge_component_exports (c->wasm, interface);
}

bool
component_exports_function (const struct component *c, const char *interface, const char *function)
{
    wasmtime_component_export_index_t *instance =
        wasmtime_component_get_export_index (c->wasm, NULL, interface, strlen (interface));
    wasmtime_component_export_index_t *found =
        instance
            ? wasmtime_component_get_export_index (c->wasm, instance, function, strlen (function))
            : NULL;
    bool is_there = found != NULL;
    if (found)
        wasmtime_component_export_index_delete (found);
    if (instance)
        wasmtime_component_export_index_delete (instance);
    return is_there;
}
