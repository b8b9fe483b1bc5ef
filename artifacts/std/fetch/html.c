/* SPDX-License-Identifier: Apache-2.0
 *
 * HTML to text for std/fetch. A scanner, not a parser: it never builds a tree and takes any bytes.
 *
 * What it knows of each element is one row of a table. Always true: the output grows by at most
 * what the page holds plus its links, and nesting costs no memory.
 */
#include "html.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HREF_LIMIT_BYTES 2000
#define LIST_LIMIT_DEPTH 16

enum effect {
    EFFECT_BLOCK,   /* begins and ends a line, or a paragraph */
    EFFECT_HEADING, /* a paragraph with # in front */
    EFFECT_ITEM,
    EFFECT_LIST,
    EFFECT_CELL,
    EFFECT_BREAK,
    EFFECT_RULE,
    EFFECT_PRE,
    EFFECT_LINK,
    EFFECT_IMAGE,
    EFFECT_TITLE,
    EFFECT_SKIP, /* nothing in it is for reading */
};

static const struct element {
    const char *name;
    enum effect effect;
    unsigned char value; /* newlines around it; a heading's level; 1 for a list with numbers */
} elements[] = {
    { "p", EFFECT_BLOCK, 2 },          { "div", EFFECT_BLOCK, 1 },
    { "section", EFFECT_BLOCK, 1 },    { "article", EFFECT_BLOCK, 2 },
    { "header", EFFECT_BLOCK, 1 },     { "footer", EFFECT_BLOCK, 1 },
    { "main", EFFECT_BLOCK, 1 },       { "nav", EFFECT_BLOCK, 1 },
    { "aside", EFFECT_BLOCK, 1 },      { "form", EFFECT_BLOCK, 1 },
    { "fieldset", EFFECT_BLOCK, 1 },   { "figure", EFFECT_BLOCK, 1 },
    { "figcaption", EFFECT_BLOCK, 1 }, { "address", EFFECT_BLOCK, 1 },
    { "details", EFFECT_BLOCK, 1 },    { "summary", EFFECT_BLOCK, 1 },
    { "blockquote", EFFECT_BLOCK, 2 }, { "table", EFFECT_BLOCK, 2 },
    { "tr", EFFECT_BLOCK, 1 },         { "dl", EFFECT_BLOCK, 2 },
    { "dt", EFFECT_BLOCK, 1 },         { "dd", EFFECT_BLOCK, 1 },
    { "option", EFFECT_BLOCK, 1 },     { "body", EFFECT_BLOCK, 1 },
    { "h1", EFFECT_HEADING, 1 },       { "h2", EFFECT_HEADING, 2 },
    { "h3", EFFECT_HEADING, 3 },       { "h4", EFFECT_HEADING, 4 },
    { "h5", EFFECT_HEADING, 5 },       { "h6", EFFECT_HEADING, 6 },
    { "li", EFFECT_ITEM, 0 },          { "ul", EFFECT_LIST, 0 },
    { "ol", EFFECT_LIST, 1 },          { "td", EFFECT_CELL, 0 },
    { "th", EFFECT_CELL, 0 },          { "br", EFFECT_BREAK, 0 },
    { "hr", EFFECT_RULE, 0 },          { "pre", EFFECT_PRE, 0 },
    { "a", EFFECT_LINK, 0 },           { "img", EFFECT_IMAGE, 0 },
    { "title", EFFECT_TITLE, 0 },      { "script", EFFECT_SKIP, 0 },
    { "style", EFFECT_SKIP, 0 },       { "template", EFFECT_SKIP, 0 },
    { "svg", EFFECT_SKIP, 0 },         { "iframe", EFFECT_SKIP, 0 },
    { "object", EFFECT_SKIP, 0 },      { "textarea", EFFECT_SKIP, 0 },
};

struct page {
    const char *at;
    const char *end;
    const char *base;
    struct mur_text *out;
    struct mur_text title;
    bool is_in_title;
    unsigned newlines; /* owed before the next character */
    bool owes_space;
    unsigned pre_depth;
    unsigned list_depth;
    unsigned counters[LIST_LIMIT_DEPTH]; /* of each list; 0: no numbers */
    char *href;                          /* of the link that is open */
    size_t link_start;
};

