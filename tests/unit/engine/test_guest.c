/* SPDX-License-Identifier: Apache-2.0
 *
 * Guests: what they see, how their calls end, and that an abandoned one leaves nothing behind.
 */
#include "engine/guest.h"
#include "guests.h"

#include "base/clock.h"
#include "base/fdio.h"
#include "host/capsule.h"
#include "host/tool_registry.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char work[] = "/tmp/mur-guest-XXXXXX";

static int
up (void **state)
{
    return mkdtemp (work) ? test_engine_up (state) : -1;
}

static int
down (void **state)
{
    _cleanup_free_ char *command = x_asprintf ("rm -rf %s", work);
    return test_engine_down (state) || system (command);
}

/* Runs a script in a probe and checks that it ends as told; returns the report or the error's
 * message. */
static char *
probe (const struct guest_spec *spec, const char *script, enum guest_ending expected)
{
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    enum guest_ending ending = test_probe (spec, script, &text, NULL, &err);
    if (ending != expected)
        fail_msg ("ended %d, not %d: %s", ending, expected, err ? err->message : text.data);
    return err ? x_strdup (err->message) : buf_steal (&text);
}

static void
test_a_guest_sees_exactly_the_environment_it_was_given (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    char *const env[] = { "A=1", "B=two=2", NULL };
    spec.env = env;
    _cleanup_free_ char *text = probe (&spec, "env\n", GUEST_OK);
    assert_string_equal (text, "A=1\nB=two=2\n");
}

