/* SPDX-License-Identifier: Apache-2.0
 *
 * One session's confinement: who may be executed, what interpreters may read, the environment,
 * attribution.
 */
#include "tests/unit/testing.h"

#include "base/fdio.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "manifest/text/grammar.h"
#include "sandbox/kernel/environment.h"
#include "sandbox/programs/trust_store.h"
#include "sandbox/run/confinement.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *
value_of (const struct strv *env, const char *name)
{
    size_t len = strlen (name);
    for (size_t i = 0; i < env->len; i++)
        if (strncmp (env->items[i], name, len) == 0 && env->items[i][len] == '=')
            return env->items[i] + len + 1;
    return NULL;
}

static void
test_containment_31_the_session_owns_home_whatever_the_baseline (void **state _unused_)
{
    char *const host[] = { "HOME=/home/me",
                           "PATH=/bin",
                           "SECRET_TOKEN=x",
                           "MY_API_KEY=k",
                           "GITHUB_TOKEN=gh",
                           "EXTRA=1",
                           "AWS_REGION=r",
                           "LD_PRELOAD=/evil",
                           "MURMUR_FORMATION_PEERS=p",
                           NULL };
    const char *const overrides[] = { "MURMUR_SESSION_ID=ses_1", "EXTRA=0", NULL };
    const char *const baseline[] = {
        "HOME", "EXTRA", "MY_API_KEY", "AWS_REGION", "MURMUR_FORMATION_PEERS", NULL
    };
    const char *const strip[] = { "*", NULL };
    struct environment_spec spec = { .host = host,
                                     .overrides = overrides,
                                     .baseline = baseline,
                                     .home_dir = "/r/home",
                                     .runtime_dir = "/s/runtime",
                                     .records_dir = NULL,
                                     .temp_dir = "/tmp" };
    struct strv env = { 0 };
    command_environment_build (&spec, &env);
    assert_string_equal (value_of (&env, "HOME"), "/r/home");
    assert_string_equal (value_of (&env, "USERPROFILE"), "/r/home");
    assert_string_equal (value_of (&env, "PATH"), "/bin");
    assert_string_equal (value_of (&env, "EXTRA"), "1");
    assert_string_equal (value_of (&env, "MURMUR_SESSION_ID"), "ses_1");
    assert_string_equal (value_of (&env, "TMPDIR"), "/tmp");
    static const char *const absent[] = { "MY_API_KEY",        "GITHUB_TOKEN",
                                          "AWS_REGION",        "LD_PRELOAD",
                                          "SECRET_TOKEN",      "MURMUR_FORMATION_PEERS",
                                          "MURMUR_RECORDS_DIR" };
    for (size_t i = 0; i < ARRAY_LEN (absent); i++)
        assert_null (value_of (&env, absent[i]));
    strv_free (&env);
    spec.strip = strip;
    command_environment_build (&spec, &env);
    assert_null (value_of (&env, "PATH"));
    assert_string_equal (value_of (&env, "HOME"), "/r/home");
    strv_free (&env);
}

static void
test_patterns_match_at_either_end_or_within (void **state _unused_)
{
    static const struct {
        const char *pattern, *name;
        bool matches;
    } cases[] = {
        { "A", "A", true },         { "A", "AB", false },    { "A*", "AB", true },
        { "A*", "A", true },        { "*B", "AB", true },    { "*B", "BA", false },
        { "*X*", "aXb", true },     { "*X*", "axb", false }, { "*", "anything", true },
        { "**", "anything", true }, { "", "A", false },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++)
        assert_int_equal (env_pattern_matches (cases[i].pattern, cases[i].name), cases[i].matches);
}

