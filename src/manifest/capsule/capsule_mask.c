/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/capsule/capsule_mask.h"

#include "base/alloc.h"

static int
compare_starts (const void *x, const void *y)
{
    const struct yaml_node *a = *(const struct yaml_node *const *)x;
    const struct yaml_node *b = *(const struct yaml_node *const *)y;
    return (a->start > b->start) - (a->start < b->start);
}

/* Byte offset of a character offset, counting on from a known pair. */
static size_t
advance (const char *text, size_t len, size_t byte, uint32_t *at, uint32_t to)
{
    for (; *at < to && byte < len; (*at)++)
        do
            byte++;
        while (byte < len && ((unsigned char)text[byte] & 0xc0) == 0x80);
    return byte;
}

void
capsule_manifest_mask (const struct capsule_manifest *m, const char *text, size_t len,
                       struct buf *out)
{
    _cleanup_free_ const struct yaml_node **literals =
        x_new_array (const struct yaml_node *, m->artifacts.len + 1);
    size_t count = 0;
    for (size_t i = 0; i < m->artifacts.len; i++) {
        const struct gateway_block *g = m->artifacts.items[i].gateway;
        if (g && g->has_literal)
            literals[count++] = g->written_api_key;
    }
    qsort (literals, count, sizeof (struct yaml_node *), compare_starts);
    size_t byte = 0;
    uint32_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (i && literals[i] == literals[i - 1])
            continue; /* one anchored text, used twice */
        size_t from = advance (text, len, byte, &at, literals[i]->start);
        size_t to = advance (text, len, from, &at, literals[i]->end);
        buf_append (out, text + byte, from - byte);
        buf_puts (out, "\"***\"");
        if (to > from && text[to - 1] == '\n')
            buf_putc (out, '\n'); /* a block scalar ends with its line */
        byte = to;
    }
    buf_append (out, text + byte, len - byte);
}
