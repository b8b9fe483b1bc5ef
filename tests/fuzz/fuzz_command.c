/* SPDX-License-Identifier: Apache-2.0
 *
 * Any script, read as approvals read it: what is not read has a name, a program that is read has
 * one, and a script inside `sh -c` hides nothing that is seen of it by itself.
 */
#include "tests/fuzz/fuzzing.h"

#include "session/calls/command_read.h"

#include <stdio.h>

static void
check_reading (const struct command_reading *r)
{
    assert (r->is_opaque == (r->opaque_by != NULL));
    assert (r->len <= COMMANDS_READ_MAX);
    for (size_t i = 0; i < r->len; i++) {
        assert (r->items[i].words.len >= 1);
        assert (! (r->items[i].starts_others && r->items[i].only_reads));
    }
}

static void
check_inside (const char *text, const struct command_reading *alone)
{
    size_t size = strlen (text) + 16;
    char *script = malloc (size);
    snprintf (script, size, "sh -c '%s'", text);
    struct command_reading inside;
    command_read_script ("sh", script, &inside);
    check_reading (&inside);
    assert (inside.is_opaque || ! alone->is_opaque);
    for (size_t i = 0; i < alone->len && ! inside.is_opaque; i++) {
        assert (i + 1 < inside.len);
        assert (! strcmp (inside.items[i + 1].words.items[0], alone->items[i].words.items[0]));
    }
    command_reading_clear (&inside);
    free (script);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    struct command_reading r;
    command_read_script ("sh", text, &r);
    check_reading (&r);
    /* Each `sh -c` inside takes one of the levels that are read. */
    if (! strchr (text, '\'') && ! strstr (text, "sh"))
        check_inside (text, &r);
    command_reading_clear (&r);
    command_read_script ("zsh", text, &r);
    assert (r.is_opaque);
    command_reading_clear (&r);
    char *arguments = strchr (text, ' ');
    if (arguments) {
        *arguments++ = '\0';
        if (command_read_program (text, arguments, &r))
            check_reading (&r);
        command_reading_clear (&r);
    }
    free (text);
    return 0;
}
