/* SPDX-License-Identifier: Apache-2.0
 *
 * The table is one file, mapped read-only and shared by every process: a header, an open-addressed
 * hash of token numbers, the token texts, and the character classes of Unicode that the cutting
 * needs. Ranks are token numbers.
 */
#include "base/tokens.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/share.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define NO_TOKEN UINT32_MAX

struct header {
    char magic[8]; /* "MURTOK1\n" */
    uint32_t token_count;
    uint32_t slot_count; /* a power of two */
    uint32_t letter_range_count, number_range_count, blank_range_count;
    uint32_t text_bytes;
};

struct range {
    uint32_t first, last;
};

static struct {
    const uint32_t *slots;   /* token number + 1, 0 = empty */
    const uint32_t *offsets; /* token_count + 1 offsets into texts */
    const struct range *letters, *numbers, *blanks;
    const char *texts;
    struct header head;
    _Atomic (const char *) map; /* the whole file; set last */
    size_t map_len;
} table;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool
is_whole (const struct header *h, size_t size)
{
    size_t words =
        (size_t)h->slot_count + h->token_count + 1 +
        2 * ((size_t)h->letter_range_count + h->number_range_count + h->blank_range_count);
    return memcmp (h->magic, "MURTOK1\n", 8) == 0 && h->slot_count &&
           (h->slot_count & (h->slot_count - 1)) == 0 &&
           size == sizeof *h + words * sizeof (uint32_t) + h->text_bytes;
}

static void
map_table (void)
{
    _cleanup_free_ char *path = share_path ("cl100k.tokens");
    _cleanup_close_ int fd = path ? open (path, O_RDONLY | O_CLOEXEC) : -1;
    struct stat st;
    if (fd < 0 || fstat (fd, &st) < 0 || (size_t)st.st_size < sizeof (struct header))
        return;
    const char *map = mmap (NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return;
    memcpy (&table.head, map, sizeof table.head);
    if (! is_whole (&table.head, (size_t)st.st_size)) {
        munmap ((void *)(uintptr_t)map, (size_t)st.st_size);
        return;
    }
    const uint32_t *at = (const uint32_t *)(const void *)(map + sizeof (struct header));
    table.slots = at;
    table.offsets = at += table.head.slot_count;
    table.letters = (const struct range *)(const void *)(at += table.head.token_count + 1);
    table.numbers = table.letters + table.head.letter_range_count;
    table.blanks = table.numbers + table.head.number_range_count;
    table.texts = (const char *)(table.blanks + table.head.blank_range_count);
    table.map_len = (size_t)st.st_size;
    atomic_store (&table.map, map);
}

bool
tokens_are_exact (void)
{
    pthread_once (&once, map_table);
    return table.slots != NULL;
}

void
tokens_release_idle (void)
{
    const char *map = atomic_load (&table.map);
    if (map)
        (void)madvise ((void *)(uintptr_t)map, table.map_len, MADV_DONTNEED);
}

static uint32_t
hash_bytes (const char *s, size_t len)
{
    uint32_t h = 2166136261U;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)s[i]) * 16777619U;
    return h ^ h >> 15;
}

/* The rank of exactly these bytes, or NO_TOKEN. */
static uint32_t
rank_of (const char *s, size_t len)
{
    uint32_t mask = table.head.slot_count - 1;
    for (uint32_t slot = hash_bytes (s, len) & mask; table.slots[slot]; slot = (slot + 1) & mask) {
        uint32_t token = table.slots[slot] - 1;
        uint32_t start = table.offsets[token];
        if (table.offsets[token + 1] - start == len && memcmp (table.texts + start, s, len) == 0)
            return token;
    }
    return NO_TOKEN;
}

/* --- merging one piece --- */

/* A part of the piece under merge. Parts form a list by index; rank is that of this part joined
 * with the next. */
struct part {
    uint32_t start, end;
    uint32_t prev, next; /* indices, NO_TOKEN at the ends */
    uint32_t rank;       /* NO_TOKEN when the pair is no token */
};

/* A candidate merge: lowest rank first, leftmost first. Stale ones are recognised by their rank. */
struct candidate {
    uint32_t rank, part, end; /* end: of the pair, so a pair that grew since is stale */
};

struct heap {
    struct candidate *items;
    size_t len, cap;
};

