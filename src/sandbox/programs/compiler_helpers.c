/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/compiler_helpers.h"

#include "base/alloc.h"
#include "sandbox/programs/host_query.h"
#include "sandbox/programs/path_lists.h"

#include <limits.h>
#include <string.h>

static const char *const drivers[] = { "cc", "gcc", "g++", "c++" };
static const char *const helpers[] = { "cc1", "cc1plus", "as", "ld", "collect2" };

static bool
is_driver (const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN (drivers); i++)
        if (str_eq (drivers[i], name))
            return true;
    return false;
}

/* The helper's real file, owned; NULL when it is not installed. A driver that knows no folder for
 * it prints the bare name. */
static char *
locate (const char *answer, const char *path)
{
    char resolved[PATH_MAX];
    if (! strchr (answer, '/'))
        return exec_find_on_path (answer, path);
    return realpath (answer, resolved) ? x_strdup (resolved) : NULL;
}

/* False: the driver would not tell. */
static bool
ask (const struct exec_name *driver, const char *helper, char **answer)
{
    _cleanup_buf_ struct buf output = { 0 };
    _cleanup_free_ char *question = x_asprintf ("-print-prog-name=%s", helper);
    /* Its own path: a compiler finds the folder of its helpers from it. */
    const char *const argv[] = { driver->unlinked, question, NULL };
    if (! host_query (driver->unlinked, argv, &output) || ! output.len)
        return false;
    buf_append (&output, "", 0);
    output.data[strcspn (output.data, "\n")] = '\0';
    *answer = x_strdup (output.data);
    return true;
}

static void
check_one (const struct exec_allowlist *list, const char *const *trees, const char *path,
           const struct exec_name *driver, const char *helper, struct compiler_helpers *out)
{
    _cleanup_free_ char *answer = NULL;
    if (! ask (driver, helper, &answer)) {
        strv_printf (&out->unchecked, "%s of %s", helper, driver->name);
        return;
    }
    _cleanup_free_ char *file = locate (answer, path);
    if (! file || strv_contains (&list->files, file) || path_is_below_any (file, trees))
        return;
    strv_printf (&out->uncovered, "%s (%s), started by %s", helper, file, driver->name);
}

void
compiler_helpers_check (const struct exec_allowlist *list, const char *const *trees,
                        const char *path, const char *const *writable_roots,
                        struct compiler_helpers *out)
{
    *out = (struct compiler_helpers){ 0 };
    for (size_t i = 0; i < list->name_count; i++) {
        const struct exec_name *n = &list->names[i];
        if (! n->path || ! is_driver (n->name) || path_is_below_any (n->path, writable_roots))
            continue;
        for (size_t h = 0; h < ARRAY_LEN (helpers); h++)
            check_one (list, trees, path, n, helpers[h], out);
    }
}

void
compiler_helpers_free (struct compiler_helpers *h)
{
    strv_free (&h->uncovered);
    strv_free (&h->unchecked);
}
