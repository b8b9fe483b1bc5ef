/* SPDX-License-Identifier: Apache-2.0
 *
 * ELF closures. Only ELF64 of either byte order; every offset is checked against the file before it
 * is used.
 */
#include "sandbox/programs/elf_closure.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"

#include <elf.h>
#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HEADERS 256
#define MAX_TABLE   (16 << 20) /* bytes of a dynamic or string table worth reading */

/* Where the loader looks when no run path says otherwise. */
static const char *const library_dirs[] = {
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
};

/* An image read by position: a file, or bytes in memory. */
struct image {
    int fd; /* -1: memory */
    const char *bytes;
    uint64_t size;
    bool is_big_endian;
    Elf64_Phdr headers[MAX_HEADERS];
    size_t header_count;
};

static uint16_t
read16 (const struct image *i, uint16_t v)
{
    return i->is_big_endian ? be16toh (v) : le16toh (v);
}

static uint64_t
read64 (const struct image *i, uint64_t v)
{
    return i->is_big_endian ? be64toh (v) : le64toh (v);
}

static uint32_t
read32 (const struct image *i, uint32_t v)
{
    return i->is_big_endian ? be32toh (v) : le32toh (v);
}

static bool
image_read (const struct image *i, uint64_t offset, void *out, size_t len)
{
    if (offset > i->size || len > i->size - offset)
        return false;
    if (i->fd < 0) {
        memcpy (out, i->bytes + offset, len);
        return true;
    }
    return pread (i->fd, out, len, (off_t)offset) == (ssize_t)len;
}

