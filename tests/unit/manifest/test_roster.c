/* SPDX-License-Identifier: Apache-2.0
 *
 * roster.yaml: strict shape, the order of admission, edges.
 */
#include "tests/unit/manifest/reading.h"

#include "manifest/settings/roster.h"

#define LEAD                                                                                       \
    "roster_version: 1\nmembers:\n- {name: lead, capsule: a/lead, version: 1.0, entry: true}\n"
#define CODER "- {name: coder, capsule: a/coder, version: 1.10}\n"

static struct roster *
read_roster (const char *text)
{
    struct mur_error *err = NULL;
    struct roster *r = roster_parse (text, strlen (text), "roster.yaml", &err);
    if (! r)
        fail_msg ("%s: %s", diag_code_name (err->code), err->message);
    return r;
}

static void
refuses_roster (const char *text, enum diag_code code, const char *words)
{
    _cleanup_error_ struct mur_error *err = NULL;
    assert_null (roster_parse (text, strlen (text), "roster.yaml", &err));
    if (err->code != code)
        fail_msg ("%s: %s", diag_code_name (err->code), err->message);
    assert_says (err->message, words);
    assert_says (err->message, "roster.yaml");
}

static void
test_a_roster_is_read_as_written (void **state _unused_)
{
    struct roster *r = read_roster (
        LEAD CODER
        "reachability:\n- {from: lead, to: [coder, coder]}\n- {from: lead, to: [coder]}\n");
    assert_int_equal (r->len, 2);
    assert_int_equal (r->entry, 0);
    assert_string_equal (r->members[1].version, "1.10");
    assert_int_equal (r->edges_len, 1);
    assert_int_equal (r->edges[0].to, 1);
    roster_free (r);
    r = read_roster (LEAD CODER "reachability: ~\n");
    assert_int_equal (r->edges_len, 0);
    roster_free (r);
}

static void
test_manifest_37_a_misspelt_key_is_refused (void **state _unused_)
{
    refuses_roster (LEAD CODER "reachabilty: all\n", E_ROS_001, "reachabilty");
    refuses_roster (LEAD "- {name: coder, capsule: a/coder, version: 1, entri: true}\n", E_ROS_001,
                    "member 'coder'");
    refuses_roster (LEAD CODER "reachability: [{from: lead, to: [coder], x: 1}]\n", E_ROS_001,
                    "reachability[0].x");
}

static void
test_shape_faults (void **state _unused_)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "", "roster_version" },
        { "roster_version: 1.0\nmembers: []\n", "roster_version" },
        { "roster_version: \"1\"\nmembers: []\n", "roster_version" },
        { "roster_version: 2\nmembers: []\n", "roster_version" },
        { "roster_version: 1\n", "members" },
        { LEAD "- {name: Coder, capsule: a/coder, version: 1}\n", "members[1].name" },
        { LEAD "- {name: coder, capsule: coder, version: 1}\n", "members[1].capsule" },
        { LEAD "- {name: coder, capsule: a/coder}\n", "(member 'coder')" },
        { LEAD "- {name: coder, capsule: a/coder, version: Latest}\n", "members[1].version" },
        { LEAD "- {name: coder, capsule: a/coder, version: 1, entry: 'no'}\n", "members[1].entry" },
        { LEAD CODER "reachability: All\n", "reachability" },
        { LEAD CODER "reachability: [{from: lead, to: []}]\n", "reachability[0].to" },
        { LEAD CODER "reachability: [{from: coder, to: [coder]}]\n", "reachability[0].to[0]" },
        { "roster_version: [\n", "roster.yaml:" },
    };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++)
        refuses_roster (bad[i].text, E_ROS_001, bad[i].words);
}

static void
test_admission_comes_in_order (void **state _unused_)
{
    static const struct {
        const char *text;
        enum diag_code code;
    } cases[] = {
        { LEAD
          "- {name: lead, capsule: a/x, version: 1, entry: true}\nreachability: [{from: zoe, to: [lead]}]\n",
          E_ROS_003 },
        { LEAD
          "- {name: coder, capsule: a/x, version: 1, entry: true}\nreachability: [{from: zoe, to: [lead]}]\n",
          E_ROS_002 },
        { LEAD CODER "reachability: [{from: coder, to: [lead]}, {from: lead, to: [zoe]}]\n",
          E_ROS_004 },
        { LEAD CODER "reachability: [{from: zoe, to: [coder]}]\n", E_ROS_004 },
        { LEAD CODER "reachability: [{from: coder, to: [lead]}]\n", E_ROS_008 },
        { "roster_version: 1\nmembers: [{name: a, capsule: a/a, version: 1}]\n", E_ROS_002 },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++)
        refuses_roster (cases[i].text, cases[i].code, "");
}

