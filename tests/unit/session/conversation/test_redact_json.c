/* SPDX-License-Identifier: Apache-2.0
 *
 * Redacted JSON: a secret is found wherever a reader would find it, and what is left is JSON still.
 */
#include "tests/unit/testing.h"

#include "session/conversation/redact_json.h"

#include <string.h>

static void
test_where_a_secret_hides (void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } rows[] = {
        { "{\"a\":\"hunter2hunter2\"}", "{\"a\":\"[redacted]\"}" },
        { "{\"a\":\"x hunter2hunter2 y\",\"b\":1}", "{\"a\":\"x [redacted] y\",\"b\":1}" },
        { "{\"hunter2hunter2\":true}", "{\"[redacted]\":true}" },
        { "[[\"hunter2hunter2\"],null,false]", "[[\"[redacted]\"],null,false]" },
        { "{\"n\":4242424242424242}", "{\"n\":\"[redacted]\"}" },
        { "{\"z\":1,\"a\":[2,{\"m\":\"plain\"}]}", "{\"z\":1,\"a\":[2,{\"m\":\"plain\"}]}" },
        { "\"hunter2hunter2\"", "\"[redacted]\"" },
        { "no json hunter2hunter2 \"", "\"no json [redacted] \\\"\"" },
        { "", "\"\"" },
    };
    struct redactor *r = redactor_new ();
    struct secret *word = secret_new ("hunter2hunter2", 14),
                  *number = secret_new ("4242424242424242", 16);
    redactor_add (r, word);
    redactor_add (r, number);
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_free_ char *clean = redact_json_text (r, rows[i].text);
        assert_string_equal (clean, rows[i].expected);
        assert_null (strstr (clean, "hunter2hunter2"));
    }
    secret_free (word);
    secret_free (number);
    redactor_free (r);
}

static void
test_without_secrets_it_is_the_same_value (void **state)
{
    (void)state;
    static const char *const texts[] = { "{}",  "[]",   "1",
                                         "1.5", "null", "{\"b\":{\"a\":[1,2,3]},\"a\":\"é\"}" };
    struct redactor *r = redactor_new ();
    for (size_t i = 0; i < ARRAY_LEN (texts); i++) {
        _cleanup_free_ char *clean = redact_json_text (r, texts[i]);
        assert_string_equal (clean, texts[i]);
    }
    redactor_free (r);
}

int
unit_redact_json (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_where_a_secret_hides),
        cmocka_unit_test (test_without_secrets_it_is_the_same_value),
    };
    return cmocka_run_group_tests_name ("session/conversation/redact_json", tests, NULL, NULL);
}