static void
test_a_name_resolves_to_every_match_and_its_needs (void **state _unused_)
{
    const char *const names[] = { "sh", "no-such-program", "/bin/ls", NULL };
    struct exec_allowlist list;
    exec_allowlist_resolve (&list, names, "/usr/bin:/bin", NULL, NULL);
    assert_int_equal (list.name_count, 3);
    assert_non_null (exec_allowlist_find (&list, "sh")->path);
    assert_null (exec_allowlist_find (&list, "no-such-program")->path);
    assert_null (exec_allowlist_find (&list, "/bin/ls")->path);
    assert_true (strv_contains (&list.files, exec_allowlist_find (&list, "sh")->path));
    assert_true (list.files.len > 2);
    exec_allowlist_free (&list);
}

static void
test_containment_20_an_interpreter_gets_its_own_library (void **state _unused_)
{
    if (access ("/usr/bin/python3", X_OK) != 0) {
        print_message ("skipped: no /usr/bin/python3\n");
        skip ();
    }
    const char *const names[] = { "python3", NULL };
    struct exec_allowlist list;
    exec_allowlist_resolve (&list, names, "/usr/bin", NULL, NULL);
    assert_true (list.readable.len > 0);
    bool has_library = false;
    for (size_t i = 0; i < list.readable.len; i++) {
        has_library |= strstr (list.readable.items[i], "/python3") != NULL;
        assert_string_not_equal (list.readable.items[i], "/usr/bin");
        assert_string_not_equal (list.readable.items[i], "/");
    }
    assert_true (has_library);
    exec_allowlist_free (&list);
    /* Found below a writable root, it is never run. */
    const char *const roots[] = { "/usr", NULL };
    exec_allowlist_resolve (&list, names, "/usr/bin", roots, NULL);
    assert_int_equal (list.readable.len, 0);
    exec_allowlist_free (&list);
}

static void
test_the_trust_store_never_holds_the_private_keys_folder (void **state _unused_)
{
    struct strv paths = { 0 };
    trust_store_paths (NULL, &paths);
    for (size_t i = 0; i < paths.len; i++) {
        assert_string_not_equal (paths.items[i], "/etc/ssl");
        assert_string_not_equal (paths.items[i], "/");
    }
    strv_free (&paths);
}

/* --- a whole confinement --- */

struct lab {
    char base[64];
    struct arena *arena;
    struct host_probe probe;
    struct confinement_spec spec;
    struct allow_list network;
};

static void
folder (struct lab *lab, const char *name, struct mount_folder *f)
{
    struct stat st;
    char *path = arena_printf (lab->arena, "%s/%s", lab->base, name);
    assert_int_equal (mkdir (path, 0700), 0);
    assert_int_equal (stat (path, &st), 0);
    *f = (struct mount_folder){ path, st.st_dev, st.st_ino };
}

static int
setup (void **state)
{
    static const char *const allow[] = { "sh", "cat", NULL };
    struct lab *lab = x_new0 (struct lab);
    lab->arena = arena_new ();
    strcpy (lab->base, "/var/tmp/mur-conf-XXXXXX");
    if (! mkdtemp (lab->base))
        return -1;
    host_probe_run (&lab->probe);
    struct mount_folders *f = &lab->spec.folders;
    folder (lab, "work", &f->work);
    folder (lab, "temp", &f->temp);
    folder (lab, "home", &f->home);
    folder (lab, "runtime", &f->runtime);
    folder (lab, "records", &f->records);
    lab->spec.session_id = "ses_test";
    lab->spec.probe = &lab->probe;
    lab->spec.tier =
        lab->probe.landlock.state == PROBE_SUCCEEDED ? CONFINEMENT_LANDLOCK : CONFINEMENT_SECCOMP;
    lab->spec.shell_allow = allow;
    lab->spec.path = "/usr/bin:/bin";
    lab->spec.network = &lab->network;
    lab->spec.cgroup_is_optional = true;
    lab->spec.cgroup =
        (struct cgroup_limits){ .memory_bytes = 1 << 27, .pids_max = 16, .cpu_percent = 200 };
    lab->spec.limits = (struct spawn_limits){ .max_processes = 64,
                                              .max_open_files = 64,
                                              .max_file_size_bytes = 1 << 20,
                                              .cpu_seconds = 1,
                                              .memory_bytes = 1ULL << 31 };
    *state = lab;
    return 0;
}