#define SERVES "exports: {peer_tasks: {accept: true}}\n"
#define AUTH   "network: {authentication: {scheme: bearer}}\n"

static bool
admit (const char *reachability, const char *lead, const char *coder, const char *third,
       size_t *edges, struct mur_error **err)
{
    _cleanup_free_ char *text =
        x_asprintf (LEAD CODER "- {name: third, capsule: a/third, version: 1}\nreachability: %s\n",
                    reachability);
    struct roster *r = read_roster (text);
    const char *keys[] = { lead, coder, third };
    struct capsule_manifest *m[3];
    for (size_t i = 0; i < 3; i++) {
        _cleanup_free_ char *manifest = x_asprintf (HEAD "%s", keys[i]);
        m[i] = accept (manifest);
    }
    bool ok = roster_admit (r, (const struct capsule_manifest *const *)m, err);
    *edges = r->edges_len;
    for (size_t i = 0; i < 3; i++)
        capsule_manifest_free (m[i]);
    roster_free (r);
    return ok;
}

static void
test_manifest_38_every_member_needs_a_closed_door (void **state _unused_)
{
    size_t edges;
    assert_succeeds (admit ("[{from: lead, to: [coder]}]", AUTH, AUTH SERVES, AUTH, &edges, &err));
    assert_fails (admit ("[{from: lead, to: [coder]}]", AUTH, AUTH SERVES, "", &edges, &err),
                  E_ROS_006);
    assert_fails (admit ("[{from: lead, to: [coder]}]", AUTH, AUTH, AUTH, &edges, &err), E_ROS_005);
    assert_succeeds (admit ("[]", "", "", "", &edges, &err));
}

static void
test_all_reaches_members_that_serve_but_not_the_entry (void **state _unused_)
{
    size_t edges;
    assert_succeeds (admit ("all", AUTH SERVES, AUTH SERVES, AUTH SERVES, &edges, &err));
    assert_int_equal (edges, 4);
    assert_succeeds (admit ("all", AUTH, AUTH SERVES, AUTH SERVES, &edges, &err));
    assert_int_equal (edges, 2);
    assert_succeeds (admit ("all", "", "", SERVES, &edges, &err));
    assert_int_equal (edges, 0);
}

static void
test_a_formation_has_a_largest_size (void **state _unused_)
{
    for (int count = ROSTER_MEMBERS_MAX; count <= ROSTER_MEMBERS_MAX + 1; count++) {
        _cleanup_buf_ struct buf text = { 0 };
        buf_puts (&text, "roster_version: 1\nmembers:\n");
        for (int i = 0; i < count; i++)
            buf_printf (&text, "- {name: m%d, capsule: a/m, version: 1.0, entry: %s}\n", i,
                        i ? "false" : "true");
        if (count == ROSTER_MEMBERS_MAX)
            roster_free (read_roster (text.data));
        else
            refuses_roster (text.data, E_ROS_001, "at most 256");
    }
}

static void
test_an_overfull_member_is_named (void **state _unused_)
{
    struct roster *r = read_roster (
        LEAD CODER "- {name: third, capsule: a/third, version: 1}\n"
                   "reachability: [{from: lead, to: [coder]}, {from: third, to: [coder]}]\n");
    struct capsule_manifest *single = accept (HEAD),
                            *queue = accept (HEAD "lifecycle: {task_acceptance: queue}\n");
    _cleanup_free_ char *text = roster_overfull (r, 1, single);
    assert_says (text, "'coder'");
    assert_null (roster_overfull (r, 1, queue));
    assert_null (roster_overfull (r, 2, single));
    capsule_manifest_free (single);
    capsule_manifest_free (queue);
    roster_free (r);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_roster_is_read_as_written),
        cmocka_unit_test (test_manifest_37_a_misspelt_key_is_refused),
        cmocka_unit_test (test_shape_faults),
        cmocka_unit_test (test_admission_comes_in_order),
        cmocka_unit_test (test_manifest_38_every_member_needs_a_closed_door),
        cmocka_unit_test (test_all_reaches_members_that_serve_but_not_the_entry),
        cmocka_unit_test (test_a_formation_has_a_largest_size),
        cmocka_unit_test (test_an_overfull_member_is_named),
    };
    return cmocka_run_group_tests_name ("manifest/roster", tests, NULL, NULL);
}
