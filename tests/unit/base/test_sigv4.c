/* SPDX-License-Identifier: Apache-2.0
 *
 * Signature Version 4 against the examples AWS documents: those of Amazon S3 ("Examples: Signature
 * Calculations") and of the test suite.
 */
#include "tests/unit/testing.h"

#include "base/keys/sigv4.h"

#include <string.h>

#define NOTHING   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define MAY_24    1369353600000 /* 2013-05-24T00:00:00Z */
#define AUGUST_30 1440938160000 /* 2015-08-30T12:36:00Z */
#define HOST                                                                                       \
    {                                                                                              \
        "host", "examplebucket.s3.amazonaws.com"                                                   \
    }
#define S3_DATE                                                                                    \
    {                                                                                              \
        "x-amz-date", "20130524T000000Z"                                                           \
    }

struct example {
    const char *name, *method, *path, *query, *payload, *service, *signature;
    struct sigv4_header headers[6];
    uint64_t unix_ms;
};

static const struct example of_s3[] = {
    { "get object",
      "GET",
      "/test.txt",
      "",
      NOTHING,
      "s3",
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
      { HOST, { "range", "bytes=0-9" }, { "x-amz-content-sha256", NOTHING }, S3_DATE },
      MAY_24 },
    { "put object",
      "PUT",
      "/test%24file.text",
      "",
      "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
      "s3",
      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
      { { "date", "Fri, 24 May 2013 00:00:00 GMT" },
        HOST,
        { "x-amz-content-sha256",
          "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072" },
        S3_DATE,
        { "x-amz-storage-class", "REDUCED_REDUNDANCY" } },
      MAY_24 },
    { "get bucket lifecycle",
      "GET",
      "/",
      "lifecycle=",
      NOTHING,
      "s3",
      "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
      { HOST, { "x-amz-content-sha256", NOTHING }, S3_DATE },
      MAY_24 },
    { "list objects",
      "GET",
      "/",
      "max-keys=2&prefix=J",
      NOTHING,
      "s3",
      "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
      { HOST, { "x-amz-content-sha256", NOTHING }, S3_DATE },
      MAY_24 },
};

static const struct example of_suite[] = {
    { "get-vanilla",
      "GET",
      "/",
      "",
      NOTHING,
      "service",
      "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
      { { "host", "example.amazonaws.com" }, { "x-amz-date", "20150830T123600Z" } },
      AUGUST_30 },
    { "post-vanilla",
      "POST",
      "/",
      "",
      NOTHING,
      "service",
      "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
      { { "host", "example.amazonaws.com" }, { "x-amz-date", "20150830T123600Z" } },
      AUGUST_30 },
};

static void
check (const struct example *examples, size_t count, const char *key_id, const char *key_text)
{
    for (size_t i = 0; i < count; i++) {
        const struct example *e = &examples[i];
        struct sigv4_request r = { .method = e->method,
                                   .path = e->path,
                                   .query = e->query,
                                   .headers = e->headers,
                                   .payload_sha256 = e->payload,
                                   .region = "us-east-1",
                                   .service = e->service,
                                   .unix_ms = e->unix_ms };
        while (e->headers[r.header_count].name)
            r.header_count++;
        _cleanup_secret_ struct secret *key = secret_new (key_text, strlen (key_text));
        _cleanup_free_ char *said = sigv4_authorization (&r, key_id, key);
        const char *signature = strstr (said, "Signature=");
        if (! signature || strcmp (signature + strlen ("Signature="), e->signature) != 0)
            fail_msg ("%s: %s", e->name, said);
        assert_null (strstr (said, key_text));
    }
}

static void
test_the_examples_of_amazon_s3 (void **state)
{
    (void)state;
    check (of_s3, ARRAY_LEN (of_s3), "AKIAIOSFODNN7EXAMPLE",
           "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
}

static void
test_the_test_suites_plain_requests (void **state)
{
    (void)state;
    check (of_suite, ARRAY_LEN (of_suite), "AKIDEXAMPLE",
           "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
}

static void
test_a_header_says_who_and_what_was_signed (void **state)
{
    (void)state;
    const struct example *e = &of_s3[0];
    const struct sigv4_request r = { e->method,  e->path,     e->query, e->headers, 4,
                                     e->payload, "us-east-1", "s3",     e->unix_ms };
    _cleanup_secret_ struct secret *key = secret_new ("x", 1);
    _cleanup_free_ char *said = sigv4_authorization (&r, "AKIAIOSFODNN7EXAMPLE", key);
    static const char expected[] =
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature=";
    assert_memory_equal (said, expected, sizeof expected - 1);
    assert_int_equal (strlen (said), sizeof expected - 1 + 64);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_examples_of_amazon_s3),
        cmocka_unit_test (test_the_test_suites_plain_requests),
        cmocka_unit_test (test_a_header_says_who_and_what_was_signed),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
