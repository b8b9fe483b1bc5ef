/* SPDX-License-Identifier: Apache-2.0
 *
 * The half of the guest SDK that needs no host: growing text, UTF-8, JSON in and out (murmur_sdk.h
 * says what each function does). The same source is compiled for the build machine by its unit
 * tests.
 *
 * Always true: what mur_json_text and mur_text_json make is well-formed UTF-8 without a NUL, so it
 * may cross a component boundary.
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

/* --- Text --- */

void
mur_text_add (struct mur_text *text, const char *bytes, size_t len)
{
    if (text->len + len + 1 > text->capacity) {
        size_t capacity = text->capacity < 64 ? 64 : text->capacity;
        while (capacity < text->len + len + 1)
            capacity *= 2;
        text->data = must (realloc (text->data, capacity));
        text->capacity = capacity;
    }
    if (len > 0)
        memcpy (text->data + text->len, bytes, len);
    text->len += len;
    text->data[text->len] = '\0';
}

void
mur_text_puts (struct mur_text *text, const char *string)
{
    mur_text_add (text, string, strlen (string));
}

void
mur_text_vprintf (struct mur_text *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy (again, arguments);
    int needed = vsnprintf (NULL, 0, format, again);
    va_end (again);
    if (needed < 0)
        return;
    char *line = must (malloc ((size_t)needed + 1));
    vsnprintf (line, (size_t)needed + 1, format, arguments);
    mur_text_add (text, line, (size_t)needed);
    free (line);
}

void
mur_text_printf (struct mur_text *text, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    mur_text_vprintf (text, format, arguments);
    va_end (arguments);
}

void
mur_text_free (struct mur_text *text)
{
    free (text->data);
    *text = (struct mur_text){ 0 };
}

char *
mur_format (const char *format, ...)
{
    struct mur_text text = { 0 };
    va_list arguments;
    va_start (arguments, format);
    mur_text_vprintf (&text, format, arguments);
    va_end (arguments);
    return text.data != NULL ? text.data : copy_bytes ("", 0);
}

/* --- UTF-8 --- */

/* Length of the well-formed sequence at `bytes`, or 0. */
static size_t
utf8_sequence (const unsigned char *bytes, size_t len)
{
    static const struct {
        unsigned char first, last, second_min, second_max;
        size_t length;
    } forms[] = {
        { 0x00, 0x7f, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
        { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
        { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (bytes[0] < forms[i].first || bytes[0] > forms[i].last)
            continue;
        if (forms[i].length > len)
            return 0;
        if (forms[i].length > 1 &&
            (bytes[1] < forms[i].second_min || bytes[1] > forms[i].second_max))
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((bytes[k] & 0xc0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

bool
mur_utf8_valid (const char *bytes, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t step = utf8_sequence ((const unsigned char *)bytes + i, len - i);
        if (step == 0)
            return false;
        i += step;
    }
    return true;
}

size_t
mur_utf8_prefix (const char *bytes, size_t len, size_t limit)
{
    if (len <= limit)
        return len;
    size_t end = limit;
    while (end > 0 && ((unsigned char)bytes[end] & 0xc0) == 0x80)
        end--;
    return end;
}

void
mur_text_json_bytes (struct mur_text *text, const char *bytes, size_t len)
{
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    mur_text_add (text, "\"", 1);
    for (size_t i = 0; i < len;) {
        size_t step = utf8_sequence ((const unsigned char *)bytes + i, len - i);
        const char *name = NULL;
        for (const char *pair = named; *pair != '\0' && name == NULL; pair += 2)
            if (bytes[i] == *pair)
                name = pair + 1;
        if (step == 0)
            mur_text_puts (text, "\\ufffd");
        else if (name != NULL)
            mur_text_printf (text, "\\%c", *name);
        else if ((unsigned char)bytes[i] < 0x20)
            mur_text_printf (text, "\\u%04x", (unsigned)bytes[i]);
        else
            mur_text_add (text, bytes + i, step);
        i += step == 0 ? 1 : step;
    }
    mur_text_add (text, "\"", 1);
}

void
mur_text_json (struct mur_text *text, const char *string)
{
    mur_text_json_bytes (text, string, strlen (string));
}

static char *
put_utf8 (char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

static bool
is_character (uint32_t code)
{
    return code != 0 && code < 0x110000 && (code < 0xd800 || code >= 0xe000);
}

void
mur_text_character (struct mur_text *text, uint32_t code)
{
    char bytes[4];
    char *end = put_utf8 (bytes, is_character (code) ? code : 0xfffd);
    mur_text_add (text, bytes, (size_t)(end - bytes));
}

void
mur_text_utf8 (struct mur_text *text, const char *bytes, size_t len)
{
    for (size_t i = 0, from = 0; i <= len; i++) {
        size_t step = i < len ? utf8_sequence ((const unsigned char *)bytes + i, len - i) : 0;
        if (step > 0) {
            i += step - 1;
            continue;
        }
        mur_text_add (text, bytes + from, i - from);
        if (i < len)
            mur_text_puts (text, "\xef\xbf\xbd");
        from = i + 1;
    }
}

/* --- JSON out --- */

void
mur_text_comma (struct mur_text *text)
{
    if (text->len > 0 && strchr ("{[:,", text->data[text->len - 1]) == NULL)
        mur_text_puts (text, ",");
}

void
mur_text_key (struct mur_text *text, const char *key)
{
    mur_text_comma (text);
    mur_text_json (text, key);
    mur_text_puts (text, ":");
}

void
mur_text_string (struct mur_text *text, const char *key, const char *string)
{
    if (string == NULL)
        return;
    mur_text_key (text, key);
    mur_text_json (text, string);
}

void
mur_text_node (struct mur_text *text, const char *key, const struct mur_json *json, mur_node node)
{
    size_t len;
    const char *raw = mur_json_raw (json, node, &len);
    if (len == 0)
        return;
    if (key != NULL)
        mur_text_key (text, key);
    mur_text_add (text, raw, len);
}

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

/* Reads the escape whose letter is at *from; a lone surrogate becomes U+FFFD, and so does a NUL,
 * which would end the C string. */
static char *
put_escape (char *to, const char **from, const char *end)
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
    return put_utf8 (to, is_character (code) ? code : 0xfffd);
}

char *
mur_json_text (const struct mur_json *json, mur_node node)
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
        to = put_escape (to, &from, end);
    }
    *to = '\0';
    return text;
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
    return errno != 0 || end != json->text + t->end ? fallback : value;
}

bool
mur_json_bool (const struct mur_json *json, mur_node node, bool fallback)
{
    if (mur_json_kind (json, node) != MUR_JSON_BOOL)
        return fallback;
    return json->text[token (json, node)->start] == 't';
}
