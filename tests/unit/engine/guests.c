/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared parts of the engine's tests. See guests.h.
 */
#include "guests.h"
#include "engine/guest.h"

#include "base/json.h"
#include "fs/paths.h"
#include "fs/root.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct engine *test_engine;

static struct {
    char *name;
    struct component *component;
} loaded[32];

/* The engine catches traps of guests by signal; cmocka puts its own handlers over them before each
 * test. */
static const int trap_signals[] = { SIGSEGV, SIGILL, SIGFPE, SIGBUS };
static struct sigaction trap_handlers[ARRAY_LEN (trap_signals)];

static void
give_traps_back (void)
{
    for (size_t i = 0; i < ARRAY_LEN (trap_signals); i++)
        sigaction (trap_signals[i], &trap_handlers[i], NULL);
}

int
test_engine_up (void **state)
{
    (void)state;
    test_engine = engine_new (NULL);
    for (size_t i = 0; i < ARRAY_LEN (trap_signals); i++)
        sigaction (trap_signals[i], NULL, &trap_handlers[i]);
    return test_engine ? 0 : -1;
}

int
test_engine_down (void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN (loaded) && loaded[i].name; i++) {
        component_free (loaded[i].component);
        free (loaded[i].name);
    }
    engine_free (test_engine);
    return 0;
}

void
test_wasm (const char *name, struct buf *out)
{
    const char *dir = getenv ("MUR_GUESTS");
    _cleanup_free_ char *path = x_asprintf ("%s/%s.wasm", dir ? dir : "build/guests", name);
    if (! fs_read_path (path, 64 << 20, out, NULL)) {
        print_message ("skipped: %s is not built (scripts/build-guests makes it)\n", path);
        skip ();
    }
}

const struct component *
test_component (const char *name)
{
    size_t i = 0;
    for (; loaded[i].name; i++)
        if (strcmp (loaded[i].name, name) == 0)
            return loaded[i].component;
    _cleanup_buf_ struct buf wasm = { 0 };
    test_wasm (name, &wasm);
    assert_true (i + 1 < ARRAY_LEN (loaded));
    loaded[i].component = component_compile (test_engine, wasm.data, wasm.len, NULL);
    assert_non_null (loaded[i].component);
    loaded[i].name = x_strdup (name);
    return loaded[i].component;
}

struct guest_spec
test_spec (const struct component *c, enum guest_kind kind,
           struct host_binding bindings[LINKAGE_MAX])
{
    give_traps_back ();
    return (struct guest_spec){
        .engine = test_engine,
        .component = c,
        .limits = { .memory_bytes = 512 << 20,
                    .table_elements = 100000,
                    .instances = 1000,
                    .deadline_seconds = 60 },
        .bindings = bindings,
        .binding_count = linkage_bind (kind, NULL, 0, bindings),
    };
}

char *
test_probe_input (const char *script)
{
    _cleanup_json_ json_t *object = json_object ();
    json_set_string (object, "do", script);
    return json_text (object, JSON_TEXT_ORDERED);
}

enum guest_ending
test_probe (const struct guest_spec *spec, const char *script, struct buf *text,
            struct cancel *cancel, struct mur_error **err)
{
    enum guest_ending ending;
    _cleanup_ (guest_freep) struct guest *g = guest_new (spec, cancel, &ending, err);
    if (! g)
        return ending;
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct tool_result result;
    _cleanup_free_ char *input = test_probe_input (script);
    ending = host_tool_run (g, input, strlen (input), NULL, arena, &result, cancel, err);
    if (ending == GUEST_OK && result.data)
        buf_append (text, result.data, result.data_len);
    return ending;
}

struct test_timer {
    pthread_t thread;
    struct cancel *cancel;
    uint64_t ms;
};

static void *
raise_later (void *arg)
{
    struct test_timer *t = arg;
    struct timespec wait = { (time_t)(t->ms / 1000), (long)(t->ms % 1000) * 1000000L };
    nanosleep (&wait, NULL);
    cancel_raise (t->cancel);
    return NULL;
}

struct test_timer *
test_raise_after (struct cancel *c, uint64_t ms)
{
    struct test_timer *t = x_new0 (struct test_timer);
    t->cancel = c;
    t->ms = ms;
    assert_int_equal (pthread_create (&t->thread, NULL, raise_later, t), 0);
    return t;
}

void
test_timer_join (struct test_timer *t)
{
    pthread_join (t->thread, NULL);
    free (t);
}

static size_t
entries_of (const char *path)
{
    size_t count = 0;
    _cleanup_closedir_ DIR *dir = opendir (path);
    while (dir && readdir (dir))
        count++;
    return count;
}

size_t
test_open_fds (void)
{
    return entries_of ("/proc/self/fd");
}

size_t
test_threads (void)
{
    return entries_of ("/proc/self/task");
}
