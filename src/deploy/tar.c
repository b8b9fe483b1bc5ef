/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/tar.h"

#include "base/fdio.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 512

enum { TAR_FILE = '0', TAR_HARD_LINK = '1', TAR_DIR = '5', TAR_LONG_NAMES = 'x' };

/* POSIX.1-1988's header, as tar(5) gives it. */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
    char link[100], magic[6], version[2], user[32], group[32], device_major[8], device_minor[8];
    char prefix[155], rest[12];
};
_Static_assert(sizeof (struct header) == BLOCK, "a header is a block");

static const char zeros[BLOCK];

void
tar_begin (struct tar *t, int fd)
{
    *t = (struct tar){ .fd = fd, .sha = sha256_new () };
}

static void
put (struct tar *t, const void *data, size_t len)
{
    if (t->failed)
        return;
    if (! fd_write_all (t->fd, data, len)) {
        t->failed = errno;
        return;
    }
    sha256_add (t->sha, data, len);
    t->len += len;
}

static void
put_padded (struct tar *t, const void *data, size_t len)
{
    put (t, data, len);
    put (t, zeros, (BLOCK - len % BLOCK) % BLOCK);
}

static void
put_header (struct tar *t, char type, const char *name, const char *target, size_t len)
{
    struct header h = { .type = type, .magic = "ustar", .version = { '0', '0' } };
    unsigned sum = 0;
    memcpy (h.name, name, strnlen (name, sizeof h.name));
    memcpy (h.link, target, strnlen (target, sizeof h.link));
    snprintf (h.mode, sizeof h.mode, "%07o", type == TAR_DIR ? 0755 : 0644);
    snprintf (h.uid, sizeof h.uid, "%07o", 0);
    snprintf (h.gid, sizeof h.gid, "%07o", 0);
    snprintf (h.size, sizeof h.size, "%011llo", (unsigned long long)len & 077777777777ULL);
    snprintf (h.mtime, sizeof h.mtime, "%011o", 0);
    memset (h.checksum, ' ', sizeof h.checksum);
    for (size_t i = 0; i < sizeof h; i++)
        sum += ((const unsigned char *)&h)[i];
    snprintf (h.checksum, sizeof h.checksum, "%06o", sum);
    put (t, &h, sizeof h);
}

/* "<length> <key>=<value>\n", whose length counts itself. */
static void
add_record (struct buf *out, const char *key, const char *value)
{
    size_t bare = strlen (key) + strlen (value) + 3, len = bare + 1;
    while (len < bare + (size_t)snprintf (NULL, 0, "%zu", len))
        len++;
    buf_printf (out, "%zu %s=%s\n", len, key, value);
}

static void
put_entry (struct tar *t, char type, const char *name, const char *target, size_t len)
{
    _cleanup_buf_ struct buf records = { 0 };
    const struct header *h = NULL;
    if (strlen (name) > sizeof h->name)
        add_record (&records, "path", name);
    if (strlen (target) > sizeof h->link)
        add_record (&records, "linkpath", target);
    if (records.len) {
        put_header (t, TAR_LONG_NAMES, "long-names", "", records.len);
        put_padded (t, records.data, records.len);
    }
    put_header (t, type, name, target, len);
}

void
tar_add_dir (struct tar *t, const char *name)
{
    put_entry (t, TAR_DIR, name, "", 0);
}

void
tar_add_file (struct tar *t, const char *name, const void *data, size_t len)
{
    put_entry (t, TAR_FILE, name, "", len);
    put_padded (t, data, len);
}

void
tar_add_link (struct tar *t, const char *name, const char *target)
{
    put_entry (t, TAR_HARD_LINK, name, target, 0);
}

bool
tar_end (struct tar *t, char hex[SHA256_HEX_LEN + 1])
{
    put (t, zeros, BLOCK);
    put (t, zeros, BLOCK);
    sha256_finish (t->sha, hex);
    t->sha = NULL;
    errno = t->failed;
    return ! t->failed;
}