static void
test_a_guest_reads_and_writes_its_preopens_and_nothing_else (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    _cleanup_close_ int fd = open (work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal (mkdirat (fd, "ro", 0755), 0);
    assert_int_equal (symlinkat ("/etc/passwd", fd, "escape"), 0);
    _cleanup_close_ int ro = openat (fd, "ro", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_close_ int in_ro = openat (ro, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true (fd_write_all (in_ro, "inside", 6));
    const struct guest_preopen preopens[] = { { fd, ".", false }, { ro, "murmur-runtime", true } };
    spec.preopens = preopens;
    spec.preopen_count = ARRAY_LEN (preopens);
    _cleanup_free_ char *text = probe (&spec,
                                       "write a.txt hello\n"
                                       "read a.txt\n"
                                       "read murmur-runtime/file\n"
                                       "write murmur-runtime/file no\n"
                                       "read ../a.txt\n"
                                       "read escape\n"
                                       "read /etc/passwd\n",
                                       GUEST_OK);
    assert_non_null (strstr (text, "write: ok\nhello\ninside\nwrite: error: "));
    assert_null (strstr (text, "root:"));
    struct stat st;
    assert_int_equal (fstatat (fd, "a.txt", &st, 0), 0);
    assert_int_equal (fstatat (ro, "file", &st, 0), 0);
    assert_int_equal (st.st_size, 6);
}

/* A script capsule with this task runs in <name> below the test's folder; its result file is
 * returned. */
static char *
run_script (struct guest_spec *spec, const char *name, const char *task_text)
{
    _cleanup_free_ char *dir = x_asprintf ("%s/%s", work, name);
    assert_int_equal (mkdir (dir, 0755), 0);
    _cleanup_close_ int fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal (mkdirat (fd, "out", 0755), 0);
    assert_int_equal (mkdirat (fd, "murmur-runtime", 0755), 0);
    _cleanup_close_ int task =
        openat (fd, "murmur-runtime/task.md", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true (fd_write_all (task, task_text, strlen (task_text)));
    const struct guest_preopen preopens[] = { { fd, ".", false } };
    spec->preopens = preopens;
    spec->preopen_count = 1;
    _cleanup_error_ struct mur_error *err = NULL;
    enum guest_ending ending;
    struct guest *g = guest_new (spec, NULL, &ending, &err);
    if (g)
        ending = host_capsule_run (g, NULL, &err);
    guest_free (g);
    if (ending != GUEST_OK)
        fail_msg ("ended %d: %s", ending, err->message);
    _cleanup_buf_ struct buf result = { 0 };
    _cleanup_close_ int out = openat (fd, "out/result.txt", O_RDONLY | O_CLOEXEC);
    assert_true (fd_read_all (out, 1 << 20, &result));
    return buf_steal (&result);
}

static void
test_a_guest_reaches_no_socket_and_no_name (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("probe-sockets"), GUEST_SCRIPT, bindings);
    _cleanup_free_ char *result = run_script (&spec, "sockets", "7 localhost");
    print_message ("%s", result);
    assert_non_null (strstr (result, "denied"));
    assert_null (strstr (result, "reached"));
}

static void
test_a_guest_without_preopens_has_no_files (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    _cleanup_free_ char *text = probe (&spec, "read a.txt\nlist .\n", GUEST_OK);
    assert_non_null (strstr (text, "read: error"));
    assert_non_null (strstr (text, "list: error"));
}

static void
test_a_trap_is_a_trap (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    _cleanup_free_ char *text = probe (&spec, "trap\n", GUEST_TRAPPED);
    assert_non_null (strstr (text, "unreachable"));
}

static void
test_bottomless_recursion_is_a_trap (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    _cleanup_free_ char *text = probe (&spec, "recurse\n", GUEST_TRAPPED);
    assert_non_null (text);
}

/* containment.md 32, balloon */
static void
test_containment_32_a_memory_balloon_names_the_key_and_both_numbers (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    spec.limits.memory_bytes = 16 << 20;
    _cleanup_free_ char *text = probe (&spec, "balloon 64\n", GUEST_LIMIT);
    assert_non_null (strstr (text, "linear memory growth to "));
    assert_non_null (strstr (text, " bytes exceeds capabilities.limits.memory_bytes (16777216)"));
}

static void
test_a_refused_growth_the_guest_survives_is_no_failure (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    spec.limits.memory_bytes = 16 << 20;
    _cleanup_free_ char *text = probe (&spec, "grow 64\n", GUEST_OK);
    assert_non_null (strstr (text, "grow: "));
}

static void
test_an_initial_memory_above_the_limit_is_refused_at_instantiation (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    spec.limits.memory_bytes = 65536;
    _cleanup_free_ char *text = probe (&spec, "say hi\n", GUEST_LIMIT);
    assert_non_null (strstr (text, "capabilities.limits.memory_bytes (65536)"));
}

static void
test_too_many_instances_name_the_key (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    spec.limits.instances = 1;
    _cleanup_free_ char *text = probe (&spec, "say hi\n", GUEST_LIMIT);
    assert_non_null (strstr (text, "capabilities.limits.instances (1)"));
}

static void
test_table_growth_names_the_key (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec =
        test_spec (test_component ("capsule-table-growth"), GUEST_SCRIPT, bindings);
    spec.limits.table_elements = 10;
    _cleanup_error_ struct mur_error *err = NULL;
    enum guest_ending ending;
    _cleanup_ (guest_freep) struct guest *g = guest_new (&spec, NULL, &ending, &err);
    if (g)
        ending = host_capsule_run (g, NULL, &err);
    assert_int_equal (ending, GUEST_LIMIT);
    assert_non_null (strstr (err->message, "capabilities.limits.table_elements (10)"));
}

/* containment.md 32, spin loop */
static void
test_containment_32_a_spin_loop_hits_its_deadline (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    spec.limits.deadline_seconds = 1;
    uint64_t start = clock_monotonic_ms ();
    _cleanup_free_ char *text = probe (&spec, "spin\n", GUEST_DEADLINE);
    uint64_t took = clock_monotonic_ms () - start;
    assert_in_range (took, 900, 1800);
    assert_non_null (strstr (text, "1s deadline"));
    assert_non_null (strstr (text, "capabilities.limits.deadline_seconds"));
}

static void
test_a_deadline_fires_when_the_guest_wakes_from_a_host_wait (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    spec.limits.deadline_seconds = 1;
    _cleanup_free_ char *text = probe (&spec, "sleep 1300\nspin\n", GUEST_DEADLINE);
    assert_non_null (text);
}

static void
test_a_missing_import_is_named (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("missing-import"), GUEST_TOOL, bindings);
    struct mur_error *err = NULL;
    enum guest_ending ending;
    assert_null (guest_new (&spec, NULL, &ending, &err));
    assert_int_equal (ending, GUEST_MISSING_IMPORT);
    assert_int_equal (err->code, E_RUN_002);
    print_message ("%s\n", err->message);
    assert_non_null (strchr (err->message, '/'));
    mur_error_free (err);
}

static void
test_a_murmur_import_of_another_version_is_named (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec =
        test_spec (test_component ("tool-wrong-version"), GUEST_TOOL, bindings);
    _cleanup_free_ char *text = probe (&spec, "x", GUEST_MISSING_IMPORT);
    assert_non_null (strstr (text, "murmur:tool/run@9.9.9"));
}

static void
test_a_tool_is_not_offered_what_a_script_capsule_is (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("probe"), GUEST_TOOL, bindings);
    struct mur_error *err = NULL;
    enum guest_ending ending;
    assert_null (guest_new (&spec, NULL, &ending, &err));
    assert_int_equal (ending, GUEST_MISSING_IMPORT);
    assert_non_null (strstr (err->message, "murmur:"));
    mur_error_free (err);
}

static void
test_an_export_of_another_version_is_missing (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec =
        test_spec (test_component ("capsule-wrong-version"), GUEST_SCRIPT, bindings);
    _cleanup_error_ struct mur_error *err = NULL;
    enum guest_ending ending;
    _cleanup_ (guest_freep) struct guest *g = guest_new (&spec, NULL, &ending, &err);
    assert_non_null (g);
    assert_int_equal (host_capsule_run (g, NULL, &err), GUEST_MISSING_EXPORT);
    assert_int_equal (err->code, E_RUN_001);
    assert_non_null (strstr (err->message, "murmur:capsule/run@0.1.0"));
    assert_non_null (strstr (err->hint, "rebuild"));
    assert_false (component_exports (spec.component, "murmur:capsule/run@0.1.0"));
    assert_true (component_exports (spec.component, "murmur:capsule/run@9.9.9"));
    assert_true (component_exports (test_component ("tool-probe"), "murmur:tool/run@0.1.0"));
}

/* --- abandoned calls --- */

/* Worker threads of a freed guest end on their own, soon. */
static void
back_to (size_t fds, size_t threads)
{
    for (int i = 0; i < 200 && (test_open_fds () > fds || test_threads () > threads); i++)
        usleep (10000);
    assert_in_range (test_open_fds (), 0, fds);
    assert_in_range (test_threads (), 0, threads);
}

/* The probe runs <script> until it is cancelled after 100 ms; it must be gone within 150 ms of
 * that, and leave nothing. */
static void
is_cancelled_at_once (const struct guest_spec *spec, const char *script)
{
    size_t fds = 0, threads = 0;
    for (int round = 0; round < 3; round++) {
        struct cancel *c = cancel_new ();
        struct test_timer *t = test_raise_after (c, 100);
        _cleanup_buf_ struct buf text = { 0 };
        _cleanup_error_ struct mur_error *err = NULL;
        uint64_t start = clock_monotonic_ms ();
        enum guest_ending ending = test_probe (spec, script, &text, c, &err);
        uint64_t took = clock_monotonic_ms () - start;
        test_timer_join (t);
        cancel_unref (c);
        if (ending != GUEST_CANCELLED)
            fail_msg ("ended %d: %s %s", ending, err ? err->message : "", text.data);
        assert_in_range (took, 95, 600);
        if (round == 0) { /* the ticker and, for files, the first worker exist from here on */
            fds = test_open_fds ();
            threads = test_threads ();
        }
    }
    back_to (fds, threads);
}

static void
test_a_guest_in_a_clock_sleep_is_cancelled (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    is_cancelled_at_once (&spec, "sleep 20000\n");
}

static void
test_a_guest_in_a_pure_loop_is_cancelled (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    is_cancelled_at_once (&spec, "spin\n");
}

/* Nobody is at its other end: an open that waits would not come back. */
static void
test_a_guest_is_given_no_fifo (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    _cleanup_close_ int fd = open (work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal (mkfifoat (fd, "fifo", 0644), 0);
    assert_int_equal (symlinkat ("fifo", fd, "to-fifo"), 0);
    const struct guest_preopen preopens[] = { { fd, ".", false } };
    spec.preopens = preopens;
    spec.preopen_count = 1;
    _cleanup_free_ char *text = probe (&spec,
                                       "read fifo\n"
                                       "append fifo x\n"
                                       "write fifo x\n"
                                       "read to-fifo\n"
                                       "write plain x\n"
                                       "read plain\n",
                                       GUEST_OK);
    assert_non_null (strstr (text, "read: error"));
    assert_non_null (strstr (text, "append: error"));
    assert_non_null (strstr (text, "write: error"));
    assert_non_null (strstr (text, "write: ok\nx"));
}

static void
test_a_call_with_a_cancel_already_raised_does_not_run (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    struct cancel *c = cancel_new ();
    cancel_raise (c);
    assert_int_equal (test_probe (&spec, "spin\n", NULL, c, NULL), GUEST_CANCELLED);
    cancel_unref (c);
}

/* --- calls out of a guest --- */

static bool
invoke_probe (void *ctx, const char *name, const char *data, size_t len _unused_,
              const char *log_path _unused_, struct arena *arena, struct tool_result *result,
              const char **refusal)
{
    const struct component *tool = ctx;
    if (strcmp (name, "local/nested") != 0)
        return *refusal = "not one of this session's tools", false;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (tool, GUEST_TOOL, bindings);
    enum guest_ending ending;
    struct guest *g = guest_new (&spec, guest_current_cancel (), &ending, NULL);
    assert_non_null (g);
    ending =
        host_tool_run (g, data, strlen (data), NULL, arena, result, guest_current_cancel (), NULL);
    guest_free (g);
    return ending == GUEST_OK;
}

static void
test_a_host_function_may_call_another_guest (void **state)
{
    (void)state;
    struct tool_registry_host registry = { (void *)test_component ("tool-probe"), invoke_probe };
    const struct linkage_context contexts[] = { { &host_tool_registry, &registry } };
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("probe"), GUEST_SCRIPT, bindings);
    spec.binding_count = linkage_bind (GUEST_SCRIPT, contexts, 1, bindings);
    _cleanup_free_ char *result = run_script (
        &spec, "nested", "invoke local/nested {\"do\":\"sleep 20\"}\ninvoke local/other say hi\n");
    assert_non_null (strstr (result, "sleep: "));
    assert_non_null (strstr (result, "not one of this session's tools"));
}

/* The echo tool gives back what it was given. */
static char *
echo (const char *data, size_t len, size_t *out_len)
{
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("echo"), GUEST_TOOL, bindings);
    enum guest_ending ending;
    _cleanup_ (guest_freep) struct guest *g = guest_new (&spec, NULL, &ending, NULL);
    assert_non_null (g);
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct tool_result result;
    assert_int_equal (host_tool_run (g, data, len, NULL, arena, &result, NULL, NULL), GUEST_OK);
    *out_len = result.data_len;
    return x_memdup (result.data, result.data_len + 1);
}

