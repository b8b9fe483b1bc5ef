/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/guest.h"

#include "base/alloc.h"
#include "engine/internal.h"

#include <string.h>
#include <sys/resource.h>

struct guest {
    struct engine *engine;
    const struct linkage *linkage;
    const struct bridge_linked *linked; /* the component's */
    struct bridge_guest *guest;
    void **contexts; /* one an interface of the linkage */
};

static _Thread_local struct cancel *current_cancel;

struct cancel *
guest_current_cancel (void)
{
    return current_cancel;
}

/* ENOMEM is of addresses, not of memory, where they are bounded. */
static bool
lacks_addresses (const char *text, unsigned long long *allowed_kib)
{
    struct rlimit addresses;
    if (! text || ! strstr (text, "(os error 12)") || getrlimit (RLIMIT_AS, &addresses) != 0)
        return false;
    *allowed_kib = (unsigned long long)addresses.rlim_cur / 1024;
    return addresses.rlim_cur != RLIM_INFINITY;
}

static bool
fail_with_text (struct mur_error **err, enum diag_code code, char *text)
{
    unsigned long long kib;
    if (lacks_addresses (text, &kib))
        mur_fail (err, code,
                  "%s: a component sets aside more than 4 GiB of addresses (not of memory), and "
                  "`ulimit -v` allows %llu KiB in all: say `ulimit -v unlimited`",
                  text, kib);
    else
        mur_fail (err, code, "%s", text ? text : "no reason given");
    bridge_text_free (text);
    return false;
}

/* --- calls out of a guest --- */

static bool
host_call (void *guest, size_t interface, size_t function, const wasmtime_component_val_t *args,
           size_t arg_count, wasmtime_component_val_t *result, char **error)
{
    struct guest *g = guest;
    const struct host_function *f = &g->linkage->interfaces[interface]->functions[function];
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct value *values = arena_new_array (arena, struct value, arg_count);
    for (size_t i = 0; i < arg_count; i++)
        if (! convert_from_wasm (&args[i], arena, &values[i])) {
            *error = x_asprintf ("%s: an argument of a kind no interface here uses", f->name);
            return false;
        }
    _cleanup_error_ struct mur_error *err = NULL;
    struct value value = { 0 };
    if (! f->call (g->contexts[interface], arena, values, arg_count, &value, &err)) {
        *error = x_strdup (err ? err->message : "the host refused the call");
        return false;
    }
    convert_to_wasm (&value, result);
    return true;
}

/* --- linking --- */

static bool
linkage_fits (const struct linkage *l, const struct guest_spec *spec)
{
    if (l->is_empty != spec->is_empty || l->interface_count != spec->binding_count)
        return false;
    for (size_t i = 0; i < spec->binding_count; i++)
        if (l->interfaces[i] != spec->bindings[i].interface)
            return false;
    return true;
}

static struct bridge_linker *
linker_of (const struct engine *e, const struct guest_spec *spec, char **text)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    size_t count = spec->binding_count;
    struct bridge_interface *interfaces = arena_new_array (arena, struct bridge_interface, count);
    for (size_t i = 0; i < count; i++) {
        const struct host_interface *from = spec->bindings[i].interface;
        const char **names = arena_new_array (arena, const char *, from->function_count);
        for (size_t f = 0; f < from->function_count; f++)
            names[f] = from->functions[f].name;
        interfaces[i] = (struct bridge_interface){ from->name, names, from->function_count };
    }
    return bridge_linker_new (e->wasm, interfaces, count, ! spec->is_empty, host_call, text);
}

/* The linkage for this set of interfaces, made on first need and kept with the engine. */
static const struct linkage *
linkage_of (struct engine *e, const struct guest_spec *spec, struct mur_error **err)
{
    pthread_mutex_lock (&e->lock);
    struct linkage *found = NULL;
    for (size_t i = 0; i < e->linkage_count && ! found; i++)
        if (linkage_fits (e->linkages[i], spec))
            found = e->linkages[i];
    char *text = NULL;
    struct bridge_linker *linker = found ? NULL : linker_of (e, spec, &text);
    if (linker) {
        found = x_new0 (struct linkage);
        found->linker = linker;
        found->is_empty = spec->is_empty;
        found->interface_count = spec->binding_count;
        found->interfaces = x_new_array (const struct host_interface *, spec->binding_count + 1);
        for (size_t i = 0; i < spec->binding_count; i++)
            found->interfaces[i] = spec->bindings[i].interface;
        x_grow (e->linkages, e->linkage_count, e->linkage_cap);
        e->linkages[e->linkage_count++] = found;
    }
    pthread_mutex_unlock (&e->lock);
    if (! found)
        fail_with_text (err, E_RUN_001, text);
    return found;
}

/* The component resolved against a linkage, kept with the component. */
static const struct bridge_linked *
linked_of (const struct component *component, const struct linkage *linkage, struct mur_error **err)
{
    struct component *c =
        (struct component *)component; /* a cache: the component itself stays as it is */
    const struct bridge_linked *found = NULL;
    char *text = NULL;
    pthread_mutex_lock (&c->lock);
    for (size_t i = 0; i < c->linked_count && ! found; i++)
        if (c->linked[i].linkage == linkage)
            found = c->linked[i].linked;
    if (! found) {
        struct bridge_linked *made = bridge_link (linkage->linker, c->wasm, &text);
        if (made) {
            x_grow (c->linked, c->linked_count, c->linked_cap);
            c->linked[c->linked_count++] = (struct linked){ linkage, made };
        }
        found = made;
    }
    pthread_mutex_unlock (&c->lock);
    if (! found)
        fail_with_text (err, E_RUN_002, text);
    return found;
}

