/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON judged and read (murmur_sdk.h says what each function does). It needs no host: the same
 * source is compiled for the build machine by its tests.
 *
 * Always true: what mur_json_text makes is well-formed UTF-8 without a NUL, so it may cross a
 * component boundary.
 */
#include "murmur_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSMN_STATIC
#define JSMN_STRICT
#define JSMN_PARENT_LINKS
#include <jsmn.h>

/* --- JSON judged --- */

#define CHECK_DEPTH_LIMIT 512

static const char *
skip_space (const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

static bool
is_digit (const char *at, const char *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

/* Each of these returns where the thing that begins at `at` ends, or NULL with *wrong set. */
static const char *
check_string (const char *at, const char *end, const char **wrong)
{
    for (at++; at < end && *at != '"'; at++) {
        *wrong = at;
        if ((unsigned char)*at < 0x20)
            return NULL;
        if (*at != '\\')
            continue;
        at++;
        if (at >= end || *at == '\0' || strchr ("\"\\/bfnrtu", *at) == NULL)
            return NULL;
        for (int i = 0; *at == 'u' && i < 4; i++)
            if (at + 1 + i >= end || ! isxdigit ((unsigned char)at[1 + i]))
                return NULL;
    }
    *wrong = at;
    return at < end ? at + 1 : NULL;
}

static const char *
check_number (const char *at, const char *end)
{
    if (*at == '-')
        at++;
    if (! is_digit (at, end))
        return NULL;
    if (*at == '0')
        at++;
    else
        while (is_digit (at, end))
            at++;
    if (at < end && *at == '.') {
        if (! is_digit (++at, end))
            return NULL;
        while (is_digit (at, end))
            at++;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        if (! is_digit (at, end))
            return NULL;
        while (is_digit (at, end))
            at++;
    }
    return at;
}

static const char *
check_scalar (const char *at, const char *end, const char **wrong)
{
    static const char *const words[] = { "true", "false", "null" };
    if (*at == '"')
        return check_string (at, end, wrong);
    for (size_t i = 0; i < 3; i++) {
        size_t len = strlen (words[i]);
        if ((size_t)(end - at) >= len && memcmp (at, words[i], len) == 0)
            return at + len;
    }
    return check_number (at, end);
}

static const char *check_value (const char *at, const char *end, int depth, const char **wrong);

static const char *
check_container (const char *at, const char *end, int depth, const char **wrong)
{
    char close = *at == '{' ? '}' : ']';
    at = skip_space (at + 1, end);
    if (at < end && *at == close)
        return at + 1;
    while (at < end) {
        if (close == '}') {
            *wrong = at;
            at = *at == '"' ? check_string (at, end, wrong) : NULL;
            at = at != NULL ? skip_space (at, end) : NULL;
            if (at != NULL)
                *wrong = at;
            if (at == NULL || at >= end || *at != ':')
                return NULL;
            at++;
        }
        at = check_value (at, end, depth + 1, wrong);
        at = at != NULL ? skip_space (at, end) : NULL;
        if (at == NULL || (at < end && *at == close))
            return at != NULL ? at + 1 : NULL;
        *wrong = at;
        if (at >= end || *at != ',')
            return NULL;
        at = skip_space (at + 1, end);
    }
    *wrong = at;
    return NULL;
}

static const char *
check_value (const char *at, const char *end, int depth, const char **wrong)
{
    *wrong = at = skip_space (at, end);
    if (at >= end || depth > CHECK_DEPTH_LIMIT)
        return NULL;
    return *at == '{' || *at == '[' ? check_container (at, end, depth, wrong)
                                    : check_scalar (at, end, wrong);
}

bool
mur_json_check (const char *text, size_t len, size_t *wrong_at)
{
    const char *end = text + len, *wrong = text;
    const char *at = check_value (text, end, 0, &wrong);
    if (at != NULL)
        wrong = at = skip_space (at, end);
    bool is_json = at == end && mur_utf8_valid (text, len);
    if (wrong_at != NULL)
        *wrong_at = (size_t)(wrong - text);
    return is_json;
}

/* --- JSON in --- */

struct mur_json {
    char *text;
    jsmntok_t *tokens;
    int count;
};

struct mur_json *
mur_json_parse (const char *text, size_t len)
{
    jsmn_parser parser;
    jsmn_init (&parser);
    int count = jsmn_parse (&parser, text, len, NULL, 0);
    if (count <= 0)
        return NULL;
    struct mur_json *json = must (calloc (1, sizeof *json));
    json->text = copy_bytes (text, len);
    json->tokens = must (calloc ((size_t)count, sizeof *json->tokens));
    jsmn_init (&parser);
    json->count = jsmn_parse (&parser, json->text, len, json->tokens, (unsigned)count);
    bool is_whole = json->count == count && json->tokens[0].type != JSMN_PRIMITIVE &&
                    json->tokens[0].type != JSMN_STRING;
    for (int i = 1; is_whole && i < count; i++)
        is_whole = json->tokens[i].parent >= 0;
    if (! is_whole) {
        mur_json_free (json);
        return NULL;
    }
    return json;
}

void
mur_json_free (struct mur_json *json)
{
    if (json == NULL)
        return;
    free (json->text);
    free (json->tokens);
    free (json);
}

static const jsmntok_t *
token (const struct mur_json *json, mur_node node)
{
    return json != NULL && node >= 0 && node < json->count ? &json->tokens[node] : NULL;
}

enum mur_json_kind
mur_json_kind (const struct mur_json *json, mur_node node)
{
    const jsmntok_t *t = token (json, node);
    if (t == NULL)
        return MUR_JSON_ABSENT;
    switch (t->type) {
    case JSMN_OBJECT:
        return MUR_JSON_OBJECT;
    case JSMN_ARRAY:
        return MUR_JSON_ARRAY;
    case JSMN_STRING:
        return MUR_JSON_STRING;
    default:
        break;
    }
    char first = json->text[t->start];
    return first == 'n'                   ? MUR_JSON_NULL
           : first == 't' || first == 'f' ? MUR_JSON_BOOL
                                          : MUR_JSON_NUMBER;
}

mur_node
mur_json_first (const struct mur_json *json, mur_node container)
{
    const jsmntok_t *t = token (json, container);
    if (t == NULL || t->size == 0)
        return -1;
    if (t->type == JSMN_ARRAY)
        return container + 1;
    return t->type == JSMN_OBJECT && json->tokens[container + 1].size == 1 ? container + 2 : -1;
}

mur_node
mur_json_next (const struct mur_json *json, mur_node node)
{
    const jsmntok_t *t = token (json, node);
    if (t == NULL || t->parent < 0)
        return -1;
    bool is_in_object = json->tokens[t->parent].type == JSMN_STRING;
    int container = is_in_object ? json->tokens[t->parent].parent : t->parent;
    mur_node next = node + 1;
    while (next < json->count && json->tokens[next].start < t->end)
        next++;
    if (next >= json->count || json->tokens[next].parent != container)
        return -1;
    if (! is_in_object)
        return next;
    return json->tokens[next].size == 1 ? next + 1 : -1;
}

static bool
string_equals (const struct mur_json *json, mur_node node, const char *string)
{
    const jsmntok_t *t = token (json, node);
    if (t == NULL || t->type != JSMN_STRING)
        return false;
    size_t len = (size_t)(t->end - t->start);
    if (memchr (json->text + t->start, '\\', len) == NULL)
        return strlen (string) == len && memcmp (json->text + t->start, string, len) == 0;
    char *text = mur_json_text (json, node);
    bool is_equal = strcmp (text, string) == 0;
    free (text);
    return is_equal;
}

bool
mur_json_is (const struct mur_json *json, mur_node node, const char *string)
{
    return string_equals (json, node, string);
}

mur_node
mur_json_get (const struct mur_json *json, mur_node object, const char *key)
{
    if (mur_json_kind (json, object) != MUR_JSON_OBJECT)
        return -1;
    for (mur_node n = mur_json_first (json, object); n >= 0; n = mur_json_next (json, n))
        if (string_equals (json, n - 1, key))
            return n;
    return -1;
}

mur_node
mur_json_at (const struct mur_json *json, mur_node array, size_t index)
{
    mur_node n = mur_json_first (json, array);
    while (n >= 0 && index-- > 0)
        n = mur_json_next (json, n);
    return n;
}

size_t
mur_json_count (const struct mur_json *json, mur_node container)
{
    const jsmntok_t *t = token (json, container);
    return t == NULL || (t->type != JSMN_ARRAY && t->type != JSMN_OBJECT) ? 0 : (size_t)t->size;
}

static unsigned
hex4 (const char *digits)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char c = digits[i];
        unsigned digit = c <= '9' ? (unsigned)(c - '0') : ((unsigned)c | 0x20) - 'a' + 10;
        value = value << 4 | digit;
    }
    return value;
}

