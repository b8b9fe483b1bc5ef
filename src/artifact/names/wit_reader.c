/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/names/wit_reader.h"

#include "base/alloc.h"

#include <string.h>

/* Names a component may carry, and bytes of its import and export sections together: far above any
 * real one, so that a hostile one stays small in memory. */
#define NAMES_MAX         10000
#define SECTION_BYTES_MAX (8u * 1024 * 1024)
#define PREAMBLE_LEN      8

enum section_id {
    SECTION_IMPORT = 10,
    SECTION_EXPORT = 11,
    SECTION_LAST = 12, /* values, the last id the format has */
};

/* A stretch of bytes being read; <is_bad> latches the first overrun. */
struct reader {
    const unsigned char *at, *end;
    bool is_bad;
};

static unsigned char
read_byte (struct reader *r)
{
    if (r->is_bad || r->at == r->end) {
        r->is_bad = true;
        return 0;
    }
    return *r->at++;
}

/* An unsigned LEB128 of at most 32 bits. */
static uint32_t
read_u32 (struct reader *r)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        unsigned char byte = read_byte (r);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (! (byte & 0x80)) {
            if (value > UINT32_MAX)
                break;
            return (uint32_t)value;
        }
    }
    r->is_bad = true;
    return 0;
}

/* A counted stretch inside this one. */
static struct reader
read_stretch (struct reader *r)
{
    uint32_t len = read_u32 (r);
    if (r->is_bad || len > (size_t)(r->end - r->at)) {
        r->is_bad = true;
        return (struct reader){ .at = r->end, .end = r->end, .is_bad = true };
    }
    struct reader inner = { .at = r->at, .end = r->at + len };
    r->at += len;
    return inner;
}

/* importname and exportname: a form byte and the text; form 2 adds a version suffix. */
static struct reader
read_name (struct reader *r)
{
    unsigned char form = read_byte (r);
    struct reader name = read_stretch (r);
    if (form == 2)
        read_stretch (r);
    if (form > 2 || ! utf8_is_valid ((const char *)name.at, (size_t)(name.end - name.at)))
        r->is_bad = true;
    return name;
}

/* valtype: a primitive (one byte) or an index. */
static void
read_valtype (struct reader *r)
{
    if (! r->is_bad && r->at < r->end && *r->at >= 0x64 && *r->at <= 0x7f)
        r->at++;
    else
        read_u32 (r);
}

/* typebound and valuebound: a form byte and what it bounds. */
static void
read_bound (struct reader *r, bool is_value)
{
    unsigned char form = read_byte (r);
    if (form == 0)
        read_u32 (r);
    else if (form != 1)
        r->is_bad = true;
    else if (is_value)
        read_valtype (r);
}

/* externdesc: what kind of thing a name stands for. Only its extent matters here. */
static void
read_externdesc (struct reader *r)
{
    switch (read_byte (r)) {
    case 0x00: /* core module */
        if (read_byte (r) != 0x11)
            r->is_bad = true;
        read_u32 (r);
        break;
    case 0x01: /* function */
    case 0x04: /* component */
    case 0x05: /* instance */
        read_u32 (r);
        break;
    case 0x02: /* value */
        read_bound (r, true);
        break;
    case 0x03: /* type */
        read_bound (r, false);
        break;
    default:
        r->is_bad = true;
    }
}

/* sortidx: what is exported. */
static void
read_sort_index (struct reader *r)
{
    if (read_byte (r) == 0x00)
        read_byte (r); /* a core sort has a second byte */
    read_u32 (r);
}

static void
keep_name (struct strv *names, const struct reader *name)
{
    size_t len = (size_t)(name->end - name->at);
    if (len > 0 && memchr (name->at, '/', len) && ! memchr (name->at, '\0', len))
        strv_take (names, x_strndup ((const char *)name->at, len));
}

/* Reads one import or export section to its last byte. */
static bool
read_names (struct reader *section, bool is_export, struct strv *names)
{
    uint32_t count = read_u32 (section);
    for (uint32_t i = 0; i < count && ! section->is_bad; i++) {
        struct reader name = read_name (section);
        if (is_export) {
            read_sort_index (section);
            unsigned char has_type = read_byte (section);
            if (has_type == 1)
                read_externdesc (section);
            else if (has_type != 0)
                section->is_bad = true;
        } else {
            read_externdesc (section);
        }
        if (! section->is_bad)
            keep_name (names, &name);
        if (names->len > NAMES_MAX)
            return false;
    }
    return ! section->is_bad && section->at == section->end;
}

static void
sort_and_dedup (struct strv *v)
{
    strv_sort (v);
    size_t kept = 0;
    for (size_t i = 0; i < v->len; i++) {
        if (kept > 0 && strcmp (v->items[kept - 1], v->items[i]) == 0)
            free (v->items[i]);
        else
            v->items[kept++] = v->items[i];
    }
    if (v->items)
        v->items[kept] = NULL;
    v->len = kept;
}

/* --- the stream of sections --- */

