/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/link_chain.h"

#include "base/alloc.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as many as the kernel follows */

static bool
is_known (const struct strv *pairs, const char *link)
{
    for (size_t i = 0; i < pairs->len; i += 2)
        if (str_eq (pairs->items[i], link))
            return true;
    return false;
}

/* One component further: <done> is canonical but for this last step. False at its end. */
static bool
step (char **done, char **rest)
{
    char *at = *rest + strspn (*rest, "/");
    size_t len = strcspn (at, "/");
    if (! len)
        return false;
    _cleanup_free_ char *name = x_strndup (at, len);
    _cleanup_free_ char *remaining = x_strdup (at + len);
    char *slash = strrchr (*done, '/');
    if (str_eq (name, "..")) {
        if (slash)
            *slash = '\0';
    } else if (! str_eq (name, ".")) {
        char *longer = x_asprintf ("%s/%s", *done, name);
        free (*done);
        *done = longer;
    }
    free (*rest);
    *rest = steal_ptr (&remaining);
    return true;
}

void
link_chain_of (const char *path, struct strv *out)
{
    _cleanup_free_ char *done = x_strdup ("");
    _cleanup_free_ char *rest = x_strdup (path);
    for (unsigned followed = 0; followed < LINKS_MAX && step (&done, &rest);) {
        char target[PATH_MAX];
        ssize_t len = *done ? readlink (done, target, sizeof target - 1) : -1;
        if (len <= 0)
            continue;
        target[len] = '\0';
        followed++;
        if (! is_known (out, done)) {
            strv_push (out, done);
            strv_push (out, target);
        }
        if (target[0] == '/')
            done[0] = '\0';
        else
            *strrchr (done, '/') = '\0';
        char *longer = x_asprintf ("%s/%s", target, rest);
        free (rest);
        rest = longer;
    }
}
