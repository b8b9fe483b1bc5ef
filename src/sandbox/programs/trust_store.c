/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/trust_store.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "sandbox/programs/exec_allowlist.h"
#include "sandbox/programs/path_lists.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static const char *const certificate_files[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/ssl/cert.pem",
    "/usr/lib/ssl/cert.pem",
};

static const char *const certificate_dirs[] = {
    "/etc/ssl/certs",     "/etc/pki/tls/certs",           "/etc/pki/ca-trust/extracted/pem",
    "/usr/lib/ssl/certs", "/var/lib/ca-certificates/pem",
};

/* Folders that the links directly inside a kept folder lead to. */
static void
add_link_targets (const char *dir, const char *const *writable_roots, struct strv *out)
{
    _cleanup_closedir_ DIR *list = opendir (dir);
    for (struct dirent *e; list && (e = readdir (list));) {
        char resolved[PATH_MAX];
        struct stat st;
        _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, e->d_name);
        if (lstat (path, &st) < 0 || ! S_ISLNK (st.st_mode) || ! realpath (path, resolved) ||
            stat (resolved, &st) < 0 || ! S_ISREG (st.st_mode))
            continue;
        *strrchr (resolved, '/') = '\0';
        bool encloses_kept = ! *resolved;
        for (size_t i = 0; i < out->len && ! encloses_kept; i++)
            encloses_kept = fs_path_is_within (out->items[i], resolved);
        if (! encloses_kept && ! path_is_below_any (resolved, writable_roots))
            strv_push_once (out, resolved);
    }
}

void
trust_store_paths (const char *const *writable_roots, struct strv *out)
{
    char resolved[PATH_MAX];
    struct stat st;
    for (size_t i = 0; i < ARRAY_LEN (certificate_files); i++)
        if (realpath (certificate_files[i], resolved) && stat (resolved, &st) == 0 &&
            S_ISREG (st.st_mode))
            strv_push_once (out, resolved);
    size_t first_dir = out->len;
    for (size_t i = 0; i < ARRAY_LEN (certificate_dirs); i++)
        if (realpath (certificate_dirs[i], resolved) && stat (resolved, &st) == 0 &&
            S_ISDIR (st.st_mode) && ! str_eq (resolved, "/etc/ssl"))
            strv_push_once (out, resolved);
    size_t last_dir = out->len;
    for (size_t i = first_dir; i < last_dir; i++) {
        _cleanup_free_ char *dir = x_strdup (out->items[i]);
        add_link_targets (dir, writable_roots, out);
    }
}
