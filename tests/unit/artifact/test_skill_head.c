/* SPDX-License-Identifier: Apache-2.0
 *
 * What a SKILL.md says of itself, in the forms in which heads are found.
 */
#include "tests/unit/testing.h"

#include "artifact/package/skill_head.h"

#include <string.h>

#define BODY "\n# Forms\n\nMore.\n"

static void
test_report_28_heads_as_they_are_found (void **state _unused_)
{
    static const char *const cases[][2] = {
        { "---\nname: f\ndescription: \"Fills forms: reads, writes.\"\n---" BODY,
          "Fills forms: reads, writes." },
        { "---\nname: f\ndescription: 'it''s'\n---" BODY, "it's" },
        { "---\nname: f\ndescription: Fills forms\n---" BODY, "Fills forms" },
        { "---\nname: f\ndescription: Fills: reads, writes: all\n---" BODY,
          "Fills: reads, writes: all" },
        { "---\nname: f\ndescription: a: b\n  and more: c\nlicense: x\n---" BODY,
          "a: b and more: c" },
        { "---\nname: f\nDescription: \"a\": b\n---" BODY, "\"a\": b" },
        { "---\ndescription: >\n  one\n  two\n\n  three\nname: f\n---" BODY, "one two three" },
        { "---\ndescription: >-\n\tone: x\n\ttwo\nname: f: g\n---" BODY, "one: x two" },
        { "---\ndescription: |\n  one\n  two\n---" BODY, "one two" },
        { "---\ndescription: one\n  two\n---" BODY, "one two" },
        { "---\ndescription: [a, b]\n---" BODY, "a b" },
        { "---\ndescription:\n  - one\n  - two\n---" BODY, "one two" },
        { "---\r\nname: f\r\ndescription: Windows\r\n---\r\n# Forms\r\n", "Windows" },
        { "\xef\xbb\xbf---\ndescription: marked\n---" BODY, "marked" },
        { "\n\n--- \ndescription: late\n...\n# x\n", "late" },
        { "---\nname: only\n---" BODY, "# Forms" },
        { "---\ndescription:\n---" BODY, "# Forms" },
        { "---\ndescription: 42\n---" BODY, "42" },
        { "# Notes\nabout\n", "# Notes" },
        { "+++\nname = \"x\"\ndescription = \"Fills forms\"\n+++" BODY, "Fills forms" },
        { "<!-- SPDX: MIT -->\n\n---\ndescription: about\n---" BODY, "about" },
        { "<!-- a --><!-- b -->" BODY, "# Forms" },
        { "---\nname: x\ndescription: never closed\n" BODY, "never closed" },
        { "---\nname: x\n\n# Forms\ndescription: of the body\n", "# Forms" },
        { "---\nname: x", "name: x" },
        { "---\n\nno head, a rule\n", "no head, a rule" },
        { "***\n\n漢字\n", "漢字" },
        { "---\r\rA mac\r", "A mac" },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        _cleanup_free_ char *found = skill_head_description (cases[i][0], strlen (cases[i][0]));
        assert_non_null (found);
        assert_string_equal (found, cases[i][1]);
    }
    assert_null (skill_head_description ("", 0));
    assert_null (skill_head_description ("---\n---\n", 8));
    assert_null (skill_head_description ("\xc3(", 2));
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_report_28_heads_as_they_are_found),
    };
    return cmocka_run_group_tests_name ("artifact/skill_head", tests, NULL, NULL);
}