static bool
comes_first (struct candidate a, struct candidate b)
{
    return a.rank < b.rank || (a.rank == b.rank && a.part < b.part);
}

static void
heap_push (struct heap *h, struct candidate c)
{
    x_grow (h->items, h->len, h->cap);
    size_t i = h->len++;
    while (i > 0 && comes_first (c, h->items[(i - 1) / 2])) {
        h->items[i] = h->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->items[i] = c;
}

static struct candidate
heap_pop (struct heap *h)
{
    struct candidate top = h->items[0], last = h->items[--h->len];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= h->len)
            break;
        if (child + 1 < h->len && comes_first (h->items[child + 1], h->items[child]))
            child++;
        if (! comes_first (h->items[child], last))
            break;
        h->items[i] = h->items[child];
        i = child;
    }
    h->items[i] = last;
    return top;
}

static void
rate_pair (struct heap *h, const char *s, struct part *parts, uint32_t i)
{
    uint32_t next = parts[i].next;
    parts[i].rank = next == NO_TOKEN
                        ? NO_TOKEN
                        : rank_of (s + parts[i].start, parts[next].end - parts[i].start);
    if (parts[i].rank != NO_TOKEN)
        heap_push (h, (struct candidate){ parts[i].rank, i, parts[next].end });
}

static uint64_t
count_piece (const char *s, size_t len)
{
    if (len == 1 || rank_of (s, len) != NO_TOKEN)
        return 1;
    struct part on_stack[64], *parts = on_stack;
    _cleanup_free_ struct part *on_heap = NULL;
    if (len > ARRAY_LEN (on_stack))
        parts = on_heap = x_new_array (struct part, len);
    struct heap heap = { 0 };
    for (uint32_t i = 0; i < len; i++)
        parts[i] = (struct part){ i, i + 1, i ? i - 1 : NO_TOKEN, i + 1 < len ? i + 1 : NO_TOKEN,
                                  NO_TOKEN };
    for (uint32_t i = 0; i < len; i++)
        rate_pair (&heap, s, parts, i);
    uint64_t count = len;
    while (heap.len) {
        struct candidate c = heap_pop (&heap);
        uint32_t next = parts[c.part].next;
        if (parts[c.part].rank != c.rank || next == NO_TOKEN || parts[next].end != c.end)
            continue;
        parts[c.part].end = parts[next].end;
        parts[c.part].next = parts[next].next;
        parts[next].rank = NO_TOKEN;
        if (parts[c.part].next != NO_TOKEN)
            parts[parts[c.part].next].prev = c.part;
        count--;
        rate_pair (&heap, s, parts, c.part);
        if (parts[c.part].prev != NO_TOKEN)
            rate_pair (&heap, s, parts, parts[c.part].prev);
    }
    free (heap.items);
    return count;
}

/* --- cutting text into pieces --- */

enum class { LETTER, NUMBER, BLANK, OTHER };

static bool
in_ranges (const struct range *ranges, uint32_t count, uint32_t c)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (c < ranges[middle].first)
            high = middle;
        else if (c > ranges[middle].last)
            low = middle + 1;
        else
            return true;
    }
    return false;
}

static enum class classify (uint32_t c) {
    if (c < 0x80){ if ((c | 32) >= 'a' && (c | 32) <= 'z') return LETTER;
                   if (c >= '0' && c <= '9') return NUMBER;
                   return c == ' ' || (c >= '\t' && c <= '\r') ? BLANK : OTHER; }
if (in_ranges (table.letters, table.head.letter_range_count, c)) return LETTER;
if (in_ranges (table.numbers, table.head.number_range_count, c))
    return NUMBER;
return in_ranges (table.blanks, table.head.blank_range_count, c) ? BLANK : OTHER;
}

/* The text being cut. Malformed bytes count as one character each, of class OTHER. */
struct text {
    const char *s;
    size_t len;
};

struct character {
    uint32_t code;
    size_t len; /* bytes; 0 at the end of the text */
    enum class class;
};