enum stream_state {
    STREAM_PREAMBLE, /* the first eight bytes */
    STREAM_ID,       /* between sections */
    STREAM_LENGTH,   /* inside a section's length */
    STREAM_KEEP,     /* inside an import or export section */
    STREAM_SKIP,     /* inside any other section */
    STREAM_MODULE,   /* a core module: nothing of it is looked at */
    STREAM_BAD,
};

struct wit_stream {
    enum stream_state state;
    unsigned char head[PREAMBLE_LEN];
    size_t head_len; /* of the preamble, or of the section's length so far */
    unsigned char id;
    uint64_t left;   /* bytes of the section still to come */
    struct buf body; /* of the section being kept */
    size_t kept;     /* bytes kept so far, all sections */
    struct wit_contracts contracts;
};

struct wit_stream *
wit_stream_new (void)
{
    return x_new0 (struct wit_stream);
}

void
wit_stream_free (struct wit_stream *s)
{
    buf_free (&s->body);
    wit_contracts_clear (&s->contracts);
    free (s);
}

static enum stream_state
judge_preamble (const unsigned char *head)
{
    static const unsigned char magic[4] = { 0x00, 0x61, 0x73, 0x6d };
    static const unsigned char module_version[4] = { 0x01, 0x00, 0x00, 0x00 };
    static const unsigned char component_version[4] = { 0x0d, 0x00, 0x01, 0x00 };
    if (memcmp (head, magic, 4) != 0)
        return STREAM_BAD;
    if (memcmp (head + 4, module_version, 4) == 0)
        return STREAM_MODULE;
    return memcmp (head + 4, component_version, 4) == 0 ? STREAM_ID : STREAM_BAD;
}

/* The section's last byte is there. */
static enum stream_state
close_section (struct wit_stream *s)
{
    if (s->state == STREAM_SKIP)
        return STREAM_ID;
    const unsigned char *bytes = (const unsigned char *)s->body.data;
    struct reader section = { .at = bytes, .end = bytes + s->body.len };
    bool is_export = s->id == SECTION_EXPORT;
    bool ok =
        read_names (&section, is_export, is_export ? &s->contracts.exports : &s->contracts.imports);
    buf_truncate (&s->body, 0);
    return ok ? STREAM_ID : STREAM_BAD;
}

/* The section's length is there. */
static enum stream_state
open_section (struct wit_stream *s)
{
    struct reader length = { .at = s->head, .end = s->head + s->head_len };
    s->left = read_u32 (&length);
    if (length.is_bad)
        return STREAM_BAD;
    bool is_kept = s->id == SECTION_IMPORT || s->id == SECTION_EXPORT;
    if (is_kept && s->left > SECTION_BYTES_MAX - s->kept)
        return STREAM_BAD;
    s->kept += is_kept ? s->left : 0;
    s->state = is_kept ? STREAM_KEEP : STREAM_SKIP;
    buf_reserve (&s->body, 1); /* an empty section has an address, too */
    return s->left ? s->state : close_section (s);
}

/* One byte of what is read byte by byte. */
static enum stream_state
take_byte (struct wit_stream *s, unsigned char byte)
{
    if (s->state == STREAM_ID) {
        s->id = byte;
        s->head_len = 0;
        return byte > SECTION_LAST ? STREAM_BAD : STREAM_LENGTH;
    }
    s->head[s->head_len++] = byte;
    if (s->state == STREAM_PREAMBLE)
        return s->head_len < PREAMBLE_LEN ? STREAM_PREAMBLE : judge_preamble (s->head);
    if (byte & 0x80)
        return s->head_len < 5 ? STREAM_LENGTH : STREAM_BAD;
    return open_section (s);
}

void
wit_stream_feed (struct wit_stream *s, const void *data, size_t len)
{
    const unsigned char *at = data, *end = at + len;
    while (at < end && s->state != STREAM_BAD && s->state != STREAM_MODULE) {
        if (s->state != STREAM_KEEP && s->state != STREAM_SKIP) {
            s->state = take_byte (s, *at++);
            continue;
        }
        size_t there = (size_t)(end - at);
        size_t taken = s->left < there ? (size_t)s->left : there;
        if (s->state == STREAM_KEEP)
            buf_append (&s->body, at, taken);
        at += taken;
        s->left -= taken;
        if (s->left == 0)
            s->state = close_section (s);
    }
}

enum wit_reading
wit_stream_finish (struct wit_stream *s, struct wit_contracts *out)
{
    *out = (struct wit_contracts){ 0 };
    if (s->state == STREAM_MODULE)
        return WIT_CORE_MODULE;
    if (s->state != STREAM_ID)
        return WIT_UNREADABLE;
    *out = s->contracts;
    s->contracts = (struct wit_contracts){ 0 };
    sort_and_dedup (&out->exports);
    sort_and_dedup (&out->imports);
    return WIT_READ;
}

enum wit_reading
wit_read (const void *wasm, size_t len, struct wit_contracts *out)
{
    _cleanup_wit_stream_ struct wit_stream *s = wit_stream_new ();
    wit_stream_feed (s, wasm, len);
    return wit_stream_finish (s, out);
}
