/* SPDX-License-Identifier: Apache-2.0
 *
 * What is kept is the stamp, a line feed, and an archive of its own.
 */
#include "artifact/package/head.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/paths.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define HEADS     "mcp"
#define HEAD_MAX  ((size_t)64 << 20)
#define SETTLED_S 2 /* of the coarsest clock a file system keeps */

static struct fs_root *
heads_root (int fd)
{
    return fd < 0 ? NULL : fs_root_new (fd, HEADS, NULL, false);
}

/* NULL when nothing is kept for a file of that stamp. */
static struct package *
kept (const char *path, const char *sha256, const char *stamp)
{
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_error_ struct mur_error *ignored = NULL;
    _cleanup_free_ char *name = x_asprintf ("%s.head", sha256);
    _cleanup_ (fs_root_freep) struct fs_root *heads = heads_root (home_find_dir (HEADS, &ignored));
    size_t len = strlen (stamp);
    if (! heads || ! fs_read (heads, name, HEAD_MAX, &text, &ignored) || text.len <= len ||
        memcmp (text.data, stamp, len) != 0 || text.data[len] != '\n')
        return NULL;
    size_t archive_len = text.len - len - 1;
    char *archive = x_malloc (archive_len + 1);
    memcpy (archive, text.data + len + 1, archive_len);
    _cleanup_package_ struct package *p = package_from_bytes (archive, archive_len, path);
    snprintf (p->sha256, sizeof p->sha256, "%s", sha256);
    return package_open_zip (p, &ignored) ? steal_ptr (&p) : NULL;
}

/* Its own small archive. */
static bool
cut_out (struct package *p, const char *entry, struct buf *out, struct mur_error **err)
{
    const char *const names[] = { "murmur.yaml", "murmur-build.json", entry };
    struct buf data[ARRAY_LEN (names)] = { 0 };
    struct zip_source sources[ARRAY_LEN (names)];
    size_t count = 0;
    bool is_good = true;
    for (size_t i = 0; i < ARRAY_LEN (names) && is_good; i++) {
        if (! zip_find (p->zip, names[i]))
            continue;
        is_good = package_read_entry (p, names[i], &data[count], err);
        sources[count] = (struct zip_source){ names[i], data[count].data, data[count].len };
        count++;
    }
    is_good = is_good && zip_write (sources, count, out, err);
    for (size_t i = 0; i < ARRAY_LEN (names); i++)
        buf_free (&data[i]);
    return is_good;
}

/* Where it cannot be, the next launch reads the whole again. */
static void
keep (struct package *p, const char *entry, const char *stamp)
{
    _cleanup_buf_ struct buf text = { 0 }, archive = { 0 };
    _cleanup_error_ struct mur_error *ignored = NULL;
    if (! package_open_zip (p, &ignored) || ! zip_find (p->zip, entry) ||
        ! cut_out (p, entry, &archive, &ignored))
        return;
    buf_printf (&text, "%s\n", stamp);
    buf_append (&text, archive.data, archive.len);
    _cleanup_free_ char *name = x_asprintf ("%s.head", p->sha256);
    _cleanup_ (fs_root_freep) struct fs_root *heads = heads_root (home_open_dir (HEADS, &ignored));
    if (heads && text.len <= HEAD_MAX)
        (void)fs_write (heads, name, text.data, text.len, 0600, true, &ignored);
}

static struct package *
read_head (const char *path, const char *sha256, const char *entry, struct mur_error **err)
{
    struct stat before, after;
    char stamp[FS_STAMP_SIZE], now[FS_STAMP_SIZE];
    _cleanup_buf_ struct buf bytes = { 0 };
    _cleanup_close_ int fd = fs_open_path (path, &before, err);
    if (fd < 0)
        return NULL;
    if (! S_ISREG (before.st_mode) || ! sha256_hex_is_valid (sha256))
        return package_from_file (path, err); /* which says what it is */
    fs_file_stamp (&before, stamp);
    struct package *p = kept (path, sha256, stamp);
    if (p)
        return p;
    if (! fd_read_all (fd, PACKAGE_FILE_MAX, &bytes) || fstat (fd, &after) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot read %s", path), NULL;
    fs_file_stamp (&after, now);
    size_t len = bytes.len;
    p = package_from_bytes (buf_steal (&bytes), len, path);
    if (strcmp (p->sha256, sha256) == 0 && strcmp (stamp, now) == 0 &&
        time (NULL) - after.st_ctime >= SETTLED_S)
        keep (p, entry, stamp);
    return p;
}

struct package *
package_head (const char *path, const char *sha256, const char *entry, struct mur_error **err)
{
    struct package *p = read_head (path, sha256, entry, err);
    if (p && ! p->signature)
        p->signature = package_signature_beside (path);
    return p;
}