static int
teardown (void **state)
{
    struct lab *lab = *state;
    bool gone = fs_remove_tree_at (AT_FDCWD, lab->base, NULL);
    arena_free (lab->arena);
    free (lab);
    return gone ? 0 : -1;
}

static int
run (struct confinement *c, const char *script, struct buf *output)
{
    int fds[2];
    assert_int_equal (pipe2 (fds, O_CLOEXEC), 0);
    int null_fd = open ("/dev/null", O_RDONLY | O_CLOEXEC);
    char *const argv[] = { "sh", "-c", (char *)(uintptr_t)script, NULL };
    char *const env[] = { "PATH=/usr/bin:/bin", NULL };
    const struct confined_program program = {
        .path = exec_allowlist_find (confinement_allowlist (c), "sh")->path,
        .argv = argv,
        .env = env,
        .stdin_fd = null_fd,
        .stdout_fd = fds[1],
        .stderr_fd = fds[1]
    };
    struct spawned child;
    assert_succeeds (confinement_spawn (c, &program, &child, &err));
    close (fds[1]);
    close (null_fd);
    assert_true (fd_read_all (fds[0], 1 << 20, output));
    close (fds[0]);
    int status;
    waitpid (child.pid, &status, 0);
    close (child.pidfd);
    return WIFSIGNALED (status) ? 128 + WTERMSIG (status) : WEXITSTATUS (status);
}

static void
test_limits_are_told_apart (void **state)
{
    struct lab *lab = *state;
    if (lab->probe.network.state != PROBE_SUCCEEDED)
        skip ();
    struct mur_error *err = NULL;
    struct confinement *c = confinement_new (&lab->spec, &err);
    if (! c)
        fail_msg ("%s", err->message);
    struct buf output = { 0 };
    struct occupancy o;
    confinement_enter (c, &o);
    int code = run (c, "echo hi; cat /dev/zero > big", &output);
    const char *limit = confinement_leave (c, &o, code > 128 ? code - 128 : 0, code);
    /* The shell reports its child's death by exit code 153; the signal itself is the child's. */
    assert_true (code == 128 + 25 || limit == NULL);
    assert_non_null (strstr (output.data, "hi"));
    confinement_enter (c, &o);
    code = run (c, "while :; do :; done", &output);
    limit = confinement_leave (c, &o, code > 128 ? code - 128 : 0, code);
    assert_string_equal (limit, "cpu_seconds");
    buf_free (&output);
    confinement_free (c);
}

static void
test_two_sessions_never_share_a_network (void **state)
{
    struct lab *lab = *state;
    if (lab->probe.network.state != PROBE_SUCCEEDED)
        skip ();
    struct confinement *a = confinement_new (&lab->spec, NULL);
    struct confinement *b = confinement_new (&lab->spec, NULL);
    struct stat sa, sb, again;
    assert_int_equal (fstat (confinement_namespaces (a, NULL)->fds[NS_NET], &sa), 0);
    assert_int_equal (fstat (confinement_namespaces (b, NULL)->fds[NS_NET], &sb), 0);
    assert_int_equal (fstat (confinement_namespaces (a, NULL)->fds[NS_NET], &again), 0);
    assert_int_equal (sa.st_ino, again.st_ino);
    assert_int_not_equal (sa.st_ino, sb.st_ino);
    confinement_free (a);
    confinement_free (b);
}

int
main (void)
{
#define T(test) cmocka_unit_test_setup_teardown (test, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_containment_31_the_session_owns_home_whatever_the_baseline),
        cmocka_unit_test (test_patterns_match_at_either_end_or_within),
        cmocka_unit_test (test_a_name_resolves_to_every_match_and_its_needs),
        cmocka_unit_test (test_containment_20_an_interpreter_gets_its_own_library),
        cmocka_unit_test (test_the_trust_store_never_holds_the_private_keys_folder),
        T (test_limits_are_told_apart),
        T (test_two_sessions_never_share_a_network),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