static bool
image_parse (struct image *i)
{
    Elf64_Ehdr head;
    if (! image_read (i, 0, &head, sizeof head) || memcmp (head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    i->is_big_endian = head.e_ident[EI_DATA] == ELFDATA2MSB;
    size_t count = read16 (i, head.e_phnum);
    if (count > MAX_HEADERS || read16 (i, head.e_phentsize) != sizeof (Elf64_Phdr))
        return false;
    i->header_count = count;
    if (! image_read (i, read64 (i, head.e_phoff), i->headers, count * sizeof (Elf64_Phdr)))
        return false;
    for (size_t n = 0; n < count; n++) {
        Elf64_Phdr *p = &i->headers[n];
        p->p_type = read32 (i, p->p_type);
        p->p_offset = read64 (i, p->p_offset);
        p->p_vaddr = read64 (i, p->p_vaddr);
        p->p_filesz = read64 (i, p->p_filesz);
    }
    return true;
}

static const Elf64_Phdr *
find_header (const struct image *i, uint32_t type)
{
    for (size_t n = 0; n < i->header_count; n++)
        if (i->headers[n].p_type == type)
            return &i->headers[n];
    return NULL;
}

/* File offset of a virtual address, UINT64_MAX when no segment holds it. */
static uint64_t
offset_of (const struct image *i, uint64_t address)
{
    for (size_t n = 0; n < i->header_count; n++) {
        const Elf64_Phdr *p = &i->headers[n];
        if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)
            return p->p_offset + (address - p->p_vaddr);
    }
    return UINT64_MAX;
}

/* What the dynamic section says. */
struct dynamic {
    struct strv needed;
    char *run_path; /* DT_RUNPATH, else DT_RPATH */
    char *strings;  /* the string table */
    uint64_t strings_len;
    uint64_t symbols; /* address of the symbol table */
};

static void
dynamic_free (struct dynamic *d)
{
    strv_free (&d->needed);
    free (d->run_path);
    free (d->strings);
}

static const char *
string_at (const struct dynamic *d, uint64_t at)
{
    return at < d->strings_len ? d->strings + at : NULL;
}

static bool
dynamic_read (const struct image *i, struct dynamic *d)
{
    const Elf64_Phdr *header = find_header (i, PT_DYNAMIC);
    if (! header || header->p_filesz > MAX_TABLE)
        return false;
    size_t count = header->p_filesz / sizeof (Elf64_Dyn);
    _cleanup_free_ Elf64_Dyn *entries = x_new_array (Elf64_Dyn, count);
    if (! image_read (i, header->p_offset, entries, count * sizeof *entries))
        return false;
    uint64_t strings = UINT64_MAX, run_path = UINT64_MAX;
    bool is_runpath = false;
    for (size_t n = 0; n < count; n++) {
        uint64_t tag = read64 (i, (uint64_t)entries[n].d_tag);
        uint64_t value = read64 (i, entries[n].d_un.d_val);
        entries[n].d_tag = (Elf64_Sxword)tag;
        entries[n].d_un.d_val = value;
        if (tag == DT_STRTAB)
            strings = value;
        else if (tag == DT_STRSZ)
            d->strings_len = value;
        else if (tag == DT_SYMTAB)
            d->symbols = value;
        else if (tag == DT_RUNPATH || (tag == DT_RPATH && ! is_runpath)) {
            run_path = value;
            is_runpath = tag == DT_RUNPATH;
        }
    }
    uint64_t at = offset_of (i, strings);
    if (at == UINT64_MAX || d->strings_len == 0 || d->strings_len > MAX_TABLE)
        return false;
    d->strings = x_calloc (1, d->strings_len + 1);
    if (! image_read (i, at, d->strings, d->strings_len))
        return false;
    if (string_at (d, run_path))
        d->run_path = x_strdup (string_at (d, run_path));
    for (size_t n = 0; n < count && entries[n].d_tag != DT_NULL; n++)
        if (entries[n].d_tag == DT_NEEDED && string_at (d, entries[n].d_un.d_val))
            strv_push (&d->needed, string_at (d, entries[n].d_un.d_val));
    return true;
}

/* Adds the canonical form of a regular file, once. */
static bool
add_file (struct strv *out, const char *path)
{
    char resolved[PATH_MAX];
    struct stat st;
    /* Most folders have no such library: one look is less than the way to it. */
    if (access (path, F_OK) < 0 || ! realpath (path, resolved) || stat (resolved, &st) < 0 ||
        ! S_ISREG (st.st_mode))
        return false;
    if (! strv_contains (out, resolved))
        strv_push (out, resolved);
    return true;
}

static char *
expand_origin (const char *dir, const char *origin)
{
    struct buf out = { 0 };
    for (const char *at = dir; *at;) {
        size_t skip = strncmp (at, "$ORIGIN", 7) == 0     ? 7
                      : strncmp (at, "${ORIGIN}", 9) == 0 ? 9
                                                          : 0;
        if (skip) {
            buf_puts (&out, origin);
            at += skip;
        } else {
            buf_putc (&out, *at++);
        }
    }
    return buf_steal (&out);
}

/* How NEEDED names become files. */
struct resolution {
    const char *origin;       /* folder of the object, NULL: entries with $ORIGIN are skipped */
    const char *excluded_dir; /* NULL, or nothing below it is used */
    bool uses_default_dirs;
};

static bool
is_below (const char *path, const char *dir)
{
    return dir && fs_path_is_within (path, dir);
}

static bool
try_dir (const struct resolution *r, const char *dir, const char *name, struct strv *out)
{
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, name);
    return ! is_below (path, r->excluded_dir) && add_file (out, path);
}

static void
add_needed (const struct resolution *r, const struct dynamic *d, const char *name, struct strv *out)
{
    if (strchr (name, '/')) {
        if (name[0] == '/' && ! is_below (name, r->excluded_dir))
            add_file (out, name);
        return;
    }
    _cleanup_free_ char *list = x_strdup (d->run_path ? d->run_path : "");
    char *rest = list;
    for (char *entry; (entry = strsep (&rest, ":"));) {
        if (! *entry || (! r->origin && strchr (entry, '$')))
            continue;
        _cleanup_free_ char *dir = expand_origin (entry, r->origin ? r->origin : "");
        if (dir[0] == '/' && try_dir (r, dir, name, out))
            return;
    }
    for (size_t i = 0; r->uses_default_dirs && i < ARRAY_LEN (library_dirs); i++)
        if (try_dir (r, library_dirs[i], name, out))
            return;
}

