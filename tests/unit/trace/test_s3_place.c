/* SPDX-License-Identifier: Apache-2.0
 *
 * Where s3:// leads (docs/spec/records.md 15): the server, the host that is signed, the path.
 */
#include "tests/unit/testing.h"

#include "trace/ship/s3_place.h"

#include <stdlib.h>
#include <string.h>

static const char *const variables[] = { "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3",
                                         "AWS_ENDPOINT_URL" };

static int
forget_variables (void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN (variables); i++)
        unsetenv (variables[i]);
    return 0;
}

struct place {
    const char *url, *origin, *host, *path, *region;
};

static void
check (const struct place *p)
{
    struct s3_place at = { 0 };
    struct mur_error *err = NULL;
    if (! s3_place_read (p->url, &at, &err))
        fail_msg ("%s: %s", p->url, err->message);
    assert_string_equal (at.origin, p->origin);
    assert_string_equal (at.host, p->host);
    assert_string_equal (at.path, p->path);
    assert_string_equal (at.region, p->region);
    s3_place_clear (&at);
}

static void
test_a_bucket_of_amazons_is_a_host_and_one_of_others_a_path (void **state)
{
    (void)state;
    static const struct place places[] = {
        { "s3://team?region=eu-west-1", "https://team.s3.eu-west-1.amazonaws.com",
          "team.s3.eu-west-1.amazonaws.com", "", "eu-west-1" },
        { "s3://team/a/b/?region=eu-west-1", "https://team.s3.eu-west-1.amazonaws.com",
          "team.s3.eu-west-1.amazonaws.com", "/a/b", "eu-west-1" },
        { "s3://team?region=cn-north-1", "https://team.s3.cn-north-1.amazonaws.com.cn",
          "team.s3.cn-north-1.amazonaws.com.cn", "", "cn-north-1" },
        { "s3://a.team/x?region=eu-west-1", "https://s3.eu-west-1.amazonaws.com",
          "s3.eu-west-1.amazonaws.com", "/a.team/x", "eu-west-1" },
        { "s3://team/x?style=path&region=eu-west-1", "https://s3.eu-west-1.amazonaws.com",
          "s3.eu-west-1.amazonaws.com", "/team/x", "eu-west-1" },
        { "s3://team/x?endpoint=http://minio.svc:9000", "http://minio.svc:9000", "minio.svc:9000",
          "/team/x", "us-east-1" },
        { "s3://team?endpoint=https://minio.svc:443/s3/", "https://minio.svc", "minio.svc",
          "/s3/team", "us-east-1" },
        { "s3://team/x?endpoint=https://minio.svc&style=virtual&region=here",
          "https://team.minio.svc", "team.minio.svc", "/x", "here" },
        { "s3://team/a b/\xc3\xa9~?endpoint=http://[::1]:9000", "http://[::1]:9000", "[::1]:9000",
          "/team/a%20b/%C3%A9~", "us-east-1" },
    };
    for (size_t i = 0; i < ARRAY_LEN (places); i++)
        check (&places[i]);
}

static void
test_what_the_address_does_not_say_the_environment_does (void **state)
{
    (void)state;
    setenv ("AWS_DEFAULT_REGION", "eu-north-1", 1);
    check (&(struct place){ "s3://team", "https://team.s3.eu-north-1.amazonaws.com",
                            "team.s3.eu-north-1.amazonaws.com", "", "eu-north-1" });
    setenv ("AWS_REGION", "eu-west-1", 1);
    setenv ("AWS_ENDPOINT_URL", "http://minio:9000", 1);
    check (&(struct place){ "s3://team", "http://minio:9000", "minio:9000", "/team", "eu-west-1" });
    setenv ("AWS_ENDPOINT_URL_S3", "http://other:9000", 1);
    check (&(struct place){ "s3://team?region=own", "http://other:9000", "other:9000", "/team",
                            "own" });
}

static void
test_over_plain_http_only_this_machine_is_private (void **state)
{
    (void)state;
    static const struct {
        const char *url;
        bool is_private;
    } cases[] = { { "s3://t?endpoint=http://127.0.0.1:9000", true },
                  { "s3://t?endpoint=http://localhost:9000", true },
                  { "s3://t?endpoint=https://minio.svc", true },
                  { "s3://t?endpoint=http://minio.svc:9000", false },
                  { "s3://t?endpoint=http://127.0.0.1.example.com", false } };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct s3_place at = { 0 };
        assert_succeeds (s3_place_read (cases[i].url, &at, &err));
        assert_int_equal (at.is_private, cases[i].is_private);
        s3_place_clear (&at);
    }
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup (test_a_bucket_of_amazons_is_a_host_and_one_of_others_a_path,
                                forget_variables),
        cmocka_unit_test_setup (test_what_the_address_does_not_say_the_environment_does,
                                forget_variables),
        cmocka_unit_test_setup (test_over_plain_http_only_this_machine_is_private,
                                forget_variables),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
