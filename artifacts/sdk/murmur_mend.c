/* SPDX-License-Identifier: Apache-2.0
 *
 * A lenient reader that writes strict JSON (murmur_mend.h says what it mends).
 *
 * It reads once, from left to right, and writes each thing as it is understood. Always true: what
 * it returns passes mur_json_check and holds neither a NUL, nor half a pair, nor a number that a
 * reader would round.
 */
#include "murmur_mend.h"
#include "murmur_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#define DEPTH_LIMIT  128
#define QUOTE_BYTES  40
#define UNWRAP_LIMIT 2 /* strings within strings */

struct mend {
    const char *from, *at, *end;
    struct mur_text *to;
    const char *wrong; /* NULL: nothing */
    bool is_changed;
};

/* The first thing that is wrong stays. */
static bool
fail (struct mend *m, const char *wrong)
{
    if (m->wrong == NULL)
        m->wrong = wrong;
    return false;
}

static bool
is_next (const struct mend *m, const char *word)
{
    size_t len = strlen (word);
    return (size_t)(m->end - m->at) >= len && memcmp (m->at, word, len) == 0;
}

static void
skip_until (struct mend *m, const char *mark)
{
    while (m->at < m->end && ! is_next (m, mark))
        m->at++;
}

/* Space and comments. */
static void
skip_gap (struct mend *m)
{
    for (;;) {
        while (m->at < m->end && strchr (" \t\r\n", *m->at) != NULL && *m->at != '\0')
            m->at++;
        if (is_next (m, "//")) {
            skip_until (m, "\n");
        } else if (is_next (m, "/*")) {
            skip_until (m, "*/");
            m->at += m->at < m->end ? 2 : 0;
        } else {
            return;
        }
        m->is_changed = true;
    }
}

static bool
peeks (struct mend *m, char c)
{
    skip_gap (m);
    return m->at < m->end && *m->at == c;
}

/* --- Texts --- */

