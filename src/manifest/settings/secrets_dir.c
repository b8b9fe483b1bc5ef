/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/settings/secrets_dir.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fdio.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VALUE_MAX 65536

/* Not asked of the environment again: a project's .env must not choose what is read. */
static char *folder;

bool
secrets_dir_use (const char *path, struct mur_error **err)
{
    struct stat st;
    if (! path)
        path = getenv (SECRETS_DIR_VARIABLE);
    if (! path)
        return true;
    _cleanup_free_ char *resolved = realpath (path, NULL);
    if (! resolved || stat (resolved, &st) < 0 || ! S_ISDIR (st.st_mode)) {
        mur_fail (err, E_IO_003, "--secrets-dir %s: no folder that can be read", path);
        return mur_hint (err,
                         "name the folder in which each key is a file named like the credential");
    }
    setenv (SECRETS_DIR_VARIABLE, resolved, 1);
    free (folder);
    folder = steal_ptr (&resolved);
    return true;
}

struct secret *
secrets_dir_ask (const char *name)
{
    if (! folder || ! name[0] || name[0] == '.' || strchr (name, '/'))
        return NULL;
    _cleanup_free_ char *path = x_asprintf ("%s/%s", folder, name);
    /* Links are followed: a Secret volume replaces all its files by changing one. */
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat (fd, &st) < 0 || ! S_ISREG (st.st_mode))
        return NULL;
    _cleanup_buf_ struct buf text = { 0 };
    bool is_read = fd_read_all (fd, VALUE_MAX, &text);
    size_t len = text.len;
    while (len && (text.data[len - 1] == '\n' || text.data[len - 1] == '\r'))
        len--;
    struct secret *value = is_read && len ? secret_new (text.data, len) : NULL;
    if (text.data)
        explicit_bzero (text.data, text.len);
    return value;
}
