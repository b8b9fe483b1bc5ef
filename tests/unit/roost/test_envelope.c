/* SPDX-License-Identifier: Apache-2.0
 *
 * The envelope, axis by axis (spec/spawn.md B5).
 */
#include "tests/unit/testing.h"

#include "roost/envelope.h"

#include <string.h>

struct pair {
    const char *parent, *child; /* what stands inside capabilities: {...} */
    const char *key;            /* NULL: the child fits */
    const char *entry;
};

static struct capsule_manifest *
manifest_with (const char *capabilities)
{
    struct mur_error *err = NULL;
    _cleanup_free_ char *text =
        x_asprintf ("name: c\nversion: 0.1.0\ncapabilities: {%s}\n", capabilities);
    struct capsule_manifest *m =
        capsule_manifest_parse (text, strlen (text), "murmur.yaml", MANIFEST_SECRETLESS, &err);
    if (! m)
        fail_msg ("%s: %s", capabilities, err->message);
    return m;
}

static void
judge (const struct pair *p)
{
    struct mur_error *err = NULL;
    struct capsule_manifest *parent = manifest_with (p->parent), *child = manifest_with (p->child);
    bool fits = envelope_check (parent, child, &err);
    if (! p->key) {
        if (! fits)
            fail_msg ("{%s} in {%s}: %s", p->child, p->parent, err->message);
    } else {
        if (fits)
            fail_msg ("{%s} fits into {%s}", p->child, p->parent);
        size_t len = strlen (p->key);
        assert_memory_equal (err->message, p->key, len);
        assert_int_equal (err->message[len], ':');
        assert_non_null (strstr (err->message + len, p->entry));
        mur_error_free (err);
    }
    capsule_manifest_free (parent);
    capsule_manifest_free (child);
}

#define NETWORK(list) "network: {allow: [" list "]}"
#define NET           "capabilities.network.allow"
#define SCOPE(path)   "filesystem: {scope: " path "}"
#define SCOPE_KEY     "capabilities.filesystem.scope"

static const struct pair pairs[] = {
    { "", "", NULL, NULL },
    { NETWORK ("h"), NETWORK ("h, 'https://h', 'h:81', 'http://h:8080'"), NULL, NULL },
    { NETWORK ("'h:443'"), NETWORK ("'https://h', 'h:443'"), NULL, NULL },
    { NETWORK ("'h:443'"), NETWORK ("h"), NET, "h" },
    { NETWORK ("'https://h'"), NETWORK ("'https://h:443'"), NULL, NULL },
    { NETWORK ("'https://h'"), NETWORK ("'http://h'"), NET, "http://h" },
    { NETWORK ("'https://h'"), NETWORK ("'https://h:444'"), NET, "https://h:444" },
    { NETWORK ("H"), NETWORK ("h"), NULL, NULL },
    { NETWORK ("h"), NETWORK ("sub.h"), NET, "sub.h" },
    { NETWORK ("h"), NETWORK ("h, other"), NET, "other" },
    { "", "network: {unix_sockets: true}", "capabilities.network.unix_sockets", "true" },
    { "network: {unix_sockets: true}", "network: {unix_sockets: true}", NULL, NULL },
    { "shell: {allow: [git, ls]}", "shell: {allow: [ls]}", NULL, NULL },
    { "shell: {allow: [git]}", "shell: {allow: [git, ls]}", "capabilities.shell.allow", "ls" },
    { "spawn: {allow: [a/b]}", "spawn: {allow: [a/c]}", "capabilities.spawn.allow", "a/c" },
    { "env: {allow: [A_NAME]}", "env: {allow: [A_NAME, B_NAME]}", "capabilities.env.allow",
      "B_NAME" },
    { "", SCOPE ("a"), NULL, NULL },
    { SCOPE ("a/b"), SCOPE ("a/b/c"), NULL, NULL },
    { SCOPE ("a/b"), SCOPE ("a/bc"), SCOPE_KEY, "a/bc" },
    { SCOPE ("a/b"), SCOPE ("a"), SCOPE_KEY, "a" },
    { SCOPE ("a/b"), "", SCOPE_KEY, "(not set)" },
    { "", "filesystem: {workdir_exec: true}", "capabilities.filesystem.workdir_exec", "true" },
    { "containment: scoped", "containment: sealed", NULL, NULL },
    { "containment: scoped", "containment: advisory", "capabilities.containment", "advisory" },
    { "containment: scoped", "", "capabilities.containment", "(not set)" },
    { "", "containment: sealed", NULL, NULL },
    /* The first violated axis speaks. */
    { "", NETWORK ("h") ", env: {allow: [A_NAME]}", NET, "h" },
    { "", "env: {allow: [A_NAME]}, filesystem: {workdir_exec: true}", "capabilities.env.allow",
      "A_NAME" },
};

static void
test_a_child_must_fit_on_every_axis (void **state _unused_)
{
    for (size_t i = 0; i < ARRAY_LEN (pairs); i++)
        judge (&pairs[i]);
}

int
main (void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test (test_a_child_must_fit_on_every_axis) };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
