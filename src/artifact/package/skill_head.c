/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/package/skill_head.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/text.h"
#include "manifest/text/yaml.h"
#include "manifest/text/yaml_tree.h"

#include <ctype.h>
#include <string.h>

#define KEY "description"

struct line {
    const char *text;
    size_t len; /* without the line's end and the blanks before it */
};

/* The line at <at>, which moves behind it. False at the end. */
static bool
next_line (const char **at, struct line *line)
{
    if (! **at)
        return false;
    line->text = *at;
    line->len = strcspn (*at, "\r\n");
    *at += line->len;
    *at += **at == '\r';
    *at += **at == '\n';
    while (line->len && strchr (" \t", line->text[line->len - 1]))
        line->len--;
    return true;
}

static bool
is_line (struct line line, const char *text)
{
    return line.len == strlen (text) && memcmp (line.text, text, line.len) == 0;
}

/* Comments of a page, such as a licence, stand before anything. */
static const char *
skip_comments (const char *at)
{
    for (;;) {
        at += strspn (at, " \t\r\n");
        const char *end = str_starts (at, "<!--") ? strstr (at, "-->") : NULL;
        if (! end)
            return at;
        at = end + 3;
    }
}

/* A head that is not ended goes as far as its lines look like keys. */
static bool
is_body (struct line line)
{
    return ! line.len || line.text[0] == '#' ||
           (! strchr (" \t", line.text[0]) && ! memchr (line.text, ':', line.len) &&
            ! memchr (line.text, '=', line.len));
}

/* The head between its fences, of YAML or of TOML; false, <body> being all, when there is none. */
static bool
find_head (const char *text, struct line *head, const char **body)
{
    const char *at = skip_comments (text);
    struct line line;
    *body = at;
    bool is_open = next_line (&at, &line), is_toml = is_open && is_line (line, "+++");
    if (! is_toml && ! (is_open && is_line (line, "---")))
        return false;
    const char *start = at, *behind = NULL;
    for (const char *before = at; next_line (&at, &line); before = at) {
        if (! behind && is_body (line))
            behind = before;
        bool is_end =
            is_toml ? is_line (line, "+++") : is_line (line, "---") || is_line (line, "...");
        if (! is_end)
            continue;
        *head = (struct line){ start, (size_t)(before - start) };
        *body = at;
        return true;
    }
    behind = behind ? behind : at;
    *head = (struct line){ start, (size_t)(behind - start) };
    *body = *behind ? behind : start;
    return behind > start;
}

/* Appends words, one blank between any two. */
static void
put_words (struct buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool is_blank = text[i] && strchr (" \t\r\n", text[i]);
        if (is_blank)
            continue;
        bool is_start = i == 0 || (text[i - 1] && strchr (" \t\r\n", text[i - 1]));
        if (is_start && out->len)
            buf_putc (out, ' ');
        buf_putc (out, text[i]);
    }
}

/* --- a head that is YAML --- */

static void
put_node (struct buf *out, const struct yaml_node *node)
{
    const char *text = node ? yaml_text (node) : NULL;
    if (text)
        put_words (out, text, strlen (text));
    for (uint32_t i = 0; node && node->kind == YAML_LIST && i < node->len; i++)
        put_node (out, node->items[i]);
}

static const struct yaml_node *
find_key (const struct yaml_node *map)
{
    for (uint32_t i = 0; map->kind == YAML_MAP && i < map->len; i++) {
        const char *key = yaml_text (map->pairs[i].key);
        if (key && strcasecmp (key, KEY) == 0)
            return map->pairs[i].value;
    }
    return NULL;
}

static bool
from_yaml (struct line head, struct buf *out)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct yaml_node *root = yaml_parse (arena, head.text, head.len, "SKILL.md", E_MAN_002, NULL);
    if (! root || root->kind != YAML_MAP)
        return false;
    put_node (out, find_key (root));
    return true;
}

/* --- a head that is none --- */

/* The value of a line "description: ..." or, as TOML has it, "description = ...", in any case;
 * false when it is another line. */
static bool
take_key (struct line line, struct line *value)
{
    size_t key_len = strlen (KEY);
    if (line.len <= key_len || strncasecmp (line.text, KEY, key_len) != 0)
        return false;
    const char *at = line.text + key_len;
    at += strspn (at, " \t");
    if (*at != ':' && *at != '=')
        return false;
    at++;
    at += strspn (at, " \t");
    size_t taken = (size_t)(at - line.text);
    *value = taken > line.len ? (struct line){ line.text + line.len, 0 }
                              : (struct line){ at, line.len - taken };
    return true;
}

/* ">", "|-" and such say only how the lines below are written. */
static bool
is_block_mark (struct line value)
{
    return value.len && strchr (">|", value.text[0]) &&
           strspn (value.text + 1, "+-0123456789") >= value.len - 1;
}

static void
from_lines (struct line head, struct buf *out)
{
    _cleanup_free_ char *text = x_strndup (head.text, head.len);
    const char *at = text;
    struct line line, value = { 0 };
    bool is_found = false;
    while (! is_found && next_line (&at, &line))
        is_found = take_key (line, &value);
    if (! is_found)
        return;
    if (! is_block_mark (value))
        put_words (out, value.text, value.len);
    while (next_line (&at, &line) && (! line.len || strchr (" \t", line.text[0])))
        put_words (out, line.text, line.len);
    char *words = out->data;
    if (out->len >= 2 && strchr ("\"'", words[0]) && words[out->len - 1] == words[0]) {
        memmove (words, words + 1, out->len - 2);
        buf_truncate (out, out->len - 2);
    }
}

/* --- the body --- */

static bool
has_word (struct line line)
{
    for (size_t i = 0; i < line.len; i++)
        if (isalnum ((unsigned char)line.text[i]) || (unsigned char)line.text[i] >= 0x80)
            return true;
    return false;
}

static void
from_body (const char *body, struct buf *out)
{
    struct line line;
    while (next_line (&body, &line))
        if (has_word (line)) {
            put_words (out, line.text, line.len);
            return;
        }
}

char *
skill_head_description (const char *text, size_t len)
{
    _cleanup_buf_ struct buf plain = { 0 };
    buf_append (&plain, text, len);
    text_form_normalise (&plain);
    if (! plain.len || ! utf8_is_valid (plain.data, plain.len))
        return NULL;
    _cleanup_buf_ struct buf out = { 0 };
    struct line head;
    const char *body;
    if (find_head (plain.data, &head, &body) && ! from_yaml (head, &out))
        from_lines (head, &out);
    if (! out.len)
        from_body (body, &out);
    return out.len ? buf_steal (&out) : NULL;
}
