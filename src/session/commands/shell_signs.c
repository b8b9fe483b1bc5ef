/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/shell_signs.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <ctype.h>
#include <string.h>

#define QUOTED 'q' /* stands for each character that a quote or a backslash covers */

/* The command with every covered character made plain; of the same length. */
static char *
masked (const char *command)
{
    char *out = x_strdup (command);
    char quote = '\0';
    for (char *at = out; *at; at++) {
        bool is_escape = *at == '\\' && quote != '\'' && at[1];
        if (is_escape) {
            *at++ = QUOTED;
            *at = QUOTED;
        } else if (quote) {
            quote = *at == quote ? '\0' : quote;
            *at = QUOTED;
        } else if (*at == '\'' || *at == '"') {
            quote = *at;
            *at = QUOTED;
        }
    }
    return out;
}

/* 2>&1, >file, >>, <<EOF, &>log; a number alone before it. */
static bool
is_redirection (const char *word)
{
    word += *word == '&';
    while (isdigit ((unsigned char)*word))
        word++;
    return *word == '>' || *word == '<';
}

static bool
is_operator (const char *word, size_t len, bool may_end_exec)
{
    static const char *const whole[] = { "&&", "||", "|", "&", "|&" };
    for (size_t i = 0; i < ARRAY_LEN (whole); i++)
        if (strlen (whole[i]) == len && memcmp (word, whole[i], len) == 0)
            return true;
    if (word[len - 1] == ';')
        return ! may_end_exec;
    return *word == '#' || is_redirection (word);
}

static bool
is_expansion (const char *word, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool is_name = word[i] == '$' && i + 1 < len &&
                       (isalpha ((unsigned char)word[i + 1]) || strchr ("({_", word[i + 1]));
        if (is_name || strchr ("*?`", word[i]))
            return true;
    }
    return word[0] == '~' && (len == 1 || word[1] == '/');
}

char *
shell_sign_of (const char *command, bool has_failed)
{
    static const char *const execs[] = { "-exec", "-execdir", "-ok", "-okdir" };
    _cleanup_free_ char *plain = masked (command);
    bool may_end_exec = false;
    for (size_t at = 0, len; plain[at]; at += len) {
        at += strspn (plain + at, " \t\r\n\f\v");
        len = strcspn (plain + at, " \t\r\n\f\v");
        const char *word = plain + at;
        if (! len)
            break;
        for (size_t i = 0; i < ARRAY_LEN (execs); i++)
            may_end_exec |= strlen (execs[i]) == len && memcmp (word, execs[i], len) == 0;
        if (is_operator (word, len, may_end_exec) || (has_failed && is_expansion (word, len)))
            return x_strndup (command + at, len);
    }
    return NULL;
}
