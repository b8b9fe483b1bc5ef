/* SPDX-License-Identifier: Apache-2.0
 *
 * The exec allowlist, derived interpreter files and the trust store. See exec_allowlist.h.
 */
#include "sandbox/kernel/exec_allowlist.h"

#include "base/alloc.h"
#include "fs/root.h"
#include "sandbox/kernel/elf_closure.h"
#include "sandbox/kernel/host_query.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

bool
path_is_below_any (const char *path, const char *const *roots)
{
    for (size_t i = 0; roots && roots[i]; i++)
        if (fs_path_is_within (path, roots[i]))
            return true;
    return false;
}

static void
push_once (struct strv *v, const char *s)
{
    if (! strv_contains (v, s))
        strv_push (v, s);
}

static bool
is_program (const char *candidate, char resolved[PATH_MAX])
{
    struct stat st;
    return realpath (candidate, resolved) && stat (resolved, &st) == 0 && S_ISREG (st.st_mode) &&
           access (resolved, X_OK) == 0;
}

char *
exec_find_on_path (const char *name, const char *path)
{
    _cleanup_free_ char *dirs = x_strdup (path ? path : "");
    char *rest = dirs;
    for (char *dir; (dir = strsep (&rest, ":"));) {
        char resolved[PATH_MAX];
        _cleanup_free_ char *candidate = x_asprintf ("%s/%s", dir, name);
        if (dir[0] == '/' && is_program (candidate, resolved))
            return x_strdup (resolved);
    }
    return NULL;
}

/* Every executable regular file of this name on PATH. */
static void
resolve_name (struct exec_allowlist *list, struct exec_name *n, const char *path)
{
    _cleanup_free_ char *dirs = x_strdup (path ? path : "");
    char *rest = dirs;
    for (char *dir; (dir = strsep (&rest, ":"));) {
        char resolved[PATH_MAX];
        if (dir[0] != '/')
            continue;
        _cleanup_free_ char *candidate = x_asprintf ("%s/%s", dir, n->name);
        if (! is_program (candidate, resolved))
            continue;
        if (! n->path) {
            n->path = x_strdup (resolved);
            n->unlinked = steal_ptr (&candidate);
        }
        elf_closure (resolved, &list->files);
    }
}

/* --- interpreters that find their library by asking themselves --- */

/* Prints the import path, NUL-separated. */
static const struct {
    const char *symbol;
    const char *const argv[5];
} interpreters[] = {
    { "Py_BytesMain",
      { "python", "-ISc", "import sys;sys.stdout.write('\\0'.join(sys.path))", NULL } },
    { "perl_parse", { "perl", "-f", "-e", "print join \"\\0\", @INC", NULL } },
};

/* Shared objects directly inside a derived directory need their libraries too. */
static void
add_extension_libraries (const char *dir, struct strv *out)
{
    _cleanup_closedir_ DIR *list = opendir (dir);
    for (struct dirent *e; list && (e = readdir (list));) {
        if (! strstr (e->d_name, ".so"))
            continue;
        _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, e->d_name);
        struct strv files = { 0 };
        elf_closure (path, &files);
        for (size_t i = 0; i < files.len; i++)
            push_once (out, files.items[i]);
        strv_free (&files);
    }
}

static void
keep_entry (struct exec_allowlist *list, struct exec_name *n, const char *entry,
            const char *binary_dir, const char *const *writable_roots)
{
    char resolved[PATH_MAX];
    struct stat st;
    if (entry[0] != '/' || ! realpath (entry, resolved) || stat (resolved, &st) < 0)
        return;
    if (str_eq (resolved, "/") || fs_path_is_within (binary_dir, resolved) ||
        path_is_below_any (resolved, writable_roots))
        return;
    push_once (&list->readable, resolved);
    push_once (&n->derived, resolved);
    if (! S_ISDIR (st.st_mode))
        return;
    add_extension_libraries (resolved, &list->readable);
    /* CPython keeps its extension modules one level down. */
    _cleanup_free_ char *dynload = x_asprintf ("%s/lib-dynload", resolved);
    add_extension_libraries (dynload, &list->readable);
}

static void
derive (struct exec_allowlist *list, struct exec_name *n, const char *const *writable_roots)
{
    if (path_is_below_any (n->path, writable_roots))
        return;
    for (size_t i = 0; i < ARRAY_LEN (interpreters); i++) {
        if (! elf_has_symbol (n->path, interpreters[i].symbol))
            continue;
        n->is_interpreter = true;
        _cleanup_buf_ struct buf output = { 0 };
        /* The name it was found by, links included: an interpreter finds its prefix from it. */
        if (! host_query (n->unlinked, interpreters[i].argv, &output)) {
            strv_printf (&list->notes, "%s did not tell its import path: nothing is granted for it",
                         n->path);
            return;
        }
        _cleanup_free_ char *dir = x_strdup (n->path);
        *strrchr (dir, '/') = '\0';
        buf_append (&output, "", 0);
        for (size_t at = 0; at < output.len; at += strlen (output.data + at) + 1)
            keep_entry (list, n, output.data + at, dir, writable_roots);
        return;
    }
}

static bool
is_among (const char *name, const char *const *names)
{
    for (size_t i = 0; names && names[i]; i++)
        if (str_eq (names[i], name))
            return true;
    return false;
}

void
exec_allowlist_resolve (struct exec_allowlist *list, const char *const *names, const char *path,
                        const char *const *writable_roots, const char *const *unasked)
{
    *list = (struct exec_allowlist){ 0 };
    size_t count = 0;
    while (names && names[count])
        count++;
    list->names = x_new_array (struct exec_name, count);
    for (size_t i = 0; i < count; i++) {
        struct exec_name *n = &list->names[list->name_count++];
        n->name = x_strdup (names[i]);
        if (! strchr (n->name, '/'))
            resolve_name (list, n, path);
        if (n->path && ! is_among (n->name, unasked))
            derive (list, n, writable_roots);
    }
}

void
exec_allowlist_free (struct exec_allowlist *list)
{
    for (size_t i = 0; i < list->name_count; i++) {
        free (list->names[i].name);
        free (list->names[i].path);
        free (list->names[i].unlinked);
        strv_free (&list->names[i].derived);
    }
    free (list->names);
    strv_free (&list->files);
    strv_free (&list->readable);
    strv_free (&list->notes);
    *list = (struct exec_allowlist){ 0 };
}

const struct exec_name *
exec_allowlist_find (const struct exec_allowlist *list, const char *name)
{
    for (size_t i = 0; i < list->name_count; i++)
        if (str_eq (list->names[i].name, name))
            return &list->names[i];
    return NULL;
}

/* --- certificates --- */

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
            push_once (out, resolved);
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
            push_once (out, resolved);
    size_t first_dir = out->len;
    for (size_t i = 0; i < ARRAY_LEN (certificate_dirs); i++)
        if (realpath (certificate_dirs[i], resolved) && stat (resolved, &st) == 0 &&
            S_ISDIR (st.st_mode) && ! str_eq (resolved, "/etc/ssl"))
            push_once (out, resolved);
    size_t last_dir = out->len;
    for (size_t i = first_dir; i < last_dir; i++) {
        _cleanup_free_ char *dir = x_strdup (out->items[i]);
        add_link_targets (dir, writable_roots, out);
    }
}