/* Reads the escape whose letter is at *from; a lone surrogate becomes U+FFFD unless it is kept (in
 * the bytes that UTF-8 forbids), and so does a NUL, which would end the C string. */
static char *
put_escape (char *to, const char **from, const char *end, bool keeps_halves)
{
    static const char named[] = "b\bf\fn\nr\rt\t";
    char letter = *(*from)++;
    if (letter != 'u') {
        const char *pair = strchr (named, letter);
        if (pair != NULL && (pair - named) % 2 == 0)
            letter = pair[1];
        *to++ = letter;
        return to;
    }
    unsigned code = hex4 (*from);
    *from += 4;
    bool is_high = code >= 0xd800 && code < 0xdc00;
    if (is_high && end - *from >= 6 && (*from)[0] == '\\' && (*from)[1] == 'u') {
        unsigned low = hex4 (*from + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            *from += 6;
            return put_utf8 (to, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
        }
    }
    bool is_half = code >= 0xd800 && code < 0xe000;
    return put_utf8 (to, code == 0 || (is_half && ! keeps_halves) ? 0xfffd : code);
}

static char *
text_of (const struct mur_json *json, mur_node node, bool keeps_halves)
{
    const jsmntok_t *t = token (json, node);
    if (t == NULL || t->type != JSMN_STRING)
        return NULL;
    const char *from = json->text + t->start;
    const char *end = json->text + t->end;
    char *text = must (malloc ((size_t)(end - from) + 1));
    char *to = text;
    while (from < end) {
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        from++;
        to = put_escape (to, &from, end, keeps_halves);
    }
    *to = '\0';
    return text;
}

char *
mur_json_text (const struct mur_json *json, mur_node node)
{
    return text_of (json, node, false);
}

char *
json_text_in_halves (const struct mur_json *json, mur_node node)
{
    return text_of (json, node, true);
}

char *
mur_json_key (const struct mur_json *json, mur_node value)
{
    const jsmntok_t *t = token (json, value);
    return t == NULL || t->parent < 0 ? NULL : mur_json_text (json, t->parent);
}

const char *
mur_json_raw (const struct mur_json *json, mur_node node, size_t *len)
{
    const jsmntok_t *t = token (json, node);
    if (t == NULL)
        return *len = 0, "";
    int quotes = t->type == JSMN_STRING ? 1 : 0;
    *len = (size_t)(t->end - t->start + 2 * quotes);
    return json->text + t->start - quotes;
}

int64_t
mur_json_int (const struct mur_json *json, mur_node node, int64_t fallback)
{
    if (mur_json_kind (json, node) != MUR_JSON_NUMBER)
        return fallback;
    const jsmntok_t *t = token (json, node);
    char *end;
    errno = 0;
    long long value = strtoll (json->text + t->start, &end, 10);
    if (errno == 0 && *end == '.') /* 12.0 is a whole number, too */
        end += 1 + strspn (end + 1, "0");
    return errno != 0 || end != json->text + t->end ? fallback : value;
}

bool
mur_json_bool (const struct mur_json *json, mur_node node, bool fallback)
{
    if (mur_json_kind (json, node) != MUR_JSON_BOOL)
        return fallback;
    return json->text[token (json, node)->start] == 't';
}