static int
hex_value (const char *digits, const char *end, int count)
{
    int value = 0;
    for (int i = 0; i < count; i++) {
        if (digits + i >= end || ! isxdigit ((unsigned char)digits[i]))
            return -1;
        int c = tolower ((unsigned char)digits[i]);
        value = value * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return value;
}

/* `\u` and four digits: kept, unless it is a NUL or half a pair. */
static void
unicode_escape (struct mend *m)
{
    int code = hex_value (m->at + 2, m->end, 4);
    bool is_high = code >= 0xd800 && code < 0xdc00;
    int low = is_high && m->end - m->at >= 12 && m->at[6] == '\\' && m->at[7] == 'u'
                  ? hex_value (m->at + 8, m->end, 4)
                  : -1;
    if (low >= 0xdc00 && low < 0xe000) {
        mur_text_add (m->to, m->at, 12);
        m->at += 12;
    } else if (code > 0 && (code < 0xd800 || code >= 0xe000)) {
        mur_text_add (m->to, m->at, 6);
        m->at += 6;
    } else {
        mur_text_puts (m->to, code < 0 ? "\\\\u" : "\\ufffd");
        m->at += code < 0 ? 2 : 6;
        m->is_changed = true;
    }
}

/* A backslash before anything else is a character of the text. */
static void
escape (struct mend *m)
{
    char letter = m->at + 1 < m->end ? m->at[1] : '\0';
    int hex = letter == 'x' ? hex_value (m->at + 2, m->end, 2) : -1;
    if (letter == 'u') {
        unicode_escape (m);
        return;
    }
    if (letter != '\0' && strchr ("\"\\/bfnrt", letter) != NULL) {
        mur_text_add (m->to, m->at, 2);
        m->at += 2;
        return;
    }
    m->is_changed = true;
    if (letter == '\'') {
        mur_text_puts (m->to, "'");
        m->at += 2;
    } else if (hex > 0) {
        mur_text_printf (m->to, "\\u%04x", (unsigned)hex);
        m->at += 4;
    } else {
        mur_text_puts (m->to, "\\\\");
        m->at++;
    }
}

static bool
read_text (struct mend *m)
{
    char quote = *m->at++;
    m->is_changed = m->is_changed || quote != '"';
    mur_text_puts (m->to, "\"");
    while (m->at < m->end && *m->at != quote) {
        unsigned char c = (unsigned char)*m->at;
        if (c == '\\') {
            escape (m);
            continue;
        }
        m->is_changed = m->is_changed || c < 0x20 || c == '"';
        if (c == '\0')
            mur_text_puts (m->to, "\\ufffd");
        else if (c < 0x20 || c == '"')
            mur_text_printf (m->to, "\\u%04x", (unsigned)c);
        else
            mur_text_add (m->to, m->at, 1);
        m->at++;
    }
    if (m->at >= m->end)
        return fail (m, "a text in it does not end");
    m->at++;
    mur_text_puts (m->to, "\"");
    return true;
}

/* --- Scalars --- */

/* True for 1e308 and beyond, which a double may not hold. */
static bool
is_too_large (const char *digits)
{
    const char *at = digits + (*digits == '-'), *mark = strpbrk (at, "eE");
    long exponent = mark != NULL ? strtol (mark + 1, NULL, 10) : 0;
    exponent = exponent > 9999 ? 9999 : exponent < -9999 ? -9999 : exponent;
    at += strspn (at, "0");
    if (*at == '.') {
        size_t zeros = strspn (at + 1, "0");
        return isdigit ((unsigned char)at[1 + zeros]) && exponent - (long)zeros > 308;
    }
    size_t whole = strspn (at, "0123456789");
    return whole > 0 && (exponent >= 308 || exponent + (long)whole > 308);
}

static bool
read_number (struct mend *m)
{
    char digits[400];
    size_t len = 0;
    while (m->at + len < m->end && len < sizeof digits - 1 &&
           (isdigit ((unsigned char)m->at[len]) || strchr ("+-.eE", m->at[len]) != NULL) &&
           m->at[len] != '\0')
        len++;
    memcpy (digits, m->at, len);
    digits[len] = '\0';
    if (! mur_json_check (digits, len, NULL))
        return fail (m, "a value in it is none of JSON's");
    bool is_whole = strpbrk (digits, ".eE") == NULL;
    errno = 0;
    if (is_whole)
        strtoll (digits, NULL, 10);
    else if (is_too_large (digits))
        return fail (m, "a number in it is larger than a number can be");
    if (is_whole && errno == ERANGE)
        return fail (m, "a number in it has more digits than 64 bits hold; write it as a text");
    mur_text_add (m->to, digits, len);
    m->at += len;
    return true;
}

static bool
is_name_character (char c)
{
    return c == '_' || c == '$' || c == '-' || isalnum ((unsigned char)c) ||
           (unsigned char)c >= 0x80;
}

static bool
read_word (struct mend *m)
{
    static const char *const words[][2] = {
        { "true", "true" },   { "false", "false" }, { "null", "null" },      { "True", "true" },
        { "False", "false" }, { "None", "null" },   { "undefined", "null" }, { "NULL", "null" },
        { "Null", "null" },   { "nil", "null" },    { "TRUE", "true" },      { "FALSE", "false" }
    };
    size_t len = 0;
    while (m->at + len < m->end && is_name_character (m->at[len]))
        len++;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen (words[i][0]) == len && memcmp (words[i][0], m->at, len) == 0) {
            m->is_changed = m->is_changed || i > 2;
            mur_text_puts (m->to, words[i][1]);
            m->at += len;
            return true;
        }
    return fail (m, "a value in it is none of JSON's");
}

/* --- Containers --- */

static bool read_value (struct mend *m, int depth);

static bool
read_key (struct mend *m)
{
    if (*m->at == '"' || *m->at == '\'')
        return read_text (m);
    const char *from = m->at;
    while (m->at < m->end && is_name_character (*m->at))
        m->at++;
    if (m->at == from)
        return fail (m, "a member's name is missing");
    mur_text_json_bytes (m->to, from, (size_t)(m->at - from));
    m->is_changed = true;
    return true;
}

