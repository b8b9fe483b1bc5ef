/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of commands (words.h). Quotes and backslashes are taken as a shell takes them; nothing is
 * expanded.
 */
#include "words.h"

#include <stdlib.h>
#include <string.h>

#include "murmur_sdk.h"

static void
push (struct words *words, struct mur_text *word)
{
    char **items = realloc (words->items, (words->count + 1) * sizeof *items);
    if (items == NULL)
        abort ();
    words->items = items;
    words->items[words->count++] = mur_format ("%s", word->data != NULL ? word->data : "");
    mur_text_free (word);
}

void
words_free (struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free (words->items[i]);
    free (words->items);
    *words = (struct words){ 0 };
}

/* The part of a word between quotes; returns its closing quote, or the end. */
static const char *
quoted (const char *at, struct mur_text *word)
{
    char quote = *at++;
    for (; *at != '\0' && *at != quote; at++) {
        bool is_escape =
            quote == '"' && *at == '\\' && at[1] != '\0' && strchr ("\"\\$`\n", at[1]) != NULL;
        at += is_escape;
        mur_text_add (word, at, 1);
    }
    return at;
}

static bool
sets_a_variable (const char *word)
{
    size_t len = strcspn (word, "=");
    return word[len] == '=' && len > 0 &&
           strspn (word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == len;
}

static void
drop_variables (struct words *words)
{
    size_t first = 0;
    while (first + 1 < words->count && sets_a_variable (words->items[first]))
        free (words->items[first++]);
    if (first > 0)
        memmove (words->items, words->items + first, (words->count - first) * sizeof (char *));
    words->count -= first;
}

struct words
words_next (const char **text, bool has_separators)
{
    struct words words = { 0 };
    struct mur_text word = { 0 };
    bool has_word = false;
    const char *at = *text;
    for (; *at != '\0'; at++) {
        if (*at == '\'' || *at == '"') {
            at = quoted (at, &word);
            has_word = true;
            if (*at == '\0')
                break;
        } else if (*at == '\\' && at[1] != '\0') {
            mur_text_add (&word, ++at, 1);
            has_word = true;
        } else if (has_separators && strchr (";&|\n(){}`", *at) != NULL) {
            break;
        } else if (strchr (" \t\r\n", *at) != NULL) {
            if (has_word)
                push (&words, &word);
            has_word = false;
        } else {
            mur_text_add (&word, at, 1);
            has_word = true;
        }
    }
    if (has_word)
        push (&words, &word);
    *text = *at != '\0' ? at + 1 : NULL;
    drop_variables (&words);
    return words;
}
