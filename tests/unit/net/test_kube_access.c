/* SPDX-License-Identifier: Apache-2.0
 *
 * Access to a cluster: what a kubeconfig gives, and what is refused by name.
 */
#include "tests/unit/testing.h"

#include "net/kube/kube_access.h"

#include <string.h>

#define HEAD                                                                                       \
    "apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts:\n- {name: here, context: "     \
    "{cluster: c, user: u, namespace: tenant}}\nclusters:\n- name: c\n  cluster: {server: "

static bool
read_text (const char *text, struct kube_access *out, struct mur_error **err)
{
    char path[] = "/tmp/kubeconfig-XXXXXX";
    int fd = mkstemp (path);
    assert_true (fd >= 0);
    assert_int_equal (write (fd, text, strlen (text)), (ssize_t)strlen (text));
    close (fd);
    bool is_read = kube_access_read (path, out, err);
    unlink (path);
    return is_read;
}

static void
test_a_token_and_an_authority_are_taken (void **state)
{
    (void)state;
    struct kube_access a;
    struct mur_error *err = NULL;
    assert_true (read_text (HEAD "\"https://10.0.0.1:6443/\", certificate-authority-data: UEVN}\n"
                                 "users:\n- name: u\n  user: {token: abc}\n",
                            &a, &err));
    assert_string_equal (a.server, "https://10.0.0.1:6443");
    assert_string_equal (a.namespace, "tenant");
    assert_string_equal (a.ca, "PEM");
    assert_string_equal (a.token, "abc");
    assert_null (a.cert);
    kube_access_clear (&a);
}

static void
test_what_is_not_supported_is_refused_by_name (void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        { HEAD "\"https://a\"}\nusers:\n- {name: u, user: {exec: {command: login}}}\n",
          "logs in by exec" },
        { HEAD "\"https://a\"}\nusers:\n- {name: u, user: {username: x, password: y}}\n",
          "logs in by username" },
        { HEAD "\"https://a\", insecure-skip-tls-verify: true}\nusers:\n- {name: u, user: {}}\n",
          "insecure-skip-tls-verify" },
        { HEAD "\"ftp://a\"}\nusers:\n- {name: u, user: {token: t}}\n", "not an http" },
        { HEAD "\"https://a\", certificate-authority-data: \"*\"}\nusers:\n- {name: u, user: {}}\n",
          "certificate-authority-data is not base64" },
        { HEAD "\"https://a\"}\nusers:\n- {name: other, user: {token: t}}\n", "no user named u" },
        { "clusters: []\n", "no context" },
        { "- a list\n", "a map of keys belongs here" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct kube_access a;
        _cleanup_error_ struct mur_error *err = NULL;
        assert_false (read_text (rows[i].text, &a, &err));
        assert_int_equal (err->code, E_KUB_001);
        if (! strstr (err->message, rows[i].says))
            fail_msg ("%s: %s", rows[i].says, err->message);
        assert_null (a.server);
    }
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_token_and_an_authority_are_taken),
        cmocka_unit_test (test_what_is_not_supported_is_refused_by_name),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