/* Stray commas are passed over; true when there was one. */
static bool
skip_commas (struct mend *m, bool is_between)
{
    size_t count = 0;
    while (peeks (m, ',')) {
        m->at++;
        count++;
    }
    m->is_changed = m->is_changed || count != (is_between ? 1 : 0);
    return count > 0;
}

static bool
read_container (struct mend *m, int depth)
{
    char open = *m->at++, close = open == '{' ? '}' : ']';
    mur_text_add (m->to, &open, 1);
    bool has_comma = true;
    if (peeks (m, ','))
        skip_commas (m, false);
    for (bool is_first = true; ! peeks (m, close); is_first = false) {
        if (m->at >= m->end)
            return fail (m, "it ends before it is complete");
        if (! is_first && ! has_comma && *m->at != '"')
            return fail (m, "a comma is missing");
        if (! is_first)
            mur_text_puts (m->to, ",");
        if (open == '{') {
            if (! read_key (m))
                return false;
            if (! peeks (m, ':'))
                return fail (m, "a colon is missing behind a name");
            m->at++;
            mur_text_puts (m->to, ":");
        }
        if (! read_value (m, depth + 1))
            return false;
        if (! peeks (m, close)) {
            has_comma = skip_commas (m, true);
            m->is_changed = m->is_changed || peeks (m, close);
        }
    }
    m->at++;
    mur_text_add (m->to, &close, 1);
    return true;
}

static bool
read_value (struct mend *m, int depth)
{
    skip_gap (m);
    if (m->at >= m->end)
        return fail (m, "it ends before it is complete");
    if (depth > DEPTH_LIMIT)
        return fail (m, "it is nested too deeply");
    if (*m->at == '{' || *m->at == '[')
        return read_container (m, depth);
    if (*m->at == '"' || *m->at == '\'')
        return read_text (m);
    if (*m->at == '-' || isdigit ((unsigned char)*m->at))
        return read_number (m);
    return read_word (m);
}

/* --- The whole --- */

/* A mark at the start, a fence around. */
static void
skip_wrapping (struct mend *m)
{
    if (is_next (m, "\xef\xbb\xbf"))
        m->at += 3, m->is_changed = true;
    skip_gap (m);
    if (! is_next (m, "```"))
        return;
    m->is_changed = true;
    m->at += 3;
    while (m->at < m->end && isalnum ((unsigned char)*m->at))
        m->at++;
    skip_gap (m);
}

/* What may stand behind the value: closing brackets too many, the end of a fence or of a tag. */
static void
skip_rest (struct mend *m)
{
    skip_gap (m);
    while (m->at < m->end && strchr ("}],;`", *m->at) != NULL && *m->at != '\0') {
        m->at++;
        m->is_changed = true;
        skip_gap (m);
    }
    if (is_next (m, "</") || is_next (m, "<|")) {
        m->at = m->end;
        m->is_changed = true;
    }
}

/* Another value behind the first: servers are known to send `{}` before the input, or it twice. */
static bool
take_second (struct mend *m)
{
    size_t first_len = m->to->len;
    if (m->at >= m->end)
        return true;
    if (*m->at != '{')
        return fail (m, "something stands behind it");
    m->is_changed = true;
    if (! read_value (m, 0))
        return false;
    size_t second_len = m->to->len - first_len;
    const char *second = m->to->data + first_len;
    bool is_same = second_len == first_len && memcmp (m->to->data, second, first_len) == 0;
    if (first_len == 2 && ! is_same)
        memmove (m->to->data, second, second_len);
    else if (! is_same && second_len != 2)
        return fail (m, "there are two of them");
    m->to->len = first_len == 2 ? second_len : first_len;
    m->to->data[m->to->len] = '\0';
    skip_rest (m);
    return m->at >= m->end ? true : fail (m, "something stands behind it");
}

static void
replace (struct mur_text *to, const char *bytes, size_t len)
{
    struct mur_text other = { 0 };
    mur_text_add (&other, bytes, len);
    mur_text_free (to);
    *to = other;
}