static void
add_requirements (struct image *i, const struct resolution *r, struct strv *out)
{
    if (! image_parse (i))
        return;
    const Elf64_Phdr *interpreter = find_header (i, PT_INTERP);
    char path[PATH_MAX] = "";
    if (interpreter && interpreter->p_filesz < sizeof path &&
        image_read (i, interpreter->p_offset, path, interpreter->p_filesz) && path[0] == '/' &&
        ! is_below (path, r->excluded_dir))
        add_file (out, path);
    _cleanup_ (dynamic_free) struct dynamic d = { 0 };
    if (! dynamic_read (i, &d))
        return;
    for (size_t n = 0; n < d.needed.len; n++)
        add_needed (r, &d, d.needed.items[n], out);
}

static bool
open_image (const char *path, struct image *i)
{
    struct stat st;
    i->fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (i->fd < 0)
        return false;
    if (fstat (i->fd, &st) == 0 && S_ISREG (st.st_mode)) {
        i->size = (uint64_t)st.st_size;
        return true;
    }
    close (i->fd);
    i->fd = -1;
    return false;
}

/* Follows every file from index <next> on; what they need is appended and followed in turn. */
static void
follow (struct strv *out, size_t next, const char *excluded_dir)
{
    for (; next < out->len; next++) {
        struct image *i = x_new0 (struct image);
        if (open_image (out->items[next], i)) {
            _cleanup_free_ char *origin = x_strdup (out->items[next]);
            *strrchr (origin, '/') = '\0';
            struct resolution r = { .origin = origin,
                                    .excluded_dir = excluded_dir,
                                    .uses_default_dirs = true };
            add_requirements (i, &r, out);
            close (i->fd);
        }
        free (i);
    }
}

void
elf_closure (const char *path, struct strv *out)
{
    size_t first = out->len;
    if (add_file (out, path))
        follow (out, first, NULL);
}

void
elf_image_closure (const void *image, size_t len, const char *excluded_dir, struct strv *out)
{
    size_t first = out->len;
    const char *text = image;
    if (len > 3 && text[0] == '#' && text[1] == '!') {
        char line[256];
        size_t n = len < sizeof line ? len : sizeof line - 1;
        memcpy (line, text, n);
        line[n] = '\0';
        char *start = line + 2 + strspn (line + 2, " \t");
        start[strcspn (start, " \t\r\n")] = '\0';
        if (start[0] == '/' && ! is_below (start, excluded_dir))
            add_file (out, start);
    } else {
        struct image *i = x_new0 (struct image);
        i->fd = -1;
        i->bytes = image;
        i->size = len;
        struct resolution r = { .excluded_dir = excluded_dir, .uses_default_dirs = true };
        add_requirements (i, &r, out);
        free (i);
    }
    follow (out, first, excluded_dir);
}

bool
elf_has_symbol (const char *path, const char *symbol)
{
    struct image *i = x_new0 (struct image);
    bool found = false;
    if (open_image (path, i) && image_parse (i)) {
        _cleanup_ (dynamic_free) struct dynamic d = { 0 };
        /* The dynamic string table holds each symbol's name whole; finding the name there is
         * enough. */
        if (dynamic_read (i, &d)) {
            size_t len = strlen (symbol) + 1;
            for (const char *at = d.strings; ! found && at;) {
                at = memmem (at, d.strings_len - (size_t)(at - d.strings), symbol, len);
                found = at && (at == d.strings || at[-1] == '\0');
                at = at ? at + 1 : NULL;
            }
        }
    }
    if (i->fd > 0)
        close (i->fd);
    free (i);
    return found;
}
