/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/interpreters.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "sandbox/programs/elf_closure.h"
#include "sandbox/programs/host_query.h"
#include "sandbox/programs/path_lists.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* Prints the import path, NUL-separated; Python's with the folders of installed packages, which it
 * does not look into itself when it starts without site. */
static const struct {
    const char *symbol;
    const char *const argv[5];
} interpreters[] = {
    { "Py_BytesMain",
      { "python", "-ISc",
        "import sys,site;sys.stdout.write('\\0'.join(sys.path+site.getsitepackages()))", NULL } },
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
            strv_push_once (out, files.items[i]);
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
    strv_push_once (&list->readable, resolved);
    strv_push_once (&n->derived, resolved);
    if (! S_ISDIR (st.st_mode))
        return;
    add_extension_libraries (resolved, &list->readable);
    /* CPython keeps its extension modules one level down. */
    _cleanup_free_ char *dynload = x_asprintf ("%s/lib-dynload", resolved);
    add_extension_libraries (dynload, &list->readable);
}

bool
interpreter_derive (struct exec_allowlist *list, struct exec_name *n, const char *program,
                    const char *unlinked, const char *const *writable_roots)
{
    if (path_is_below_any (program, writable_roots))
        return false;
    for (size_t i = 0; i < ARRAY_LEN (interpreters); i++) {
        if (! elf_has_symbol (program, interpreters[i].symbol))
            continue;
        _cleanup_buf_ struct buf output = { 0 };
        /* The path it was found by, links included, also as its own name: an interpreter finds its
         * prefix from that, and by a bare name without PATH it would look in "/". */
        const char *argv[ARRAY_LEN (interpreters[i].argv)];
        memcpy (argv, interpreters[i].argv, sizeof argv);
        argv[0] = unlinked;
        if (! host_query (unlinked, argv, &output)) {
            strv_printf (&list->notes, "%s did not tell its import path: nothing is granted for it",
                         program);
            return true;
        }
        _cleanup_free_ char *dir = x_strdup (program);
        *strrchr (dir, '/') = '\0';
        buf_append (&output, "", 0);
        for (size_t at = 0; at < output.len; at += strlen (output.data + at) + 1)
            keep_entry (list, n, output.data + at, dir, writable_roots);
        return true;
    }
    return false;
}