/* --- Characters --- */

uint32_t
windows_1252 (unsigned char byte)
{
    static const uint16_t codes[32] = {
        0x20ac, 0x81,   0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
        0x2039, 0x0152, 0x8d,   0x017d, 0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
        0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d,   0x017e, 0x0178,
    };
    return byte >= 0x80 && byte < 0xa0 ? codes[byte - 0x80] : byte;
}

/* Those of Latin 1, in order from U+00A0. */
static const char latin_names[] =
    "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn "
    "sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave "
    "Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml "
    "ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN "
    "szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave "
    "iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute "
    "ucirc uuml yacute thorn yuml ";

static const struct {
    const char *name;
    uint16_t code;
} other_names[] = {
    { "amp", '&' },       { "lt", '<' },        { "gt", '>' },        { "quot", '"' },
    { "apos", '\'' },     { "hellip", 0x2026 }, { "mdash", 0x2014 },  { "ndash", 0x2013 },
    { "lsquo", 0x2018 },  { "rsquo", 0x2019 },  { "ldquo", 0x201c },  { "rdquo", 0x201d },
    { "sbquo", 0x201a },  { "bdquo", 0x201e },  { "bull", 0x2022 },   { "trade", 0x2122 },
    { "euro", 0x20ac },   { "larr", 0x2190 },   { "uarr", 0x2191 },   { "rarr", 0x2192 },
    { "darr", 0x2193 },   { "minus", 0x2212 },  { "le", 0x2264 },     { "ge", 0x2265 },
    { "ne", 0x2260 },     { "infin", 0x221e },  { "asymp", 0x2248 },  { "radic", 0x221a },
    { "sum", 0x2211 },    { "pi", 0x03c0 },     { "alpha", 0x03b1 },  { "beta", 0x03b2 },
    { "gamma", 0x03b3 },  { "delta", 0x03b4 },  { "lambda", 0x03bb }, { "mu", 0x03bc },
    { "omega", 0x03c9 },  { "ensp", ' ' },      { "emsp", ' ' },      { "thinsp", ' ' },
    { "zwnj", 0x200c },   { "zwj", 0x200d },    { "check", 0x2713 },  { "prime", 0x2032 },
    { "lsaquo", 0x2039 }, { "rsaquo", 0x203a }, { "OElig", 0x0152 },  { "oelig", 0x0153 },
    { "dagger", 0x2020 }, { "permil", 0x2030 }, { "hearts", 0x2665 }, { "star", 0x2606 },
};

static uint32_t
named_character (const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (strlen (other_names[i].name) == len && memcmp (other_names[i].name, name, len) == 0)
            return other_names[i].code;
    uint32_t code = 0xa0;
    for (const char *from = latin_names; *from != '\0'; code++) {
        size_t name_len = strcspn (from, " ");
        if (name_len == len && memcmp (from, name, len) == 0)
            return code;
        from += name_len + 1;
    }
    return 0;
}

/* The character that `&...` at `at` means; its length goes to *used, 0 when it is none. */
static uint32_t
entity (const char *at, const char *end, size_t *used)
{
    const char *from = at + 1;
    uint32_t code = 0;
    *used = 0;
    if (from < end && *from == '#') {
        from++;
        int base = from < end && (*from == 'x' || *from == 'X') ? 16 : 10;
        from += base == 16;
        const char *digits = from;
        for (; from < end &&
               (base == 16 ? isxdigit ((unsigned char)*from) : isdigit ((unsigned char)*from));
             from++)
            if (code < 0x110000)
                code = code * (uint32_t)base + (uint32_t)(isdigit ((unsigned char)*from)
                                                              ? *from - '0'
                                                              : (*from | 0x20) - 'a' + 10);
        if (from == digits)
            return 0;
        code = code < 0x100 ? windows_1252 ((unsigned char)code) : code;
    } else {
        while (from < end && isalnum ((unsigned char)*from) && from - at < 12)
            from++;
        code = named_character (at + 1, (size_t)(from - at - 1));
        if (code == 0)
            return 0;
    }
    *used = (size_t)(from - at) + (from < end && *from == ';');
    return code == 0xa0 ? ' ' : code;
}

/* --- Writing --- */

