/* SPDX-License-Identifier: Apache-2.0
 *
 * The texts of a login: challenges, places, addresses, metadata, forms.
 */
#include "tests/unit/testing.h"

#include "base/alloc.h"
#include "net/oauth/oauth_text.h"
#include "net/own_names.h"

#include <string.h>

#define SERVER "https://mcp.example.com/v1/mcp"

static void
test_a_challenge_among_others (void **state)
{
    (void)state;
    static const struct {
        const char *header, *metadata, *scope, *error;
    } rows[] = {
        { "Bearer resource_metadata=\"https://a/b\", scope=\"x y\"", "https://a/b", "x y", NULL },
        { "Basic realm=\"scope=no\", bearer  scope = tok , error=\"insufficient_scope\"", NULL,
          "tok", "insufficient_scope" },
        { "Bearer scope=\"a\\\"b\"", NULL, "a\"b", NULL },
        { "Negotiate abc==, Bearer error=invalid_token", NULL, NULL, "invalid_token" },
        { "Digest scope=\"x\"", NULL, NULL, NULL },
        { "Bearer scope=\"open", NULL, NULL, NULL },
        { "Bearer", NULL, NULL, NULL },
        { "Bearer scope=one, scope=two", NULL, "one", NULL },
        { ",,=\"", NULL, NULL, NULL },
        { NULL, NULL, NULL, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_challenge_ struct oauth_challenge c;
        oauth_challenge_read (rows[i].header, &c);
        assert_true (str_eq (c.resource_metadata, rows[i].metadata) ||
                     (! c.resource_metadata && ! rows[i].metadata));
        assert_true (str_eq (c.scope, rows[i].scope) || (! c.scope && ! rows[i].scope));
        assert_true (str_eq (c.error, rows[i].error) || (! c.error && ! rows[i].error));
    }
}

static void
expect_places (enum oauth_metadata kind, const char *url, const char *wanted)
{
    _cleanup_strv_ struct strv places = { 0 };
    oauth_well_known (kind, url, &places);
    _cleanup_free_ char *all = strv_join (&places, " ");
    assert_string_equal (all, wanted);
}

static void
test_where_metadata_lie (void **state)
{
    (void)state;
    expect_places (OAUTH_OF_RESOURCE, "https://a.example/v1/mcp?x=1",
                   "https://a.example/.well-known/oauth-protected-resource/v1/mcp "
                   "https://a.example/.well-known/oauth-protected-resource");
    expect_places (OAUTH_OF_RESOURCE, "https://a.example/",
                   "https://a.example/.well-known/oauth-protected-resource");
    expect_places (OAUTH_OF_ISSUER, "https://a.example/tenant/",
                   "https://a.example/.well-known/oauth-authorization-server/tenant "
                   "https://a.example/.well-known/openid-configuration/tenant "
                   "https://a.example/tenant/.well-known/openid-configuration");
    expect_places (OAUTH_OF_ISSUER, "https://a.example:8443",
                   "https://a.example:8443/.well-known/oauth-authorization-server "
                   "https://a.example:8443/.well-known/openid-configuration");
}

static void
test_which_addresses_may_be_asked (void **state)
{
    (void)state;
    static const struct {
        const char *url, *server;
        bool is_good;
    } rows[] = {
        { "https://sso.example/x", SERVER, true },
        { "http://sso.example/x", SERVER, false },
        { "http://127.0.0.1:1/x", SERVER, false },
        { "https://127.0.0.1/x", SERVER, false },
        { "https://localhost/x", SERVER, false },
        { "https://10.0.0.1/x", SERVER, false },
        { "https://172.31.0.1/x", SERVER, false },
        { "https://172.32.0.1/x", SERVER, true },
        { "https://192.168.1.1/x", SERVER, false },
        { "https://100.64.0.1/x", SERVER, false },
        { "https://169.254.169.254/x", SERVER, false },
        { "https://[::1]/x", SERVER, false },
        { "https://[fd00::1]/x", SERVER, false },
        { "https://[::ffff:10.0.0.1]/x", SERVER, false },
        { "https://[2606:4700::1]/x", SERVER, true },
        { "https://user@sso.example/x", SERVER, false },
        { "https://sso.example/x#y", SERVER, false },
        { "https://sso.example\\x", SERVER, false },
        { "https://sso.example/a b", SERVER, false },
        { "ftp://sso.example/x", SERVER, false },
        { "javascript:alert(1)", SERVER, false },
        { "http://127.0.0.1:1/x", "http://127.0.0.1:2/mcp", true },
        { "http://localhost:1/x", "http://127.0.0.1:2/mcp", true },
        { "http://10.0.0.1/x", "http://127.0.0.1:2/mcp", false },
        { "https://10.0.0.1/x", "https://10.0.0.1/mcp", true },
        { "https://10.0.0.2/x", "https://10.0.0.1/mcp", false },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        const char *fault = oauth_url_fault (rows[i].url, rows[i].server);
        if (! fault != rows[i].is_good)
            fail_msg ("%s for %s: %s", rows[i].url, rows[i].server, fault ? fault : "good");
    }
}

static bool
resource_reads (const char *resource)
{
    _cleanup_json_ json_t *m =
        json_pack ("{s:s, s:[s]}", "resource", resource, "authorization_servers", "https://sso");
    _cleanup_resource_ struct oauth_resource r;
    _cleanup_error_ struct mur_error *err = NULL;
    bool is_good = oauth_resource_read (m, SERVER, &r, &err);
    assert_int_equal (is_good, err == NULL);
    return is_good;
}

static void
test_a_resource_is_the_server_or_above_it (void **state)
{
    (void)state;
    assert_true (resource_reads (SERVER));
    assert_true (resource_reads ("https://mcp.example.com"));
    assert_true (resource_reads ("https://mcp.example.com/"));
    assert_true (resource_reads ("https://mcp.example.com/v1/"));
    assert_false (resource_reads ("https://mcp.example.com/v"));
    assert_false (resource_reads ("https://mcp.example.com/v1/mcp/more"));
    assert_false (resource_reads ("https://other.example.com"));
    assert_false (resource_reads ("http://mcp.example.com"));
    assert_false (resource_reads ("https://mcp.example.com:8443/v1/mcp"));
    assert_false (resource_reads (""));
}

static bool
issuer_reads (const char *change, const char *value)
{
    _cleanup_json_ json_t *m =
        json_pack ("{s:s, s:s, s:s, s:[s]}", "issuer", "https://sso.example",
                   "authorization_endpoint", "https://sso.example/a", "token_endpoint",
                   "https://sso.example/t", "code_challenge_methods_supported", "S256");
    _cleanup_issuer_ struct oauth_issuer i;
    _cleanup_error_ struct mur_error *err = NULL;
    if (change)
        json_set_string (m, change, value);
    return oauth_issuer_read (m, "https://sso.example", SERVER, &i, &err);
}

static void
test_an_issuer_is_who_it_says_it_is (void **state)
{
    (void)state;
    assert_true (issuer_reads (NULL, NULL));
    assert_true (issuer_reads ("issuer", "https://sso.example/"));
    assert_false (issuer_reads ("issuer", "https://evil.example"));
    assert_false (issuer_reads ("issuer", "https://sso.example//"));
    assert_false (issuer_reads ("token_endpoint", "https://10.0.0.1/t"));
    assert_false (issuer_reads ("token_endpoint", NULL));
    assert_false (issuer_reads ("registration_endpoint", "http://sso.example/r"));
    assert_false (issuer_reads ("code_challenge_methods_supported", "S256")); /* no list */
}

static void
test_forms_and_scopes (void **state)
{
    (void)state;
    _cleanup_buf_ struct buf form = { 0 };
    oauth_form_add (&form, "a", "x y&=%\xc3\xbc");
    oauth_form_add (&form, "none", NULL);
    oauth_form_add (&form, "b", "");
    assert_string_equal (form.data, "a=x%20y%26%3D%25%C3%BC&b=");
    _cleanup_free_ char *a = oauth_form_get (form.data, "a"), *b = oauth_form_get (form.data, "b");
    assert_string_equal (a, "x y&=%\xc3\xbc");
    assert_string_equal (b, "");
    assert_null (oauth_form_get (form.data, "c"));
    assert_null (oauth_form_get ("ab=1", "a"));
    assert_null (oauth_form_get ("a", "a"));
    assert_null (oauth_form_get ("a=%0", "a"));
    assert_null (oauth_form_get ("a=%00", "a"));
    assert_null (oauth_form_get ("a=%zz", "a"));
    _cleanup_free_ char *plus = oauth_form_get ("x&a=1+2", "a");
    assert_string_equal (plus, "1 2");
    _cleanup_free_ char *both = oauth_scopes_joined ("b a", " a  c ");
    assert_string_equal (both, "b a c");
}

static void
test_the_challenge_of_rfc_7636 (void **state)
{
    (void)state;
    _cleanup_free_ char *challenge =
        oauth_pkce_challenge ("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
    assert_string_equal (challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_challenge_among_others),
        cmocka_unit_test (test_where_metadata_lie),
        cmocka_unit_test (test_which_addresses_may_be_asked),
        cmocka_unit_test (test_a_resource_is_the_server_or_above_it),
        cmocka_unit_test (test_an_issuer_is_who_it_says_it_is),
        cmocka_unit_test (test_forms_and_scopes),
        cmocka_unit_test (test_the_challenge_of_rfc_7636),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
