/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur explain`: what a diagnostic code means and what to do, from the one table
 * (base/diag_codes.def).
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/health/commands.h"
#include "cli/line/args.h"
#include "manifest/text/suggest.h"

#include <ctype.h>
#include <string.h>

static const char letters_of_words[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

static void
put_line (enum diag_code code)
{
    out_printf ("%-16s %s\n", diag_code_name (code), diag_code_meaning (code));
}

static int
list_codes (void)
{
    for (int i = 0; i < DIAG_COUNT; i++)
        put_line ((enum diag_code)i);
    return CLI_OK;
}

/* "SEC", "E-RUN": the codes of a family. "lock": those whose meaning has the word. False: none. */
static bool
list_some (const char *typed)
{
    bool is_found = false;
    size_t len = strlen (typed);
    for (int i = 0; i < DIAG_COUNT; i++) {
        const char *name = diag_code_name ((enum diag_code)i);
        bool is_family =
            (strncasecmp (name, typed, len) == 0 && name[len] == '-' && strchr (typed, '-')) ||
            (strncasecmp (name + 2, typed, len) == 0 && name[2 + len] == '-');
        bool is_word = len > 2 && typed[strspn (typed, letters_of_words)] == '\0' &&
                       strcasestr (diag_code_meaning ((enum diag_code)i), typed);
        if (is_family || is_word)
            put_line ((enum diag_code)i);
        is_found |= is_family || is_word;
    }
    return is_found;
}

static int
unknown_code (const char *typed, struct mur_error **err)
{
    struct suggestion near = { 0 };
    _cleanup_free_ char *upper = x_strdup (typed);
    for (char *c = upper; *c; c++)
        *c = (char)toupper ((unsigned char)*c);
    for (int i = 0; i < DIAG_COUNT; i++)
        suggestion_offer (&near, upper, diag_code_name ((enum diag_code)i));
    mur_fail (err, E_IO_001, "there is no diagnostic code '%s'", typed);
    if (near.word)
        mur_hint (err, "mur explain %s, or `mur explain` for all of them", near.word);
    else
        mur_hint (err, "`mur explain` lists all of them");
    return CLI_FAILED;
}

static void
explain (enum diag_code code)
{
    out_printf ("%s\n\n%s\n\n", diag_code_name (code), diag_code_meaning (code));
    if (diag_code_is_unraised (code))
        out_puts (
            "This version of mur never prints it: what it is about is not in it, or is refused "
            "earlier under another code.\n");
    else
        out_printf ("What to do: %s\n", diag_code_remedy (code));
}

/* "RUN-003": every code that is meant when the letter is left out. False: there is none. */
static bool
explain_without_letter (const char *typed)
{
    static const char letters[] = "EW";
    bool is_found = false;
    for (const char *letter = letters; *letter; letter++) {
        _cleanup_free_ char *whole = x_asprintf ("%c-%s", *letter, typed);
        enum diag_code code;
        if (! diag_code_find (whole, &code))
            continue;
        if (is_found)
            out_puts ("\n");
        explain (code);
        is_found = true;
    }
    return is_found;
}

int
cmd_explain (const struct cli_args *args, struct mur_error **err)
{
    const char *typed = cli_positional (args, "CODE");
    enum diag_code code;
    if (! typed)
        return list_codes ();
    if (diag_code_find (typed, &code))
        explain (code);
    else if (! explain_without_letter (typed) && ! list_some (typed))
        return unknown_code (typed, err);
    return CLI_OK;
}