static void
test_text_passes_unchanged_with_nul_bytes_and_at_any_size (void **state)
{
    (void)state;
    size_t len;
    _cleanup_free_ char *small = echo ("a\0\xc3\xa9", 4, &len);
    assert_int_equal (len, 4);
    assert_memory_equal (small, "a\0\xc3\xa9", 5);
    size_t size = 8 << 20;
    _cleanup_free_ char *big = x_malloc (size);
    memset (big, 'x', size);
    _cleanup_free_ char *back = echo (big, size, &len);
    assert_int_equal (len, size);
    assert_memory_equal (back, big, size);
}

static void
test_malformed_text_reaches_a_guest_with_replacement_characters (void **state)
{
    (void)state;
    size_t len;
    _cleanup_free_ char *text = echo ("a\xff\xe2\x82z\xed\xa0\x80", 8, &len);
    assert_string_equal (
        text, "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

static void
test_every_call_may_be_the_last_of_its_instance_or_not (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    enum guest_ending ending;
    _cleanup_ (guest_freep) struct guest *g = guest_new (&spec, NULL, &ending, NULL);
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct tool_result result;
    _cleanup_free_ char *input = test_probe_input ("say again\n");
    for (int i = 0; i < 3; i++) {
        assert_int_equal (
            host_tool_run (g, input, strlen (input), NULL, arena, &result, NULL, NULL), GUEST_OK);
        assert_string_equal (result.data, "again\n");
    }
}

static void
test_an_empty_guest_has_no_http_and_no_stdio (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec =
        test_spec (test_component ("tool-probe"), GUEST_PROCESS_DRIVER, bindings);
    spec.is_empty = true;
    _cleanup_free_ char *text = probe (&spec, "say hi\n", GUEST_MISSING_IMPORT);
    assert_true (strstr (text, "wasi:http") || strstr (text, "murmur:"));
}

static void *
probe_in_a_thread (void *arg)
{
    const struct guest_spec *spec = arg;
    for (int i = 0; i < 20; i++) {
        _cleanup_buf_ struct buf text = { 0 };
        if (test_probe (spec, "sleep 1\nsay ok\n", &text, NULL, NULL) != GUEST_OK)
            return NULL;
    }
    return arg;
}

static void
test_guests_of_one_component_run_in_many_threads (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    pthread_t threads[6];
    for (size_t i = 0; i < ARRAY_LEN (threads); i++)
        assert_int_equal (pthread_create (&threads[i], NULL, probe_in_a_thread, &spec), 0);
    for (size_t i = 0; i < ARRAY_LEN (threads); i++) {
        void *ok;
        pthread_join (threads[i], &ok);
        assert_non_null (ok);
    }
}

static void
test_thirty_guests_leave_no_descriptor_and_no_thread (void **state)
{
    (void)state;
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("tool-probe"), GUEST_TOOL, bindings);
    _cleanup_free_ char *first = probe (&spec, "say hi\n", GUEST_OK);
    size_t fds = test_open_fds (), threads = test_threads ();
    for (int i = 0; i < 30; i++)
        free (probe (&spec, "say hi\nsleep 1\n", GUEST_OK));
    back_to (fds, threads);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_guest_sees_exactly_the_environment_it_was_given),
        cmocka_unit_test (test_a_guest_reads_and_writes_its_preopens_and_nothing_else),
        cmocka_unit_test (test_a_guest_reaches_no_socket_and_no_name),
        cmocka_unit_test (test_a_guest_without_preopens_has_no_files),
        cmocka_unit_test (test_a_trap_is_a_trap),
        cmocka_unit_test (test_bottomless_recursion_is_a_trap),
        cmocka_unit_test (test_containment_32_a_memory_balloon_names_the_key_and_both_numbers),
        cmocka_unit_test (test_a_refused_growth_the_guest_survives_is_no_failure),
        cmocka_unit_test (test_an_initial_memory_above_the_limit_is_refused_at_instantiation),
        cmocka_unit_test (test_too_many_instances_name_the_key),
        cmocka_unit_test (test_table_growth_names_the_key),
        cmocka_unit_test (test_containment_32_a_spin_loop_hits_its_deadline),
        cmocka_unit_test (test_a_deadline_fires_when_the_guest_wakes_from_a_host_wait),
        cmocka_unit_test (test_a_missing_import_is_named),
        cmocka_unit_test (test_a_murmur_import_of_another_version_is_named),
        cmocka_unit_test (test_a_tool_is_not_offered_what_a_script_capsule_is),
        cmocka_unit_test (test_an_export_of_another_version_is_missing),
        cmocka_unit_test (test_a_guest_in_a_clock_sleep_is_cancelled),
        cmocka_unit_test (test_a_guest_in_a_pure_loop_is_cancelled),
        cmocka_unit_test (test_a_guest_is_given_no_fifo),
        cmocka_unit_test (test_a_call_with_a_cancel_already_raised_does_not_run),
        cmocka_unit_test (test_a_host_function_may_call_another_guest),
        cmocka_unit_test (test_text_passes_unchanged_with_nul_bytes_and_at_any_size),
        cmocka_unit_test (test_malformed_text_reaches_a_guest_with_replacement_characters),
        cmocka_unit_test (test_every_call_may_be_the_last_of_its_instance_or_not),
        cmocka_unit_test (test_an_empty_guest_has_no_http_and_no_stdio),
        cmocka_unit_test (test_guests_of_one_component_run_in_many_threads),
        cmocka_unit_test (test_thirty_guests_leave_no_descriptor_and_no_thread),
    };
    return cmocka_run_group_tests_name ("engine guests", tests, up, down);
}
