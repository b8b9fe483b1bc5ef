/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur new`: a capsule from a template (spec/cli.md 4).
 *
 * Always true: everything is written into a hidden folder beside the target and renamed into place
 * once, so the new folder is there whole or not at all; what exists is never overwritten.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "cli/cli.h"
#include "cli/templates.h"
#include "fs/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LONGEST_NAME 64

static bool
check_name (const char *name, struct mur_error **err)
{
    size_t len = strlen (name);
    bool is_plain = len && len <= LONGEST_NAME && name[0] >= 'a' && name[0] <= 'z' &&
                    strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len &&
                    name[len - 1] != '-';
    if (is_plain)
        return true;
    mur_fail (err, E_NEW_002, "\"%s\" cannot be the name of a capsule", name);
    return mur_hint (err, "lower-case letters, digits and hyphens, beginning with a letter");
}

static bool
check_target (const char *name, struct mur_error **err)
{
    struct stat st;
    if (lstat (name, &st) < 0)
        return true;
    mur_fail (err, E_NEW_003, "%s already exists here", name);
    return mur_hint (err, "choose another name, or move it away");
}

/* The text with every @NAME@ replaced. Owned. */
static char *
filled (const char *text, const char *name)
{
    static const char mark[] = "@NAME@";
    struct buf out = { 0 };
    for (const char *at = text;;) {
        const char *found = strstr (at, mark);
        if (! found) {
            buf_puts (&out, at);
            return buf_steal (&out);
        }
        buf_append (&out, at, (size_t)(found - at));
        buf_puts (&out, name);
        at = found + strlen (mark);
    }
}

static bool
write_file (int dir, const struct template_file *file, const char *name, struct mur_error **err)
{
    const char *slash = strrchr (file->path, '/');
    if (slash) {
        _cleanup_free_ char *parent = x_strndup (file->path, (size_t)(slash - file->path));
        if (mkdirat (dir, parent, 0777) < 0 && errno != EEXIST)
            return mur_fail_errno (err, E_IO_003, "cannot create %s/%s", name, parent);
    }
    _cleanup_free_ char *text = filled (file->text, name);
    _cleanup_close_ int fd =
        openat (dir, file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 || ! fd_write_all (fd, text, strlen (text)))
        return mur_fail_errno (err, E_IO_003, "cannot write %s/%s", name, file->path);
    return true;
}

static bool
write_all (const struct project_template *t, const char *staged, const char *name,
           struct mur_error **err)
{
    if (mkdir (staged, 0777) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot create a folder here");
    _cleanup_close_ int dir = open (staged, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", staged);
    for (const struct template_file *file = t->files; file->path; file++)
        if (! write_file (dir, file, name, err))
            return false;
    if (syscall (SYS_renameat2, AT_FDCWD, staged, AT_FDCWD, name, RENAME_NOREPLACE) == 0)
        return true;
    if (errno == EEXIST)
        return check_target (name, err);
    return mur_fail_errno (err, E_IO_003, "cannot create %s", name);
}

static void
report (const struct project_template *t, const char *name)
{
    out_printf ("Created %s:\n", name);
    for (const struct template_file *file = t->files; file->path; file++)
        out_printf ("  %s/%s\n", name, file->path);
    _cleanup_free_ char *next = filled (t->next, name);
    out_printf ("\nNext:\n  cd %s\n", name);
    for (char *at = next, *end; (end = strchr (at, '\n')); at = end + 1)
        out_printf ("  %.*s\n", (int)(end - at), at);
}

int
cmd_new (const struct cli_args *args, struct mur_error **err)
{
    if (cli_has (args, "--roster")) {
        mur_fail (err, E_IO_003, "this version of mur does not have `mur new --roster` yet");
        return CLI_FAILED;
    }
    const struct project_template *t = project_template_find (cli_positional (args, "TEMPLATE"));
    const char *name = cli_positional (args, "NAME");
    if (! check_name (name, err) || ! check_target (name, err))
        return CLI_FAILED;
    char id[37];
    uuid_text (id);
    _cleanup_free_ char *staged = x_asprintf (".%s.tmp-%s", name, id);
    if (! write_all (t, staged, name, err)) {
        (void)fs_remove_tree_at (AT_FDCWD, staged, NULL);
        return CLI_FAILED;
    }
    report (t, name);
    return CLI_OK;
}
