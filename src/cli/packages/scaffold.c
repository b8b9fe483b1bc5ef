/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/packages/scaffold.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "fs/paths.h"
#include "fs/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

bool
scaffold_check_target (const char *name, struct mur_error **err)
{
    struct stat st;
    if (lstat (name, &st) < 0)
        return true;
    mur_fail (err, E_NEW_003, "%s already exists here", name);
    return mur_hint (err, "choose another name, or move it away");
}

static const struct scaffold_mark *
mark_at (const char *at, const struct scaffold_mark *marks)
{
    for (; marks->mark; marks++)
        if (str_starts (at, marks->mark))
            return marks;
    return NULL;
}

char *
scaffold_fill (const char *text, const struct scaffold_mark *marks)
{
    struct buf out = { 0 };
    for (const char *at = text; *at;) {
        const struct scaffold_mark *m = *at == '@' ? mark_at (at, marks) : NULL;
        if (m)
            buf_puts (&out, m->text);
        else
            buf_putc (&out, *at);
        at += m ? strlen (m->mark) : 1;
    }
    return buf_steal (&out);
}

static bool
write_file (int dir, const struct template_file *file, const char *name,
            const struct scaffold_mark *marks, struct mur_error **err)
{
    for (const char *slash = file->path; (slash = strchr (slash, '/')); slash++) {
        _cleanup_free_ char *parent = x_strndup (file->path, (size_t)(slash - file->path));
        if (mkdirat (dir, parent, 0777) < 0 && errno != EEXIST)
            return mur_fail_errno (err, E_IO_003, "cannot create %s/%s", name, parent);
    }
    _cleanup_free_ char *text = scaffold_fill (file->text, marks);
    _cleanup_close_ int fd =
        openat (dir, file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 || ! fd_write_all (fd, text, strlen (text)))
        return mur_fail_errno (err, E_IO_003, "cannot write %s/%s", name, file->path);
    return true;
}

static bool
write_all (const struct template_file *files, const char *staged, const char *name,
           const struct scaffold_mark *marks, struct mur_error **err)
{
    if (mkdir (staged, 0777) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot create a folder here");
    _cleanup_close_ int dir = open (staged, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", staged);
    for (const struct template_file *file = files; file->path; file++)
        if (! write_file (dir, file, name, marks, err))
            return false;
    if (syscall (SYS_renameat2, AT_FDCWD, staged, AT_FDCWD, name, RENAME_NOREPLACE) == 0)
        return true;
    if (errno == EEXIST)
        return scaffold_check_target (name, err);
    return mur_fail_errno (err, E_IO_003, "cannot create %s", name);
}

bool
scaffold_write (const struct template_file *files, const char *name,
                const struct scaffold_mark *marks, struct mur_error **err)
{
    char id[37];
    uuid_text (id);
    _cleanup_free_ char *staged = x_asprintf (".%s.tmp-%s", name, id);
    if (write_all (files, staged, name, marks, err))
        return true;
    (void)fs_remove_tree_at (AT_FDCWD, staged, NULL);
    return false;
}

void
scaffold_report (const struct template_file *files, const char *name, const char *next)
{
    out_printf ("Created %s:\n", name);
    for (const struct template_file *file = files; file->path; file++)
        out_printf ("  %s/%s\n", name, file->path);
    out_printf ("\nNext:\n  cd %s\n", name);
    for (const char *at = next, *end; (end = strchr (at, '\n')); at = end + 1)
        out_printf ("  %.*s\n", (int)(end - at), at);
}