static char *
sentence (const struct mend *m)
{
    const char *at = m->at < m->end ? m->at : m->end;
    size_t offset = (size_t)(at - m->from);
    size_t start = offset > QUOTE_BYTES ? offset - QUOTE_BYTES : 0;
    while (start < offset && ((unsigned char)m->from[start] & 0xc0) == 0x80)
        start++;
    size_t rest = (size_t)(m->end - at);
    size_t len = offset - start + mur_utf8_prefix (at, rest, QUOTE_BYTES / 2);
    char *near = copy_text (m->from + start, len);
    char *text = mur_format ("the input is no JSON object: %s, at byte %zu, near: %s", m->wrong,
                             offset, near);
    free (near);
    return text;
}

static bool mend (const char *text, size_t len, struct mur_text *to, char **why, int unwraps);

/* A value that is no object may hold one. */
static bool
unwrap (struct mend *m, char **why, int unwraps)
{
    char first = m->to->data[0];
    if (first == '{')
        return true;
    struct mur_json *json = NULL;
    if (strcmp (m->to->data, "null") == 0 || strcmp (m->to->data, "[]") == 0) {
        replace (m->to, "{}", 2);
        return true;
    }
    if (first == '"' && unwraps < UNWRAP_LIMIT) {
        char *wrapped = mur_format ("[%s]", m->to->data);
        json = mur_json_parse (wrapped, strlen (wrapped));
        char *inner = mur_json_text (json, mur_json_at (json, 0, 0));
        free (wrapped);
        mur_json_free (json);
        mur_text_free (m->to);
        bool is_fine = inner != NULL && mend (inner, strlen (inner), m->to, why, unwraps + 1);
        free (inner);
        return is_fine;
    }
    json = first == '[' ? mur_json_parse (m->to->data, m->to->len) : NULL;
    size_t len = 0;
    const char *raw = "";
    if (mur_json_count (json, 0) == 1 &&
        mur_json_kind (json, mur_json_first (json, 0)) == MUR_JSON_OBJECT)
        raw = mur_json_raw (json, mur_json_first (json, 0), &len);
    if (len > 0)
        replace (m->to, raw, len);
    mur_json_free (json);
    if (len > 0)
        return true;
    m->at = m->from;
    m->wrong = first == '[' ? "it is a list" : "it is a single value";
    *why = sentence (m);
    return false;
}

static bool
mend (const char *text, size_t len, struct mur_text *to, char **why, int unwraps)
{
    struct mend m = { .from = text, .at = text, .end = text + len, .to = to };
    skip_wrapping (&m);
    if (m.at >= m.end || is_next (&m, "```")) {
        mur_text_puts (to, "{}");
        return true;
    }
    bool is_read = read_value (&m, 0);
    if (is_read)
        skip_rest (&m);
    if (! is_read || ! take_second (&m)) {
        *why = sentence (&m);
        return false;
    }
    if (! unwrap (&m, why, unwraps))
        return false;
    if (! m.is_changed && *text == '{' && mur_json_check (text, len, NULL))
        replace (to, text, len); /* as it was written, blanks included */
    return true;
}

bool
mur_mend_input (const char *text, size_t len, struct mur_text *to, char **why)
{
    struct mur_text object = { 0 };
    bool is_fine = mend (text, len, &object, why, 0);
    if (is_fine)
        mur_text_add (to, object.data, object.len);
    mur_text_free (&object);
    return is_fine;
}

bool
mur_mend_value (const char *text, size_t len, struct mur_text *to)
{
    struct mur_text value = { 0 };
    struct mend m = { .from = text, .at = text, .end = text + len, .to = &value };
    bool is_fine = read_value (&m, 0);
    skip_gap (&m);
    is_fine = is_fine && m.at >= m.end;
    if (is_fine)
        mur_text_add (to, m.is_changed ? value.data : text, m.is_changed ? value.len : len);
    mur_text_free (&value);
    return is_fine;
}
