/* SPDX-License-Identifier: Apache-2.0 */
#include "session/conversation/fence.h"

#include "base/digest.h"

#include <string.h>
#include <strings.h>

static const char marker[] = "untrusted-content";
static const char end_mark[] = "</untrusted-content>";
static const char infix[] = "!MURMUR-NEUTRALISED!";

struct fence_word
fence_word_of (const void *key, size_t key_len, const char *capsule)
{
    struct fence_word word;
    unsigned char digest[32];
    hmac_sha256 (key, key_len, capsule, strlen (capsule), digest);
    for (size_t i = 0; i < FENCE_WORD_LEN; i++)
        word.text[i] = (char)('0' + digest[i] % 10);
    word.text[FENCE_WORD_LEN] = 0;
    return word;
}

/* True when a marker begins at s, which points at '<'. */
static bool
is_marker (const char *s, size_t left)
{
    s++, left--;
    if (left && *s == '/')
        s++, left--;
    return left >= sizeof (marker) - 1 && strncasecmp (s, marker, sizeof (marker) - 1) == 0;
}

static void
append_end (struct buf *out, const struct fence_word *word)
{
    buf_puts (out, end_mark);
    if (word->text[0])
        buf_printf (out, " %s", word->text);
}

/* The bytes before the next marker or the word in content that came from outside. */
static size_t
clean_len (const char *content, size_t len, const struct fence_word *word)
{
    const char *leaked = word->text[0] ? memmem (content, len, word->text, FENCE_WORD_LEN) : NULL;
    size_t limit = leaked ? (size_t)(leaked - content) : len;
    for (const char *at = content; (at = memchr (at, '<', limit - (size_t)(at - content))); at++)
        if (is_marker (at, len - (size_t)(at - content)))
            return (size_t)(at + 1 - content);
    return limit;
}

void
fence_append (struct buf *out, const struct fence_word *word, const char *source,
              const char *content, size_t len)
{
    buf_reserve (out, len + strlen (source) + 64);
    buf_puts (out, "<untrusted-content source=");
    for (const char *s = source; *s; s++)
        buf_putc (out, *s == '>' ? '_' : *s == '\n' || *s == '\r' ? ' ' : *s);
    buf_puts (out, ">\n");
    for (size_t clean; len && (clean = clean_len (content, len, word)) < len;) {
        /* One byte of what follows goes with it, so that the next look is beyond it. */
        buf_append (out, content, clean);
        buf_puts (out, infix);
        buf_putc (out, content[clean]);
        content += clean + 1;
        len -= clean + 1;
    }
    buf_append (out, content, len);
    buf_putc (out, '\n');
    append_end (out, word);
}

/* The length of " 01234567" at s, 0 when it is none. */
static size_t
word_len (const char *s)
{
    bool is_word = *s == ' ' && strspn (s + 1, "0123456789") == FENCE_WORD_LEN;
    return is_word ? 1 + FENCE_WORD_LEN : 0;
}

void
fence_renew (struct buf *out, const struct fence_word *word, const char *fenced)
{
    for (const char *at; (at = strstr (fenced, end_mark)); fenced = at + word_len (at)) {
        buf_append (out, fenced, (size_t)(at - fenced));
        append_end (out, word);
        at += sizeof end_mark - 1;
    }
    buf_puts (out, fenced);
}