/* --- one stretch of guest code --- */

struct stretch {
    struct engine *engine;
    struct cancel *cancel;
    struct cancel *outer; /* of the call this one is nested in */
    struct bridge_stop *stop;
    uint64_t listener;
};

static void
raise_stop (void *ctx)
{
    bridge_stop_raise (ctx);
}

static bool
stretch_begin (struct stretch *s, struct engine *e, struct cancel *cancel, struct mur_error **err)
{
    if (! engine_enter (e, err))
        return false;
    *s = (struct stretch){ .engine = e, .cancel = cancel, .outer = current_cancel };
    s->stop = bridge_stop_new (e->wasm);
    s->listener = cancel_add (cancel, raise_stop, s->stop);
    current_cancel = cancel;
    return true;
}

static void
stretch_end (struct stretch *s)
{
    engine_leave (s->engine);
    current_cancel = s->outer;
    cancel_remove (s->cancel, s->listener);
    bridge_stop_free (s->stop);
}

/* --- guests --- */

static uint64_t
seconds_to_ms (uint64_t seconds)
{
    uint64_t ms;
    return __builtin_mul_overflow (seconds, 1000U, &ms) ? UINT64_MAX : ms;
}

static struct bridge_guest *
bridge_guest_of (struct guest *g, const struct guest_spec *spec, char **text)
{
    struct bridge_guest_spec b = {
        .guest = g,
        .preopens = spec->preopens,
        .preopen_count = spec->preopen_count,
        .env = spec->env,
        .memory_bytes = spec->limits.memory_bytes,
        .table_elements = spec->limits.table_elements,
        .instances = spec->limits.instances,
        .deadline_ms = seconds_to_ms (spec->limits.deadline_seconds),
        .http = spec->http,
        .http_ctx = spec->http_ctx,
        .has_stdio = ! spec->is_empty,
        .senses = spec->senses,
    };
    while (spec->env && spec->env[b.env_count])
        b.env_count++;
    return bridge_guest_new (g->linked, &b, text);
}

struct guest *
guest_new (const struct guest_spec *spec, struct cancel *cancel, enum guest_ending *ending,
           struct mur_error **err)
{
    *ending = GUEST_TRAPPED;
    const struct linkage *linkage = linkage_of (spec->engine, spec, err);
    if (! linkage)
        return NULL;
    const struct bridge_linked *linked = linked_of (spec->component, linkage, err);
    if (! linked)
        return *ending = GUEST_MISSING_IMPORT, NULL;

    _cleanup_ (guest_freep) struct guest *g = x_new0 (struct guest);
    g->engine = spec->engine;
    g->linkage = linkage;
    g->linked = linked;
    g->contexts = x_new_array (void *, spec->binding_count + 1);
    for (size_t i = 0; i < spec->binding_count; i++)
        g->contexts[i] = spec->bindings[i].ctx;
    char *text = NULL;
    g->guest = bridge_guest_of (g, spec, &text);
    if (! g->guest)
        return fail_with_text (err, E_RUN_001, text), NULL;

    struct stretch stretch;
    if (! stretch_begin (&stretch, g->engine, cancel, err))
        return NULL;
    *ending = bridge_guest_start (g->guest, linked, stretch.stop, &text);
    stretch_end (&stretch);
    if (*ending != GUEST_OK)
        return fail_with_text (err, E_RUN_001, text), NULL;
    return steal_ptr (&g);
}

void
guest_free (struct guest *g)
{
    if (! g)
        return;
    bridge_guest_free (g->guest);
    free (g->contexts);
    free (g);
}

static bool
take_result (wasmtime_component_val_t *from, bool has_result, struct arena *arena,
             struct value *result)
{
    bool ok = true;
    if (result)
        *result = (struct value){ 0 };
    if (has_result && result)
        ok = convert_from_wasm (from, arena, result);
    if (has_result)
        wasmtime_component_val_delete (from);
    return ok;
}

enum guest_ending
guest_call (struct guest *g, const char *interface, const char *function, const struct value *args,
            size_t arg_count, struct arena *arena, struct value *result, struct cancel *cancel,
            struct mur_error **err)
{
    struct stretch stretch;
    if (! stretch_begin (&stretch, g->engine, cancel, err))
        return GUEST_TRAPPED;
    wasmtime_component_val_t *wasm_args = x_new_array (wasmtime_component_val_t, arg_count + 1);
    for (size_t i = 0; i < arg_count; i++)
        convert_to_wasm (&args[i], &wasm_args[i]);
    wasmtime_component_val_t wasm_result = { 0 };
    bool has_result = false;
    char *text = NULL;

    enum guest_ending ending =
        bridge_guest_call (g->guest, g->linked, interface, function, wasm_args, arg_count,
                           &has_result, &wasm_result, stretch.stop, &text);
    stretch_end (&stretch);

    for (size_t i = 0; i < arg_count; i++)
        wasmtime_component_val_delete (&wasm_args[i]);
    free (wasm_args);
    if (ending != GUEST_OK) {
        fail_with_text (err, E_RUN_001, text);
        return ending;
    }
    if (! take_result (&wasm_result, has_result, arena, result)) {
        mur_fail (err, E_RUN_001, "%s#%s returned a value of an unknown kind", interface, function);
        return GUEST_TRAPPED;
    }
    return GUEST_OK;
}

const char *
guest_last_words (struct guest *g, struct arena *arena)
{
    char *text = NULL;
    bridge_guest_last_words (g->guest, &text);
    const char *words = arena_strdup (arena, text);
    bridge_text_free (text);
    return words;
}
