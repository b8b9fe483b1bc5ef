/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache of compiled forms (spec/artifacts.md 12): what is a hit, what is a miss, what is swept,
 * and that nothing of it ever fails a launch.
 */
#include "guests.h"

#include "base/clock.h"
#include "base/digest.h"
#include "base/fdio.h"
#include "engine/compiler_process.h"
#include "engine/form_cache.h"
#include "fs/paths.h"
#include "fs/root.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct home {
    char dir[64];      /* holds .murmur and work */
    char murmur[80];   /* .../.murmur */
    char compiled[96]; /* .../.murmur/compiled */
    char work[80];
    struct form_cache_spec spec;
    struct buf wasm;
    char key[SHA256_HEX_LEN + 1];
    unsigned inflated; /* how often the wasm was asked for */
};

static int
home_up (void **state)
{
    struct home *h = x_new0 (struct home);
    snprintf (h->dir, sizeof h->dir, "/tmp/mur-forms-XXXXXX");
    if (! mkdtemp (h->dir))
        return -1;
    snprintf (h->murmur, sizeof h->murmur, "%s/.murmur", h->dir);
    snprintf (h->compiled, sizeof h->compiled, "%s/compiled", h->murmur);
    snprintf (h->work, sizeof h->work, "%s/work", h->dir);
    mkdir (h->work, 0755);
    h->spec = (struct form_cache_spec){ h->murmur, h->work, 64 << 20 };
    *state = h;
    return 0;
}

static int
home_down (void **state)
{
    struct home *h = *state;
    _cleanup_free_ char *command = x_asprintf ("rm -rf %s", h->dir);
    buf_free (&h->wasm);
    free (h);
    return system (command);
}

static bool
give_wasm (void *ctx, const void **wasm, size_t *len, struct mur_error **err _unused_)
{
    struct home *h = ctx;
    h->inflated++;
    *wasm = h->wasm.data;
    *len = h->wasm.len;
    return true;
}

static struct home *
home_of (void **state)
{
    struct home *h = *state;
    test_wasm ("echo", &h->wasm);
    sha256_hex (h->wasm.data, h->wasm.len, h->key);
    return h;
}

static enum form_outcome
load (struct home *h)
{
    enum form_outcome outcome;
    struct mur_error *err = NULL;
    struct component *c =
        form_cache_load (test_engine, &h->spec, h->key, give_wasm, h, &outcome, &err);
    if (! c)
        fail_msg ("%s", err->message);
    assert_true (component_exports (c, host_tool_interface));
    component_free (c);
    return outcome;
}

/* The one form in the directory, and its sidecar. */
static char *
form_path (struct home *h, const char *suffix)
{
    char engine[17];
    engine_key (h->spec.ceiling_bytes, engine);
    return x_asprintf ("%s/%s-%s.cwasm%s", h->compiled, h->key, engine, suffix);
}

static mode_t
mode_of (const char *path)
{
    struct stat st;
    assert_int_equal (lstat (path, &st), 0);
    return st.st_mode & 07777;
}

static void
overwrite (const char *path, off_t at, const char *text)
{
    _cleanup_close_ int fd = open (path, O_WRONLY | O_CLOEXEC);
    assert_int_equal (pwrite (fd, text, strlen (text), at), strlen (text));
}

static void
test_the_second_load_is_a_hit_and_inflates_nothing (void **state)
{
    struct home *h = home_of (state);
    assert_int_equal (load (h), FORM_COMPILED);
    assert_int_equal (load (h), FORM_HIT);
    assert_int_equal (h->inflated, 1);
    assert_true (form_cache_has (&h->spec, h->key));
    _cleanup_free_ char *form = form_path (h, "");
    _cleanup_free_ char *sidecar = form_path (h, ".sha256");
    assert_int_equal (mode_of (h->murmur), 0700);
    assert_int_equal (mode_of (h->compiled), 0700);
    assert_int_equal (mode_of (form), 0600);
    assert_int_equal (mode_of (sidecar), 0600);
}

