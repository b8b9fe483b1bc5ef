/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/harness_version.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "fs/paths.h"
#include "fs/replace.h"
#include "home/paths.h"
#include "sandbox/programs/script.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER         "harness-versions"
#define LINE_MAX_BYTES 4096

static void
put_file (struct buf *out, const char *path, const struct stat *st)
{
    buf_printf (out, "%s %llx %llx %llx %llx.%lx %llx.%lx\t", path, (unsigned long long)st->st_dev,
                (unsigned long long)st->st_ino, (unsigned long long)st->st_size,
                (unsigned long long)st->st_mtim.tv_sec, (unsigned long)st->st_mtim.tv_nsec,
                (unsigned long long)st->st_ctim.tv_sec, (unsigned long)st->st_ctim.tv_nsec);
}

static bool
is_of_a_shell (const char *path)
{
    _cleanup_strv_ struct strv interpreters = { 0 };
    script_interpreters (path, &interpreters);
    return script_is_shell (&interpreters);
}

char *
harness_version_mark (const struct harness *h)
{
    char real[PATH_MAX];
    struct stat st;
    if (! h->real_binary || ! realpath (h->real_binary, real) || stat (real, &st) < 0 ||
        strpbrk (real, "\n\t") || is_of_a_shell (real))
        return NULL;
    struct buf out = { 0 };
    put_file (&out, real, &st);
    for (size_t i = 0; i < h->is.version_args.len; i++)
        buf_printf (&out, "%s\t", h->is.version_args.items[i]);
    if (! strchr (out.data, '\n'))
        return buf_steal (&out);
    buf_free (&out);
    return NULL;
}

/* One file for each name a program is started by: a newer program's takes its place. */
static void
name_of (const struct harness *h, char out[SHA256_HEX_LEN + 1])
{
    sha256_hex (h->binary, strlen (h->binary), out);
}

char *
harness_version_known (const struct harness *h, const char *mark)
{
    char name[SHA256_HEX_LEN + 1];
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_buf_ struct buf text = { 0 };
    if (! mark)
        return NULL;
    name_of (h, name);
    _cleanup_free_ char *below = x_asprintf (FOLDER "/%s", name);
    _cleanup_free_ char *path = home_path_below (below, &err);
    if (! path || ! fs_read_regular (path, PATH_MAX + 2 * LINE_MAX_BYTES, &text, &err))
        return NULL;
    buf_putc (&text, '\0');
    const char *line = strchr (text.data, '\n');
    size_t len = line ? (size_t)(line - text.data) : 0;
    size_t end = line ? strcspn (line + 1, "\n") : 0;
    bool is_whole = line && end && line[1 + end] == '\n' && strlen (mark) == len;
    return is_whole && memcmp (text.data, mark, len) == 0 ? x_strndup (line + 1, end) : NULL;
}

void
harness_version_keep (const struct harness *h, const char *mark, const char *line)
{
    char name[SHA256_HEX_LEN + 1];
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_free_ char *now = mark ? harness_version_mark (h) : NULL;
    if (! now || strcmp (now, mark) != 0 || strlen (line) > LINE_MAX_BYTES)
        return;
    name_of (h, name);
    _cleanup_free_ char *text = x_asprintf ("%s\n%s\n", mark, line);
    _cleanup_close_ int dir = home_open_dir (FOLDER, &err);
    if (dir >= 0)
        (void)fs_replace_at (dir, name, text, strlen (text), 0600, false, &err);
}