static struct character
character_at (struct text t, size_t at)
{
    if (at >= t.len)
        return (struct character){ 0, 0, OTHER };
    const unsigned char *p = (const unsigned char *)t.s + at;
    if (p[0] < 0x80)
        return (struct character){ p[0], 1, classify (p[0]) };
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (len > t.len - at || ! utf8_is_valid (t.s + at, len))
        return (struct character){ 0xfffd, 1, OTHER };
    uint32_t code = p[0] & (0xffU >> (len + 1));
    for (size_t i = 1; i < len; i++)
        code = code << 6 | (p[i] & 0x3f);
    return (struct character){ code, len, classify (code) };
}

static bool
is_newline (struct character c)
{
    return c.len && (c.code == '\n' || c.code == '\r');
}

static size_t
skip_class (struct text t, size_t at, enum class class)
{
    for (struct character c; (c = character_at (t, at)).len && c.class == class;)
        at += c.len;
    return at;
}

/* 's 't 're 've 'm 'll 'd, in any case. The long s folds to s, as the pattern's engine has it. */
static size_t
contraction (struct text t, size_t at)
{
    if (t.s[at] != '\'')
        return 0;
    size_t left = t.len - at;
    char a = left > 1 ? (char)(t.s[at + 1] | 32) : 0, b = left > 2 ? (char)(t.s[at + 2] | 32) : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l'))
        return 3;
    return left > 2 && memcmp (t.s + at + 1, "\xc5\xbf", 2) == 0 ? 3 : 0;
}

/* Up to three digits. */
static size_t
number (struct text t, size_t at)
{
    size_t end = at;
    for (int i = 0; i < 3; i++) {
        struct character c = character_at (t, end);
        if (! c.len || c.class != NUMBER)
            break;
        end += c.len;
    }
    return end - at;
}

/* An optional space, a run of anything but blanks, letters and numbers, then newlines. */
static size_t
punctuation (struct text t, size_t at)
{
    size_t start = at + (t.s[at] == ' ' ? 1 : 0);
    size_t end = skip_class (t, start, OTHER);
    if (end == start)
        return 0;
    while (is_newline (character_at (t, end)))
        end++;
    return end - at;
}

/* A run of blanks: up to its last newline when it has one, else all but the last blank when a word
 * follows. */
static size_t
blanks (struct text t, size_t at)
{
    size_t end = at, last_start = at, after_newline = at;
    for (struct character c; (c = character_at (t, end)).len && c.class == BLANK;) {
        last_start = end;
        end += c.len;
        if (is_newline (c))
            after_newline = end;
    }
    if (after_newline > at)
        return after_newline - at;
    return end < t.len && last_start > at ? last_start - at : end - at;
}

/* Bytes of the piece that starts at <at> (> 0). */
static size_t
piece_len (struct text t, size_t at)
{
    size_t len = contraction (t, at);
    if (len)
        return len;
    struct character c = character_at (t, at);
    size_t letters = c.class == LETTER || c.class == NUMBER || is_newline (c) ? at : at + c.len;
    size_t end = skip_class (t, letters, LETTER);
    if (end > letters)
        return end - at;
    if (c.class == NUMBER)
        return number (t, at);
    len = punctuation (t, at);
    return len ? len : blanks (t, at);
}

static uint64_t
count_ordinary (const char *s, size_t len)
{
    struct text t = { s, len };
    uint64_t count = 0;
    for (size_t at = 0; at < len;) {
        size_t piece = piece_len (t, at);
        count += count_piece (s + at, piece);
        at += piece;
    }
    return count;
}

/* Bytes of the special token at <s>, or 0. */
static size_t
special_len (const char *s, size_t left)
{
    static const char *const specials[] = {
        "<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|endofprompt|>",
    };
    for (size_t i = 0; i < ARRAY_LEN (specials); i++) {
        size_t len = strlen (specials[i]);
        if (len <= left && memcmp (s, specials[i], len) == 0)
            return len;
    }
    return 0;
}

uint64_t
tokens_count (const char *text, size_t len)
{
    if (! tokens_are_exact ())
        return (len + 3) / 4;
    uint64_t count = 0;
    size_t start = 0;
    for (size_t at = 0; at < len;) {
        const char *bar = memmem (text + at, len - at, "<|", 2);
        if (! bar)
            break;
        at = (size_t)(bar - text);
        size_t special = special_len (bar, len - at);
        if (special) {
            count += count_ordinary (text + start, at - start) + 1;
            start = at + special;
        }
        at += special ? special : 2;
    }
    return count + count_ordinary (text + start, len - start);
}