static void
settle (struct page *p)
{
    if (p->out->len == 0)
        p->newlines = 0;
    else if (p->newlines > 0)
        p->owes_space = false;
    for (; p->newlines > 0; p->newlines--)
        mur_text_puts (p->out, "\n");
    if (p->owes_space && p->out->len > 0)
        mur_text_puts (p->out, " ");
    p->owes_space = false;
}

static void
owe_lines (struct page *p, unsigned count)
{
    if (p->newlines < count)
        p->newlines = count;
}

static void
put_code (struct page *p, uint32_t code)
{
    bool is_space = code == ' ' || code == '\t' || code == '\n' || code == '\r' || code == '\f';
    if (p->is_in_title) {
        if (! is_space)
            mur_text_character (&p->title, code);
        else if (p->title.len > 0 && p->title.data[p->title.len - 1] != ' ')
            mur_text_puts (&p->title, " ");
        return;
    }
    if (is_space && p->pre_depth == 0) {
        p->owes_space = true;
        return;
    }
    settle (p);
    mur_text_character (p->out, code);
}

static void
put_words (struct page *p, const char *words)
{
    settle (p);
    mur_text_puts (p->out, words);
}

/* --- Tags --- */

struct tag {
    const struct element *element; /* NULL: one that means nothing here */
    char name[16];
    bool is_end;
    bool is_closed; /* <.../> */
    const char *attributes;
    const char *attributes_end;
};

static const struct element *
element_of (const char *name)
{
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (strcmp (elements[i].name, name) == 0)
            return &elements[i];
    return NULL;
}

/* Reads the tag at p->at, which is a '<' before a letter or a slash, and moves behind it. A '>' in
 * quotes does not end it. */
static void
read_tag (struct page *p, struct tag *tag)
{
    const char *at = p->at + 1;
    *tag = (struct tag){ .is_end = *at == '/' };
    at += tag->is_end;
    size_t len = 0;
    for (; at < p->end && isalnum ((unsigned char)*at); at++)
        if (len + 1 < sizeof tag->name)
            tag->name[len++] = (char)tolower ((unsigned char)*at);
    tag->attributes = at;
    char quote = '\0';
    for (; at < p->end && (quote != '\0' || *at != '>'); at++) {
        if (quote == '\0' && (*at == '"' || *at == '\'') && at[-1] == '=')
            quote = *at;
        else if (*at == quote)
            quote = '\0';
    }
    tag->attributes_end = at;
    tag->is_closed = at > tag->attributes && at[-1] == '/';
    tag->element = element_of (tag->name);
    p->at = at < p->end ? at + 1 : at;
}

/* The value of an attribute with its entities resolved, or NULL. */
static char *
attribute (const struct tag *tag, const char *name)
{
    size_t name_len = strlen (name);
    const char *end = tag->attributes_end;
    for (const char *at = tag->attributes; at < end;) {
        while (at < end && (isspace ((unsigned char)*at) || *at == '/'))
            at++;
        const char *key = at;
        while (at < end && ! isspace ((unsigned char)*at) && *at != '=')
            at++;
        size_t key_len = (size_t)(at - key);
        while (at < end && isspace ((unsigned char)*at))
            at++;
        if (at >= end || *at != '=') {
            at += at < end && key_len == 0;
            continue;
        }
        at++;
        while (at < end && isspace ((unsigned char)*at))
            at++;
        char quote = at < end && (*at == '"' || *at == '\'') ? *at++ : '\0';
        const char *value = at;
        while (at < end && (quote != '\0' ? *at != quote : ! isspace ((unsigned char)*at)))
            at++;
        bool is_wanted = key_len == name_len && strncasecmp (key, name, name_len) == 0;
        struct mur_text text = { 0 };
        mur_text_puts (&text, "");
        for (const char *from = value; is_wanted && from < at;) {
            size_t used = 0;
            uint32_t code = *from == '&' ? entity (from, at, &used) : 0;
            if (used > 0)
                mur_text_character (&text, code);
            else
                mur_text_add (&text, from, 1);
            from += used > 0 ? used : 1;
        }
        if (is_wanted)
            return text.data;
        mur_text_free (&text);
        at += at < end && quote != '\0';
    }
    return NULL;
}

