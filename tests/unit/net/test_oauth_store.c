/* SPDX-License-Identifier: Apache-2.0
 *
 * Logins on disk: who may read them, what is not trusted, what a missing scope leaves behind.
 */
#include "tests/unit/testing.h"

#include "base/alloc.h"
#include "net/oauth/oauth_token.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SERVER "https://mcp.example.com/mcp"

static char home[] = "/tmp/murmur-oauth-XXXXXX";

static int
make_home (void **state)
{
    (void)state;
    return ! mkdtemp (home) || setenv ("HOME", home, 1) != 0;
}

static int
remove_home (void **state)
{
    (void)state;
    _cleanup_free_ char *command = x_asprintf ("rm -rf '%s'", home);
    return system (command);
}

static struct oauth_grant *
grant (void)
{
    struct oauth_grant *g = x_new0 (struct oauth_grant);
    g->server = x_strdup (SERVER);
    g->resource = x_strdup ("https://mcp.example.com");
    g->issuer = x_strdup ("https://sso.example.com");
    g->token_endpoint = x_strdup ("https://sso.example.com/token");
    g->client_id = x_strdup ("client");
    g->client_secret = secret_new ("s3cret", 6);
    g->access_token = secret_new ("access", 6);
    g->scope = x_strdup ("a b");
    g->expires_ms = 1234567890123;
    g->lifetime_ms = 3600000;
    g->is_basic = g->is_named = true;
    return g;
}

static void
keep (void)
{
    _cleanup_ (oauth_grant_freep) struct oauth_grant *g = grant ();
    struct mur_error *err = NULL;
    assert_true (oauth_store_write (g, &err));
}

/* The path of the one file. Owned. */
static char *
path_of (void)
{
    _cleanup_free_ char *command = x_asprintf ("ls '%s'/.murmur/oauth/*.json", home);
    char line[256] = "";
    FILE *out = popen (command, "r");
    assert_non_null (fgets (line, sizeof line, out));
    pclose (out);
    line[strcspn (line, "\n")] = '\0';
    return x_strdup (line);
}

static void
test_a_grant_comes_back_as_it_was (void **state)
{
    (void)state;
    struct mur_error *err = NULL;
    struct stat st;
    assert_null (oauth_store_read (SERVER, &err));
    assert_null (err);
    keep ();
    _cleanup_free_ char *path = path_of ();
    assert_int_equal (stat (path, &st), 0);
    assert_int_equal (st.st_mode & 07777, 0600);
    _cleanup_ (oauth_grant_freep) struct oauth_grant *g = oauth_store_read (SERVER, &err);
    assert_non_null (g);
    assert_string_equal (g->resource, "https://mcp.example.com");
    assert_string_equal (secret_reveal (g->client_secret), "s3cret");
    assert_string_equal (g->scope, "a b");
    assert_null (g->refresh_token);
    assert_true (g->is_basic && g->is_named && g->expires_ms == 1234567890123);
    assert_null (oauth_store_read ("https://mcp.example.com/other", &err));
    assert_null (err);
}

static void
expect_untrusted (void)
{
    _cleanup_error_ struct mur_error *err = NULL;
    assert_null (oauth_store_read (SERVER, &err));
    assert_non_null (err);
}

static void
test_a_file_that_is_not_ours_alone_is_not_read (void **state)
{
    (void)state;
    keep ();
    _cleanup_free_ char *path = path_of (), *other = x_asprintf ("%s.other", path);
    assert_int_equal (chmod (path, 0640), 0);
    expect_untrusted ();
    assert_int_equal (chmod (path, 0600), 0);
    assert_int_equal (rename (path, other), 0);
    assert_int_equal (symlink (other, path), 0);
    expect_untrusted ();
    assert_int_equal (unlink (path), 0);
    FILE *f = fopen (path, "w");
    fputs ("{\"server\": \"" SERVER "\"", f);
    fclose (f);
    assert_int_equal (chmod (path, 0600), 0);
    expect_untrusted (); /* cut off */
    assert_true (oauth_store_remove (SERVER));
    assert_false (oauth_store_remove (SERVER));
}

static void
test_a_scope_that_was_missing_is_remembered_once (void **state)
{
    (void)state;
    oauth_token_wants (SERVER, "x"); /* nobody is logged in: nothing to remember it in */
    keep ();
    oauth_token_wants (SERVER, "c");
    oauth_token_wants (SERVER, "c d");
    _cleanup_ (oauth_grant_freep) struct oauth_grant *g = oauth_store_read (SERVER, NULL);
    assert_string_equal (g->wanted_scope, "c d");
    assert_string_equal (g->scope, "a b");
    oauth_store_remove (SERVER);
}

static void
test_a_token_is_given_until_it_is_refused (void **state)
{
    (void)state;
    const struct oauth_asker asker = { .server = SERVER };
    struct mur_error *err = NULL;
    _cleanup_ (oauth_grant_freep) struct oauth_grant *g = grant ();
    g->expires_ms = 0; /* it does not end by itself */
    assert_true (oauth_store_write (g, &err));
    _cleanup_secret_ struct secret *token = oauth_token_get (&asker, NULL, &err);
    assert_string_equal (secret_reveal (token), "access");
    assert_null (oauth_token_get (&asker, token, &err)); /* and there is nothing to make it fresh */
    assert_null (err);
    g->expires_ms = 1;
    assert_true (oauth_store_write (g, &err));
    assert_null (oauth_token_get (&asker, NULL, &err)); /* it is over */
    oauth_store_remove (SERVER);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_grant_comes_back_as_it_was),
        cmocka_unit_test (test_a_file_that_is_not_ours_alone_is_not_read),
        cmocka_unit_test (test_a_scope_that_was_missing_is_remembered_once),
        cmocka_unit_test (test_a_token_is_given_until_it_is_refused),
    };
    return cmocka_run_group_tests (tests, make_home, remove_home);
}
