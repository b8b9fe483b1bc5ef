/* SPDX-License-Identifier: Apache-2.0
 *
 * The artifact index: schema 2, read strictly, written the same every time (spec/artifacts.md 9).
 */
#include "artifact/sources/index.h"
#include "tests/unit/testing.h"

#include <string.h>

#define HASH "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const char example[] = "{\n"
                              "  \"schema_version\": 2,\n"
                              "  \"scope\": \"ana\",\n"
                              "  \"artifacts\": [\n"
                              "    {\n"
                              "      \"name\": \"tool-a\",\n"
                              "      \"runtime\": \"tool\",\n"
                              "      \"description\": \"Finds things.\",\n"
                              "      \"tags\": [\n"
                              "        \"tool\",\n"
                              "        \"a\"\n"
                              "      ],\n"
                              "      \"versions\": [\n"
                              "        {\n"
                              "          \"version\": \"0.10.0\",\n"
                              "          \"release\": \"v2\",\n"
                              "          \"interfaces\": [\n"
                              "            \"murmur:tool/run@9.9.9\"\n"
                              "          ],\n"
                              "          \"assets\": [\n"
                              "            {\n"
                              "              \"file\": \"tool-a-0.10.0.mur.zip\",\n"
                              "              \"sha256\": \"" HASH "\"\n"
                              "            }\n"
                              "          ]\n"
                              "        },\n"
                              "        {\n"
                              "          \"version\": \"0.9.0\",\n"
                              "          \"release\": \"v1\",\n"
                              "          \"built_at_level\": 1,\n"
                              "          \"interfaces\": [\n"
                              "            \"murmur:tool/run@0.1.0\"\n"
                              "          ],\n"
                              "          \"assets\": [\n"
                              "            {\n"
                              "              \"file\": \"tool-a-0.9.0-darwin-aarch64.mur.zip\",\n"
                              "              \"platform\": \"darwin-aarch64\",\n"
                              "              \"sha256\": \"" HASH "\"\n"
                              "            },\n"
                              "            {\n"
                              "              \"file\": \"tool-a-0.9.0-linux-x86_64.mur.zip\",\n"
                              "              \"platform\": \"linux-x86_64\",\n"
                              "              \"sha256\": \"" HASH "\"\n"
                              "            }\n"
                              "          ]\n"
                              "        }\n"
                              "      ]\n"
                              "    }\n"
                              "  ]\n"
                              "}\n";

/* The example with its first <from> replaced. Owned. */
static char *
changed (const char *from, const char *to)
{
    const char *at = strstr (example, from);
    assert_non_null (at);
    return x_asprintf ("%.*s%s%s", (int)(at - example), example, to, at + strlen (from));
}

static void
test_an_index_is_written_as_it_was_read (void **state)
{
    (void)state;
    struct mur_error *err = NULL;
    _cleanup_index_ struct artifact_index *x =
        index_parse (example, sizeof (example) - 1, "index", &err);
    if (! x)
        fail_msg ("%s", err->message);
    _cleanup_free_ char *text = index_text (x);
    assert_string_equal (text, example);
}