/* Moves behind the end tag of an element whose content is not for reading. */
static void
skip_content (struct page *p, const char *name)
{
    size_t len = strlen (name);
    while (p->at < p->end) {
        const char *open = memchr (p->at, '<', (size_t)(p->end - p->at));
        if (open == NULL || (size_t)(p->end - open) < len + 2) {
            p->at = p->end;
            return;
        }
        p->at = open + 1;
        if (*p->at == '/' && strncasecmp (p->at + 1, name, len) == 0) {
            const char *close = memchr (p->at, '>', (size_t)(p->end - p->at));
            p->at = close != NULL ? close + 1 : p->end;
            return;
        }
    }
}

/* --- Elements --- */

static void
open_item (struct page *p)
{
    char mark[16] = "- ";
    unsigned depth = p->list_depth < LIST_LIMIT_DEPTH ? p->list_depth : LIST_LIMIT_DEPTH;
    owe_lines (p, 1);
    settle (p);
    for (unsigned i = 1; i < depth; i++)
        mur_text_puts (p->out, "  ");
    if (depth > 0 && p->counters[depth - 1] > 0)
        mur_text_printf (p->out, "%u. ", p->counters[depth - 1]++);
    else
        mur_text_puts (p->out, mark);
}

static void
change_list (struct page *p, bool is_end, bool is_numbered)
{
    owe_lines (p, p->list_depth > (is_end ? 1 : 0) ? 1 : 2);
    if (is_end) {
        p->list_depth -= p->list_depth > 0;
        return;
    }
    if (p->list_depth < LIST_LIMIT_DEPTH)
        p->counters[p->list_depth] = is_numbered;
    p->list_depth++;
}

/* A link shows where it leads behind its words, unless it has none or leads nowhere. */
static void
close_link (struct page *p)
{
    if (p->href != NULL && p->out->len > p->link_start) {
        mur_text_printf (p->out, " <%s>", p->href);
    }
    free (p->href);
    p->href = NULL;
}

static void
open_link (struct page *p, const struct tag *tag)
{
    close_link (p);
    char *href = attribute (tag, "href");
    bool is_wanted =
        href != NULL && *href != '\0' && *href != '#' && strlen (href) < HREF_LIMIT_BYTES &&
        strncasecmp (href, "javascript:", 11) != 0 && strncasecmp (href, "data:", 5) != 0;
    p->href = is_wanted ? url_resolve (p->base, href) : NULL;
    settle (p);
    p->link_start = p->out->len;
    free (href);
}

static void
show_image (struct page *p, const struct tag *tag)
{
    char *words = attribute (tag, "alt");
    if (words != NULL && words[strspn (words, " \t\r\n")] != '\0') {
        put_words (p, "[image: ");
        mur_text_puts (p->out, words);
        mur_text_puts (p->out, "]");
    }
    free (words);
}

static void
take_element (struct page *p, const struct tag *tag)
{
    const struct element *element = tag->element;
    switch (element->effect) {
    case EFFECT_BLOCK:
        owe_lines (p, element->value);
        break;
    case EFFECT_HEADING:
        owe_lines (p, 2);
        if (! tag->is_end)
            put_words (p, &"###### "[6 - element->value]);
        break;
    case EFFECT_ITEM:
        if (tag->is_end)
            owe_lines (p, 1);
        else
            open_item (p);
        break;
    case EFFECT_LIST:
        change_list (p, tag->is_end, element->value == 1);
        break;
    case EFFECT_CELL:
        if (! tag->is_end && p->newlines == 0 && p->out->len > 0)
            put_words (p, " | ");
        p->owes_space = false;
        break;
    case EFFECT_BREAK:
        p->newlines++;
        break;
    case EFFECT_RULE:
        owe_lines (p, 2);
        put_words (p, "---");
        owe_lines (p, 2);
        break;
    case EFFECT_PRE:
        owe_lines (p, 2);
        p->owes_space = false;
        if (! tag->is_end)
            p->pre_depth++, settle (p);
        else if (p->pre_depth > 0)
            p->pre_depth--;
        break;
    case EFFECT_LINK:
        if (tag->is_end)
            close_link (p);
        else
            open_link (p, tag);
        break;
    case EFFECT_IMAGE:
        show_image (p, tag);
        break;
    case EFFECT_TITLE:
        p->is_in_title = ! tag->is_end && p->title.len == 0;
        break;
    case EFFECT_SKIP:
        if (! tag->is_end && ! tag->is_closed)
            skip_content (p, tag->name);
        break;
    }
}

