/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of things in a registry.
 */
#include "tests/unit/testing.h"

#include "net/oci/oci_ref.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void
test_references_and_their_parts (void **state)
{
    (void)state;
    static const struct {
        const char *text, *host, *repository, *tag, *digest;
    } rows[] = {
        { "oci://ghcr.io/ana/tool-git:1.0.0", "ghcr.io", "ana/tool-git", "1.0.0", NULL },
        { "GHCR.io/ana/x", "ghcr.io", "ana/x", NULL, NULL },
        { "127.0.0.1:5000/a", "127.0.0.1:5000", "a", NULL, NULL },
        { "[::1]:5000/a/b/c", "[::1]:5000", "a/b/c", NULL, NULL },
        { "localhost/a:b@sha256:" HEX, "localhost", "a", "b", "sha256:" HEX },
        { "h:1/a.b_c-d@sha256:" HEX, "h:1", "a.b_c-d", NULL, "sha256:" HEX },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct oci_ref r;
        assert_true (oci_ref_parse (rows[i].text, &r, NULL));
        assert_string_equal (r.host, rows[i].host);
        assert_string_equal (r.repository, rows[i].repository);
        assert_true (str_eq (r.tag, rows[i].tag));
        assert_true (str_eq (r.digest, rows[i].digest));
        oci_ref_clear (&r);
    }
}

static void
test_what_is_no_reference (void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",           "oci://",    "ghcr.io",
        "ana/tool",   "h:1/",      "h:1/A",
        "h:1/a//b",   "h:1/a/",    "h:1/../a",
        "h:1/a..b",   "h:1/-a",    "h:1/a-",
        "h:1/a:",     "h:1/a:b:c", "h:1/a:.b",
        "h:1/a@md5:", "u@h.io/a",  "h:99999999/a",
        "h:1/a b",    "h:1/a?x",   "h:1/a@sha256:" HEX "0",
        "h:1/a%2f",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct oci_ref r;
        struct mur_error *err = NULL;
        if (oci_ref_parse (rows[i], &r, &err))
            fail_msg ("%s was taken", rows[i]);
        assert_int_equal (err->code, E_REG_007);
        mur_error_free (err);
    }
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_references_and_their_parts),
        cmocka_unit_test (test_what_is_no_reference),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
