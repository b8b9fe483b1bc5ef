/* SPDX-License-Identifier: Apache-2.0
 *
 * The child's environment: what is in it, in which order (spec/spawn.md A4, A8).
 */
#include "tests/unit/testing.h"

#include "spawn/child/environment.h"

#include <stdlib.h>

static void
expect (const struct child_environment *e, const char *joined)
{
    _cleanup_strv_ struct strv out = { 0 };
    environment_build (e, &out);
    _cleanup_free_ char *text = strv_join (&out, " ");
    assert_string_equal (text, joined);
}

static int
plain_host (void **state _unused_)
{
    clearenv ();
    setenv ("PATH", "/bin", 1);
    setenv ("HOME", "/h", 1);
    setenv ("USER", "u", 1);
    return 0;
}

#define TAIL                                                                                       \
    "PATH=/bin HOME=/h USER=u MURMUR_ROOST_URL=http://r MURMUR_HOST_WARNINGS_REPORTED=1 "          \
    "MURMUR_SPAWNER_LIFELINE=7"

static void
test_spawn_S3_an_empty_list_leaves_the_runtimes_own_names_in_their_order (void **state _unused_)
{
    struct child_environment e = { .roost_url = "http://r", .lifeline_fd = 7 };
    setenv ("GITHUB_TOKEN", "secret", 1);
    expect (&e, TAIL); /* LOGNAME is not invented */
    setenv ("LOGNAME", "l", 1);
    expect (&e, "PATH=/bin HOME=/h LOGNAME=l USER=u MURMUR_ROOST_URL=http://r "
                "MURMUR_HOST_WARNINGS_REPORTED=1 MURMUR_SPAWNER_LIFELINE=7");
    unsetenv ("LOGNAME");
    e.spawner = "{}";
    expect (&e, TAIL " MURMUR_SPAWNER={}");
}

static void
test_spawn_S4_the_formation_comes_last (void **state _unused_)
{
    struct child_environment e = { .roost_url = "http://r",
                                   .lifeline_fd = 7,
                                   .formation_id = "frm_1" };
    expect (&e, TAIL " MURMUR_FORMATION_ID=frm_1");
    e.spawner = "{}";
    expect (&e, TAIL " MURMUR_SPAWNER={} MURMUR_FORMATION_ID=frm_1");
}

static void
test_spawn_S16_decoys_of_our_own_and_of_the_list_go_nowhere (void **state _unused_)
{
    static const char *const allow[] = {
        "WORKER",
        "MURMUR_FORMATION_LIFELINE",
        "MURMUR_SPAWNER_LIFELINE",
        "MURMUR_SPAWNER",
        "MURMUR_FORMATION_ID",
        "MURMUR_FORMATION_PEERS",
        "MURMUR_FORMATION_CHANNEL",
        "MURMUR_ROOST_URL",
        "MURMUR_HOST_WARNINGS_REPORTED",
        "PATH",
        "WORKER",
        "ABSENT",
        "EMPTY",
        NULL,
    };
    for (size_t i = 0; allow[i]; i++)
        if (allow[i][0] == 'M' || allow[i][0] == 'W')
            setenv (allow[i], "4098", 1);
    setenv ("EMPTY", "", 1);
    struct child_environment e = { allow, "http://r", 7, "{}", "frm_1" };
    expect (&e, "WORKER=4098 EMPTY= " TAIL " MURMUR_SPAWNER={} MURMUR_FORMATION_ID=frm_1");
}

static void
test_the_childs_list_is_cut_to_what_its_parent_may_pass_on (void **state _unused_)
{
    static const char *const child[] = { "B", "A", "C", "A" }, *const parent[] = { "A", "B" };
    _cleanup_strv_ struct strv out = { 0 };
    environment_clamp (child, ARRAY_LEN (child), parent, ARRAY_LEN (parent), &out);
    _cleanup_free_ char *text = strv_join (&out, " ");
    assert_string_equal (text, "B A");
    _cleanup_strv_ struct strv none = { 0 };
    environment_clamp (child, ARRAY_LEN (child), NULL, 0, &none);
    assert_int_equal (none.len, 0);
}

static void
test_the_spawner_has_an_address_only_when_an_outcome_is_wanted (void **state _unused_)
{
    _cleanup_free_ char *waited = spawner_text ("ses_1", "ctx_1", "dlg_1", NULL, NULL);
    assert_string_equal (
        waited, "{\"session_id\":\"ses_1\",\"context_id\":\"ctx_1\",\"delegation_id\":\"dlg_1\"}");
    _cleanup_free_ char *posted =
        spawner_text ("ses_1", "ctx_1", "dlg_1", "http://localhost:1", NULL);
    assert_string_equal (posted, "{\"session_id\":\"ses_1\",\"context_id\":\"ctx_1\","
                                 "\"delegation_id\":\"dlg_1\",\"url\":\"http://localhost:1\"}");
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup (
            test_spawn_S3_an_empty_list_leaves_the_runtimes_own_names_in_their_order, plain_host),
        cmocka_unit_test_setup (test_spawn_S4_the_formation_comes_last, plain_host),
        cmocka_unit_test_setup (test_spawn_S16_decoys_of_our_own_and_of_the_list_go_nowhere,
                                plain_host),
        cmocka_unit_test (test_the_childs_list_is_cut_to_what_its_parent_may_pass_on),
        cmocka_unit_test (test_the_spawner_has_an_address_only_when_an_outcome_is_wanted),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