static void
test_a_warm_load_takes_less_than_a_millisecond (void **state)
{
    struct home *h = home_of (state);
    load (h);
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        uint64_t start = clock_monotonic_us ();
        assert_int_equal (load (h), FORM_HIT);
        uint64_t took = clock_monotonic_us () - start;
        best = took < best ? took : best;
    }
    print_message ("warm load: %llu us\n", (unsigned long long)best);
    assert_in_range (best, 0, 1000);
}

static void
test_artifacts_37_precompiling_twice_keeps_the_form (void **state)
{
    struct home *h = home_of (state);
    bool is_stored = false;
    assert_false (form_cache_has (&h->spec, h->key));
    assert_succeeds (form_cache_store (test_engine, &h->spec, h->key, h->wasm.data, h->wasm.len,
                                       &is_stored, &err));
    assert_true (is_stored);
    struct stat before, after;
    _cleanup_free_ char *form = form_path (h, "");
    assert_int_equal (stat (form, &before), 0);
    assert_true (form_cache_has (&h->spec, h->key));
    assert_int_equal (stat (form, &after), 0);
    assert_int_equal (before.st_ino, after.st_ino);
    assert_int_equal (before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

static void
test_changed_bytes_are_a_miss_and_are_replaced (void **state)
{
    struct home *h = home_of (state);
    load (h);
    _cleanup_free_ char *form = form_path (h, "");
    overwrite (form, 5000, "poison");
    assert_false (form_cache_has (&h->spec, h->key));
    assert_int_equal (load (h), FORM_COMPILED);
    assert_int_equal (load (h), FORM_HIT);
}

static void
test_a_touched_form_is_hashed_again_and_restamped (void **state)
{
    struct home *h = home_of (state);
    load (h);
    _cleanup_free_ char *form = form_path (h, "");
    _cleanup_free_ char *sidecar = form_path (h, ".sha256");
    struct timespec now[2] = { { 0, UTIME_NOW }, { 0, UTIME_NOW } };
    assert_int_equal (utimensat (AT_FDCWD, form, now, 0), 0);
    _cleanup_buf_ struct buf before = { 0 }, after = { 0 };
    assert_true (fs_read_path (sidecar, 4096, &before, NULL));
    assert_int_equal (load (h), FORM_HIT);
    assert_true (fs_read_path (sidecar, 4096, &after, NULL));
    assert_string_not_equal (before.data, after.data);
    assert_memory_equal (before.data, after.data, SHA256_HEX_LEN + 1);
}

static void
test_a_sidecar_without_a_stamp_is_enough (void **state)
{
    struct home *h = home_of (state);
    load (h);
    _cleanup_free_ char *sidecar = form_path (h, ".sha256");
    assert_int_equal (truncate (sidecar, SHA256_HEX_LEN), 0);
    assert_int_equal (load (h), FORM_HIT);
}

static void
test_a_form_others_can_read_a_link_or_a_fifo_is_a_miss (void **state)
{
    struct home *h = home_of (state);
    _cleanup_free_ char *form = form_path (h, "");
    _cleanup_free_ char *elsewhere = x_asprintf ("%s/elsewhere", h->dir);
    load (h);
    assert_int_equal (chmod (form, 0640), 0);
    assert_int_equal (load (h), FORM_COMPILED);
    assert_int_equal (rename (form, elsewhere), 0);
    assert_int_equal (symlink (elsewhere, form), 0);
    assert_int_equal (load (h), FORM_COMPILED);
    assert_int_equal (unlink (form), 0);
    assert_int_equal (mkfifo (form, 0600), 0);
    assert_int_equal (load (h), FORM_COMPILED);
    assert_int_equal (load (h), FORM_HIT);
}

static void
test_a_directory_open_to_others_is_emptied_and_narrowed (void **state)
{
    struct home *h = home_of (state);
    load (h);
    _cleanup_free_ char *planted = x_asprintf ("%s/planted", h->compiled);
    _cleanup_close_ int fd = open (planted, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true (fd >= 0);
    assert_int_equal (chmod (h->compiled, 0755), 0);
    assert_int_equal (load (h), FORM_COMPILED);
    assert_int_equal (access (planted, F_OK), -1);
    assert_int_equal (mode_of (h->compiled), 0700);
    assert_int_equal (load (h), FORM_HIT);
}

static void
test_a_directory_that_is_a_link_is_never_used (void **state)
{
    struct home *h = home_of (state);
    _cleanup_free_ char *real = x_asprintf ("%s/real", h->dir);
    assert_int_equal (mkdir (real, 0700), 0);
    assert_int_equal (mkdir (h->murmur, 0700), 0);
    assert_int_equal (symlink (real, h->compiled), 0);
    assert_int_equal (load (h), FORM_COMPILED);
    assert_int_equal (load (h), FORM_COMPILED);
    assert_int_equal (rmdir (real), 0); /* still empty */
}

static void
test_a_cache_the_capsule_can_reach_is_bypassed (void **state)
{
    struct home *h = home_of (state);
    load (h);
    h->spec.writable_root = h->dir;
    assert_int_equal (load (h), FORM_COMPILED);
    h->spec.writable_root = h->compiled;
    assert_int_equal (load (h), FORM_COMPILED);
    _cleanup_free_ char *link = x_asprintf ("%s/link", h->dir);
    assert_int_equal (symlink (h->dir, link), 0);
    h->spec.writable_root = link;
    assert_int_equal (load (h), FORM_COMPILED);
    h->spec.writable_root = h->work;
    assert_int_equal (load (h), FORM_HIT);
    h->spec.writable_root = NULL;
    assert_int_equal (load (h), FORM_HIT);
}

static void
test_a_key_that_is_no_digest_bypasses_the_cache (void **state)
{
    struct home *h = home_of (state);
    memcpy (h->key, "../../../../etc", 15);
    assert_int_equal (load (h), FORM_COMPILED);
    assert_int_equal (access (h->compiled, F_OK), -1);
}

static void
test_another_ceiling_is_another_form (void **state)
{
    struct home *h = home_of (state);
    load (h);
    h->spec.ceiling_bytes++;
    assert_int_equal (load (h), FORM_COMPILED);
    h->spec.ceiling_bytes--;
    assert_int_equal (load (h), FORM_HIT);
}

static void
test_a_form_of_another_engine_is_a_miss (void **state)
{
    struct home *h = home_of (state);
    load (h);
    /* Right digest, private, but no code the engine takes. */
    _cleanup_free_ char *form = form_path (h, "");
    _cleanup_free_ char *sidecar = form_path (h, ".sha256");
    char digest[SHA256_HEX_LEN + 1];
    sha256_hex ("not code", 8, digest);
    assert_int_equal (truncate (form, 0), 0);
    overwrite (form, 0, "not code");
    overwrite (sidecar, 0, digest);
    assert_int_equal (load (h), FORM_COMPILED);
    assert_int_equal (load (h), FORM_HIT);
}

static void
test_an_unwritable_home_never_fails_a_launch (void **state)
{
    struct home *h = home_of (state);
    h->spec.murmur_dir = "/proc/nowhere/.murmur";
    h->spec.writable_root = NULL;
    assert_int_equal (load (h), FORM_COMPILED);
}

static void
test_a_component_that_does_not_compile_is_told_so_with_or_without_a_cache (void **state)
{
    struct home *h = home_of (state);
    buf_truncate (&h->wasm, 100);
    enum form_outcome outcome;
    assert_fails (form_cache_load (test_engine, &h->spec, h->key, give_wasm, h, &outcome, &err) !=
                      NULL,
                  E_RUN_001);
    assert_fails (form_cache_store (test_engine, &h->spec, h->key, "x", 1, NULL, &err), E_RUN_001);
}

static void
age (const char *path, int days)
{
    struct timespec times[2] = { { time (NULL) - days * 24 * 3600, 0 } };
    times[1] = times[0];
    assert_int_equal (utimensat (AT_FDCWD, path, times, 0), 0);
}

static char *
plant (struct home *h, const char *name, int days)
{
    char *path = x_asprintf ("%s/%s", h->compiled, name);
    _cleanup_close_ int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true (fd >= 0);
    age (path, days);
    return path;
}

static void
test_a_store_sweeps_what_was_not_used_for_thirty_days (void **state)
{
    struct home *h = home_of (state);
    assert_int_equal (mkdir (h->murmur, 0700), 0);
    assert_int_equal (mkdir (h->compiled, 0700), 0);
    _cleanup_free_ char *old = plant (h, "a.cwasm", 31);
    _cleanup_free_ char *old_sidecar = plant (h, "a.cwasm.sha256", 1);
    _cleanup_free_ char *young = plant (h, "b.cwasm", 29);
    _cleanup_free_ char *orphan = plant (h, "c.cwasm.sha256", 31);
    _cleanup_free_ char *tmp = plant (h, ".x.1.u.tmp", 1);
    _cleanup_free_ char *fresh_tmp = plant (h, ".y.1.u.tmp", 0);
    _cleanup_free_ char *other = plant (h, "notes.txt", 400);
    _cleanup_free_ char *dir = x_asprintf ("%s/old.cwasm", h->compiled);
    assert_int_equal (mkdir (dir, 0700), 0);
    age (dir, 400);
    load (h);
    assert_int_equal (access (old, F_OK), -1);
    assert_int_equal (access (old_sidecar, F_OK), -1);
    assert_int_equal (access (young, F_OK), 0);
    assert_int_equal (access (orphan, F_OK), -1);
    assert_int_equal (access (tmp, F_OK), -1);
    assert_int_equal (access (fresh_tmp, F_OK), 0);
    assert_int_equal (access (other, F_OK), 0);
    assert_int_equal (access (dir, F_OK), 0);
}

static void
test_loading_sweeps_nothing (void **state)
{
    struct home *h = home_of (state);
    load (h);
    _cleanup_free_ char *old = plant (h, "a.cwasm", 31);
    assert_int_equal (load (h), FORM_HIT);
    assert_int_equal (access (old, F_OK), 0);
}

/* --- the compiler in a process of its own: this program, asked as main below says --- */

/* A program that is asked to be the compiler and is none. */
static char *
no_compiler (struct home *h, const char *script)
{
    char *path = x_asprintf ("%s/compiler", h->dir);
    _cleanup_close_ int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    assert_true (fd_write_all (fd, script, strlen (script)));
    return path;
}

static void
expect_refusal (struct home *h, const char *says)
{
    _cleanup_error_ struct mur_error *err = NULL;
    assert_null (form_cache_load (test_engine, &h->spec, h->key, give_wasm, h, NULL, &err));
    assert_int_equal (err->code, E_RUN_001);
    assert_non_null (strstr (err->message, says));
    assert_false (form_cache_has (&h->spec, h->key));
}

static void
test_F10_another_process_compiles_what_this_one_loads (void **state)
{
    struct home *h = home_of (state);
    h->spec.compiler = "/proc/self/exe";
    assert_int_equal (load (h), FORM_COMPILED);
    assert_int_equal (load (h), FORM_HIT);
    h->wasm.data[h->wasm.len / 2] ^= 0x55;
    h->wasm.len -= 9;
    sha256_hex (h->wasm.data, h->wasm.len, h->key);
    expect_refusal (h, "does not compile");
}

static void
test_F10_a_compiler_that_dies_or_is_mute_costs_one_error (void **state)
{
    struct home *h = home_of (state);
    _cleanup_free_ char *killed = no_compiler (h, "#!/bin/sh\nkill -9 $$\n");
    h->spec.compiler = killed;
    expect_refusal (h, "the compiler was ended by signal 9 (Killed)");
    _cleanup_free_ char *mute = no_compiler (h, "#!/bin/sh\nexit 2\n");
    expect_refusal (h, "gave no answer");
    _cleanup_free_ char *refusing = no_compiler (h, "#!/bin/sh\nprintf 'no such thing'\nexit 1\n");
    expect_refusal (h, "no such thing");
}

static void
test_F10_without_such_a_program_it_compiles_here (void **state)
{
    struct home *h = home_of (state);
    h->spec.compiler = "/nowhere/mur";
    assert_int_equal (load (h), FORM_COMPILED);
}

static void *
load_in_turn (void *ctx)
{
    return load (ctx) == FORM_HIT ? ctx : NULL;
}

static void
test_F10_who_comes_second_waits_and_loads (void **state)
{
    struct home *h = home_of (state);
    assert_int_equal (load (h), FORM_COMPILED);
    _cleanup_free_ char *form = form_path (h, "");
    _cleanup_free_ char *aside = x_asprintf ("%s/aside", h->dir);
    assert_int_equal (rename (form, aside), 0);
    _cleanup_close_ int turn = open (h->compiled, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal (flock (turn, LOCK_EX), 0);
    pthread_t second;
    assert_int_equal (pthread_create (&second, NULL, load_in_turn, h), 0);
    /* Whether it has looked by now or looks later: it finds the form and compiles nothing. */
    assert_int_equal (rename (aside, form), 0);
    assert_int_equal (flock (turn, LOCK_UN), 0);
    void *hit = NULL;
    assert_int_equal (pthread_join (second, &hit), 0);
    assert_ptr_equal (hit, h);
    assert_int_equal (h->inflated, 1);
}

#define form_test(name) cmocka_unit_test_setup_teardown (name, home_up, home_down)

int
main (int argc, char **argv)
{
    if (argc == 2 && strcmp (argv[1], COMPILER_ARGUMENT) == 0)
        return compiler_process_serve ();
    const struct CMUnitTest tests[] = {
        form_test (test_the_second_load_is_a_hit_and_inflates_nothing),
        form_test (test_a_warm_load_takes_less_than_a_millisecond),
        form_test (test_artifacts_37_precompiling_twice_keeps_the_form),
        form_test (test_changed_bytes_are_a_miss_and_are_replaced),
        form_test (test_a_touched_form_is_hashed_again_and_restamped),
        form_test (test_a_sidecar_without_a_stamp_is_enough),
        form_test (test_a_form_others_can_read_a_link_or_a_fifo_is_a_miss),
        form_test (test_a_directory_open_to_others_is_emptied_and_narrowed),
        form_test (test_a_directory_that_is_a_link_is_never_used),
        form_test (test_a_cache_the_capsule_can_reach_is_bypassed),
        form_test (test_a_key_that_is_no_digest_bypasses_the_cache),
        form_test (test_another_ceiling_is_another_form),
        form_test (test_a_form_of_another_engine_is_a_miss),
        form_test (test_an_unwritable_home_never_fails_a_launch),
        form_test (test_a_component_that_does_not_compile_is_told_so_with_or_without_a_cache),
        form_test (test_a_store_sweeps_what_was_not_used_for_thirty_days),
        form_test (test_loading_sweeps_nothing),
        form_test (test_F10_another_process_compiles_what_this_one_loads),
        form_test (test_F10_a_compiler_that_dies_or_is_mute_costs_one_error),
        form_test (test_F10_without_such_a_program_it_compiles_here),
        form_test (test_F10_who_comes_second_waits_and_loads),
    };
    return cmocka_run_group_tests_name ("compiled forms", tests, test_engine_up, test_engine_down);
}