static void
test_faults_are_located (void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *place;
    } cases[] = {
        { "\"schema_version\": 2", "\"schema_version\": 1", "schema 1" },
        { "\"schema_version\": 2", "\"schema_version\": \"1\"", "schema 1" },
        { "\"schema_version\": 2", "\"schema_version\": \"2\"", "\"2\"" },
        { "\"schema_version\": 2", "\"schema_version\": 3", "3" },
        { "\"scope\": \"ana\"", "\"scope\": \"local\"", "scope" },
        { "\"scope\": \"ana\"", "\"scope\": \"Ana\"", "scope" },
        { "\"name\": \"tool-a\"", "\"name\": \"Tool\"", "artifacts[0].name" },
        { "\"runtime\": \"tool\"", "\"runtime\": \"\"", "artifacts[0].runtime" },
        { "\"description\": \"Finds things.\"", "\"description\": null",
          "artifacts[0].description" },
        { "\"description\": \"Finds things.\"", "\"description\": \"\"",
          "artifacts[0].description" },
        { "\"a\"\n", "\"tool\"\n", "artifacts[0].tags" },
        { "\"tags\"", "\"tagz\"", "artifacts[0].tags" },
        { "\"0.10.0\"", "\"0.8.0\"", "artifacts[0].versions" },
        { "\"0.10.0\"", "\"latest\"", "artifacts[0].versions[0].version" },
        { "\"release\": \"v2\"", "\"release\": \"v 2\"", "artifacts[0].versions[0].release" },
        { "\"built_at_level\": 1", "\"built_at_level\": -1",
          "artifacts[0].versions[1].built_at_level" },
        { "\"murmur:tool/run@9.9.9\"", "\"wasi:io/x\"", "artifacts[0].versions[0].interfaces" },
        { "\"murmur:tool/run@9.9.9\"", "\"murmur:b/x\", \"murmur:a/x\"",
          "artifacts[0].versions[0].interfaces" },
        { "tool-a-0.10.0.mur.zip", "tool-b-0.10.0.mur.zip",
          "artifacts[0].versions[0].assets[0].file" },
        { "\"platform\": \"darwin-aarch64\"", "\"platform\": \"plan9\"",
          "artifacts[0].versions[1].assets[0].platform" },
        { "\"sha256\": \"a", "\"sha256\": \"A", "artifacts[0].versions[0].assets[0].sha256" },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        _cleanup_free_ char *text = changed (cases[i].from, cases[i].to);
        struct mur_error *err = NULL;
        assert_null (index_parse (text, strlen (text), "index", &err));
        assert_int_equal (err->code, E_IDX_002);
        if (! strstr (err->message, cases[i].place))
            fail_msg ("\"%s\" does not name %s", err->message, cases[i].place);
        mur_error_free (err);
    }
}

static void
test_the_newest_that_fits_level_and_platform (void **state)
{
    (void)state;
    _cleanup_index_ struct artifact_index *x =
        index_parse (example, sizeof (example) - 1, "index", NULL);
    const struct index_artifact *a = index_find (x, "tool-a");
    assert_string_equal (index_newest_fit (a, "linux-x86_64")->version, "0.9.0");
    assert_null (index_newest_fit (a, "linux-aarch64"));
    assert_string_equal (index_newest_fit (a, NULL)->version, "0.9.0");
    assert_null (index_find (x, "tool"));
    assert_null (index_asset_for (&a->versions[1], "linux-aarch64"));
    assert_string_equal (index_asset_for (&a->versions[0], "linux-aarch64")->file,
                         "tool-a-0.10.0.mur.zip");
}

static void
test_unknown_keys_are_ignored_and_other_shapes_refused (void **state)
{
    (void)state;
    _cleanup_free_ char *text = changed ("\"runtime\"", "\"future\": {}, \"runtime\"");
    _cleanup_index_ struct artifact_index *x = index_parse (text, strlen (text), "index", NULL);
    assert_non_null (x);
    static const char *const bad[] = { "",
                                       "[]",
                                       "{}",
                                       "null",
                                       "{\"schema_version\":2}",
                                       "{\"schema_version\":2,\"scope\":\"a\",\"artifacts\":{}}",
                                       "{\"schema_version\":2,\"scope\":\"a\",\"artifacts\":[1]}" };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++)
        assert_fails (index_parse (bad[i], strlen (bad[i]), "index", &err), E_IDX_002);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_an_index_is_written_as_it_was_read),
        cmocka_unit_test (test_faults_are_located),
        cmocka_unit_test (test_the_newest_that_fits_level_and_platform),
        cmocka_unit_test (test_unknown_keys_are_ignored_and_other_shapes_refused),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