/* --- The page --- */

/* Moves behind a comment, a declaration or a processing instruction. */
static void
skip_declaration (struct page *p)
{
    bool is_comment = p->end - p->at >= 4 && memcmp (p->at, "<!--", 4) == 0;
    const char *mark = is_comment ? "-->" : ">";
    size_t len = strlen (mark);
    for (p->at += is_comment ? 4 : 2; p->at < p->end; p->at++)
        if ((size_t)(p->end - p->at) >= len && memcmp (p->at, mark, len) == 0) {
            p->at += len;
            return;
        }
}

static void
take_character (struct page *p)
{
    size_t used = 0;
    uint32_t code = *p->at == '&' ? entity (p->at, p->end, &used) : 0;
    if (used > 0) {
        put_code (p, code);
        p->at += used;
        return;
    }
    unsigned char byte = (unsigned char)*p->at;
    size_t len = 1;
    if (byte >= 0xc0)
        while (p->at + len < p->end && ((unsigned char)p->at[len] & 0xc0) == 0x80)
            len++;
    if (byte < 0x80) {
        put_code (p, byte);
    } else if (p->is_in_title) {
        mur_text_add (&p->title, p->at, len);
    } else {
        settle (p);
        mur_text_add (p->out, p->at, len);
    }
    p->at += len;
}

void
html_to_text (const char *html, size_t len, const char *base, struct mur_text *text)
{
    struct page page = { .at = html, .end = html + len, .base = base, .out = text };
    struct mur_text body = { 0 };
    page.out = &body;
    while (page.at < page.end) {
        bool has_next = page.at + 1 < page.end;
        if (*page.at != '<' || ! has_next) {
            take_character (&page);
        } else if (page.at[1] == '!' || page.at[1] == '?') {
            skip_declaration (&page);
        } else if (isalpha ((unsigned char)page.at[1]) || page.at[1] == '/') {
            struct tag tag;
            read_tag (&page, &tag);
            if (tag.element != NULL)
                take_element (&page, &tag);
        } else {
            take_character (&page);
        }
    }
    close_link (&page);
    while (page.title.len > 0 && page.title.data[page.title.len - 1] == ' ')
        page.title.data[--page.title.len] = '\0';
    if (page.title.len > 0)
        mur_text_printf (text, "%s\n\n", page.title.data);
    mur_text_add (text, body.data, body.len);
    if (text->len > 0 && text->data[text->len - 1] != '\n')
        mur_text_puts (text, "\n");
    mur_text_free (&body);
    mur_text_free (&page.title);
}

/* --- References --- */

char *
url_resolve (const char *base, const char *reference)
{
    while (isspace ((unsigned char)*reference))
        reference++;
    size_t scheme_len =
        strspn (reference, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    if (scheme_len > 0 && reference[scheme_len] == ':')
        return mur_format ("%s", reference);
    const char *host = strstr (base, "://");
    host = host != NULL ? host + 3 : base;
    if (strncmp (reference, "//", 2) == 0)
        return mur_format ("%.*s%s", (int)(host - base) - 2, base, reference);
    size_t root_len = (size_t)(host - base) + strcspn (host, "/?#");
    if (*reference == '/')
        return mur_format ("%.*s%s", (int)root_len, base, reference);
    size_t path_len = root_len + strcspn (base + root_len, "?#");
    if (*reference == '?' || *reference == '\0')
        return mur_format ("%.*s%s", (int)path_len, base, reference);
    while (path_len > root_len && base[path_len - 1] != '/')
        path_len--;
    while (strncmp (reference, "./", 2) == 0)
        reference += 2;
    while (strncmp (reference, "../", 3) == 0) {
        reference += 3;
        if (path_len > root_len + 1)
            path_len--;
        while (path_len > root_len && base[path_len - 1] != '/')
            path_len--;
    }
    return mur_format ("%.*s%s%s", (int)path_len, base, path_len == root_len ? "/" : "", reference);
}
