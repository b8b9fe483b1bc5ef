/* SPDX-License-Identifier: Apache-2.0
 *
 * The variables of guests: who gets which, later ones win, nothing of the host's slips through.
 */
#include "tests/unit/session/stand.h"

#include "session/guests/guest_env.h"

#include <stdlib.h>
#include <string.h>

static const char *
value_in (const struct strv *env, const char *name)
{
    const char *found = NULL;
    size_t len = strlen (name), count = 0;
    for (size_t i = 0; i < env->len; i++)
        if (strncmp (env->items[i], name, len) == 0 && env->items[i][len] == '=') {
            found = env->items[i] + len + 1;
            count++;
        }
    assert_true (count <= 1); /* a guest sees each name once */
    return found;
}

static void
test_setting (void **state)
{
    (void)state;
    _cleanup_strv_ struct strv env = { 0 };
    guest_env_set (&env, "A", "1");
    guest_env_set (&env, "AB", "2");
    guest_env_set (&env, "A", "3");
    assert_int_equal (env.len, 2);
    assert_string_equal (value_in (&env, "A"), "3");
    assert_string_equal (value_in (&env, "AB"), "2");
    guest_env_set (&env, "A", "");
    assert_string_equal (value_in (&env, "A"), "");
    guest_env_set (&env, "A", NULL);
    assert_null (value_in (&env, "A"));
    assert_string_equal (value_in (&env, "AB"), "2");
    guest_env_set (&env, "NONE", NULL);
    assert_int_equal (env.len, 1);
    assert_null (env.items[1]);
}

static void
test_what_of_the_host_is_allowed (void **state)
{
    (void)state;
    struct stand st;
    _cleanup_strv_ struct strv env = { 0 };
    stand_open (&st, "capabilities:\n  env: {allow: [STAND_PLAIN, STAND_ABSENT]}\n");
    setenv ("STAND_PLAIN", "value", 1);
    setenv ("STAND_OTHER", "other", 1);
    unsetenv ("STAND_ABSENT");
    guest_env_add_allowed (st.s.policy, &env);
    assert_int_equal (env.len, 1);
    assert_string_equal (value_in (&env, "STAND_PLAIN"), "value");
    stand_close (&st);
}

static void
test_what_every_guest_gets (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    struct staged_artifact *driver = stand_artifact (&st, "driver", ROLE_DRIVER, NULL);
    struct staged_artifact *tool = stand_artifact (&st, "tool", ROLE_TOOL, NULL);
    struct choice *all[] = { &st.s.choices.primary };
    st.s.choices.primary = (struct choice){
        .name = "primary", .model = "m", .artifact = driver, .config = (char[]){ "{\"a\":1}" }
    };
    st.s.choices.all = all;
    st.s.choices.count = 1;
    tool->guest.config_env = x_strdup ("MURMUR_ARTIFACT_CONFIG={\"b\":2}");
    guest_env_fill (&st.s, "http://localhost:1");
    static const struct {
        const char *name, *value;
    } rows[] = { { "MURMUR_INFERENCE_TRANSPORT", "http" },
                 { "MURMUR_INFERENCE_MODEL", "m" },
                 { "MURMUR_INFERENCE_DRIVER", "local/driver" },
                 { "MURMUR_INFERENCE_DRIVER_CONFIG", "{\"a\":1}" },
                 { "MURMUR_CAPSULE_NAME", "stand" },
                 { "MURMUR_CAPSULE_VERSION", "0.1.0" },
                 { "MURMUR_CAPSULE_URL", "http://localhost:1" } };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        assert_string_equal (value_in (&st.s.kit.guest_env, rows[i].name), rows[i].value);
        assert_string_equal (value_in (&st.s.choices.primary.env, rows[i].name), rows[i].value);
    }
    assert_string_equal (value_in (&st.s.kit.guest_env, "MURMUR_SESSION_ID"), st.s.id.text);
    assert_null (value_in (&st.s.kit.guest_env, "MURMUR_ARTIFACT_CONFIG"));
    guest_env_fill_tool (&st.s, "http://localhost:2", tool);
    assert_string_equal (value_in (&tool->guest.env, "MURMUR_ARTIFACT_CONFIG"), "{\"b\":2}");
    assert_string_equal (value_in (&tool->guest.env, "MURMUR_CAPSULE_URL"), "http://localhost:2");
    guest_env_fill (&st.s, "http://localhost:3"); /* anew, not on top */
    assert_string_equal (value_in (&st.s.kit.guest_env, "MURMUR_CAPSULE_URL"),
                         "http://localhost:3");
    strv_free (&st.s.choices.primary.env);
    strv_free (&st.s.choices.compaction_env);
    stand_close (&st);
}

static void
test_a_hook_gets_nothing_of_the_sessions (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, "capabilities:\n  env: {allow: [STAND_PLAIN]}\n");
    setenv ("STAND_PLAIN", "value", 1);
    struct staged_artifact *hook = stand_artifact (&st, "hook", ROLE_HOOK, NULL);
    hook->guest.config_env = x_strdup ("MURMUR_ARTIFACT_CONFIG={}");
    st.asked.launcher.formation_id = "frm_1";
    st.asked.case_id = "case-1";
    guest_env_fill_hook (&st.s, hook);
    assert_string_equal (value_in (&hook->guest.env, "MURMUR_ARTIFACT_CONFIG"), "{}");
    assert_string_equal (value_in (&hook->guest.env, "MURMUR_FORMATION_ID"), "frm_1");
    assert_string_equal (value_in (&hook->guest.env, "MURMUR_CASE_ID"), "case-1");
    assert_null (value_in (&hook->guest.env, "STAND_PLAIN"));
    assert_null (value_in (&hook->guest.env, "MURMUR_SESSION_ID"));
    assert_null (value_in (&hook->guest.env, "MURMUR_CAPSULE_URL"));
    stand_close (&st);
}

int
unit_guest_env (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_setting),
        cmocka_unit_test (test_what_of_the_host_is_allowed),
        cmocka_unit_test (test_what_every_guest_gets),
        cmocka_unit_test (test_a_hook_gets_nothing_of_the_sessions),
    };
    return cmocka_run_group_tests_name ("session/guests/guest_env", tests, NULL, NULL);
}
