/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/read/address.h"

#include "base/alloc.h"
#include "base/ids.h"
#include "home/paths.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Everything a failure message needs. */
struct lookup {
    const char *address;
    const char *label; /* "before: " or "" */
    const char *work_root;
    const char *group;
    enum diag_code code;
    struct strv names;
};

static bool
refuse (const struct lookup *l, struct mur_error **err, const char *fmt, ...) _printf_ (3, 4);

static bool
refuse (const struct lookup *l, struct mur_error **err, const char *fmt, ...)
{
    _cleanup_buf_ struct buf text = { 0 };
    va_list ap;
    va_start (ap, fmt);
    buf_vprintf (&text, fmt, ap);
    va_end (ap);
    return mur_fail (err, l->code, "%s%s", l->label, text.data);
}

/* "@N": digits only, N at least 1. False when it is not one. */
static bool
parse_ordinal (const char *address, size_t *ordinal)
{
    const char *at = address + 1;
    *ordinal = 0;
    for (; isdigit ((unsigned char)*at) && *ordinal < 100000000; at++)
        *ordinal = *ordinal * 10 + (size_t)(*at - '0');
    return at > address + 1 && ! *at && *ordinal > 0;
}

/* A launch that failed before its first line left only its folder. */
static bool
has_begun (int group_fd, const char *name)
{
    static const char *const files[] = { "trace.jsonl", "hooks" };
    for (size_t i = 0; i < ARRAY_LEN (files); i++) {
        _cleanup_free_ char *path = x_asprintf ("%s/%s", name, files[i]);
        if (faccessat (group_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    }
    return false;
}

/* Sessions that never began are passed over, unless there are no others. */
static void
drop_unbegun (int group_fd, struct strv *names)
{
    struct strv begun = { 0 };
    for (size_t i = 0; i < names->len; i++)
        if (has_begun (group_fd, names->items[i]))
            strv_push (&begun, names->items[i]);
    if (! begun.len)
        return;
    strv_free (names);
    *names = begun;
}

static void
hint_elsewhere (struct mur_error **err)
{
    mur_hint (err, "sessions are recorded by work folder; name another one with --workdir");
}

static const char *
by_ordinal (const struct lookup *l, struct mur_error **err)
{
    size_t ordinal;
    if (! parse_ordinal (l->address, &ordinal) || ordinal > l->names.len) {
        refuse (l, err, "%s names none of the %zu session%s recorded for %s (records in %s)",
                l->address, l->names.len, l->names.len == 1 ? "" : "s", l->work_root, l->group);
        return NULL;
    }
    return l->names.items[ordinal - 1];
}

/* The one session ending so, or an error listing all of them. */
static const char *
by_suffix (const struct lookup *l, struct mur_error **err)
{
    _cleanup_free_ char *suffix = x_strdup (l->address);
    str_lower (suffix);
    const char *found = NULL;
    struct buf matches = { 0 };
    size_t count = 0;
    for (size_t i = 0; i < l->names.len; i++)
        if (str_ends (l->names.items[i], suffix)) {
            found = l->names.items[i];
            buf_printf (&matches, "\n  %s", found);
            count++;
        }
    if (count == 0) {
        refuse (l, err, "no session recorded for %s matches \"%s\" (records in %s)", l->work_root,
                l->address, l->group);
        hint_elsewhere (err);
    } else if (count > 1)
        refuse (l, err, "\"%s\" matches %zu sessions:%s", l->address, count, matches.data);
    buf_free (&matches);
    return count == 1 ? found : NULL;
}

static const char *
find (struct lookup *l, struct mur_error **err)
{
    if (l->names.len == 0) {
        refuse (l, err, "no sessions are recorded for %s (records in %s)", l->work_root, l->group);
        hint_elsewhere (err);
        return NULL;
    }
    return l->address[0] == '@' ? by_ordinal (l, err) : by_suffix (l, err);
}

bool
recorded_session_resolve (const char *address, const char *work_root, const char *label,
                          enum diag_code code, struct recorded_session *out, struct mur_error **err)
{
    *out = (struct recorded_session){ 0 };
    if (address && (strchr (address, '/') || str_ends (address, ".jsonl"))) {
        out->trace_path = x_strdup (address);
        return true;
    }
    _cleanup_free_ char *group = home_records_group (work_root, err);
    _cleanup_free_ char *prefix = label ? x_asprintf ("%s: ", label) : x_strdup ("");
    if (! group)
        return false;
    struct mur_error *caught = NULL;
    _cleanup_close_ int fd = home_find_records_group (work_root, &caught);
    if (caught)
        return mur_propagate (err, caught);
    struct lookup l = { address ? address : "@1", prefix, work_root, group, code, { 0 } };
    const char *name = NULL;
    if (fd < 0 || home_list_sessions (fd, group, &l.names, err)) {
        if (fd >= 0 && l.address[0] == '@')
            drop_unbegun (fd, &l.names);
        name = find (&l, err);
    }
    if (name) {
        out->session_id = x_strdup (name);
        out->dir_path = x_asprintf ("%s/%s", group, name);
        out->trace_path = x_asprintf ("%s/trace.jsonl", out->dir_path);
    }
    strv_free (&l.names);
    return name != NULL;
}

void
recorded_session_free (struct recorded_session *s)
{
    free (s->session_id);
    free (s->trace_path);
    free (s->dir_path);
    *s = (struct recorded_session){ 0 };
}
