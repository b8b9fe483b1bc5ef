/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/running_session.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <ctype.h>
#include <string.h>

#define SHORTEST_SUFFIX 4

static bool
is_ordinal (const char *address, size_t *ordinal)
{
    *ordinal = 0;
    for (const char *c = address + 1; *c; c++) {
        if (! isdigit ((unsigned char)*c) || *ordinal > 1000000)
            return false;
        *ordinal = *ordinal * 10 + (size_t)(*c - '0');
    }
    return address[1] && *ordinal > 0;
}

/* The ids of what runs, a line each. Owned. */
static char *
running_ids (const struct running_scan *scan)
{
    struct buf list = { 0 };
    for (size_t i = 0; i < scan->len; i++)
        if (scan->entries[i].liveness != RUNNING_GONE)
            buf_printf (&list, "\n  %s", scan->entries[i].record.session_id);
    return buf_steal (&list);
}

static const struct running_entry *
none (struct mur_error **err)
{
    mur_hint (err, "`mur ps` lists what is running");
    return NULL;
}

static const struct running_entry *
by_ordinal (const char *address, const struct running_scan *scan, struct mur_error **err)
{
    size_t ordinal, count = 0;
    bool is_valid = is_ordinal (address, &ordinal);
    for (size_t i = 0; i < scan->len; i++)
        if (scan->entries[i].liveness != RUNNING_GONE && ++count == ordinal && is_valid)
            return &scan->entries[i];
    const struct running_entry *newest = scan->len ? &scan->entries[0] : NULL;
    if (count == 0 && newest)
        mur_fail (err, E_RUN_022, "no session is running: the record of %s was removed (%s)",
                  newest->record.session_id, newest->gone_reason);
    else if (count == 0)
        mur_fail (err, E_RUN_022, "no session is running");
    else
        mur_fail (err, E_RUN_022, "%s names none of the %zu running session%s", address, count,
                  count == 1 ? "" : "s");
    return none (err);
}

static const struct running_entry *
by_suffix (const char *address, const struct running_scan *scan, struct mur_error **err)
{
    _cleanup_free_ char *suffix = x_strdup (address);
    str_lower (suffix);
    const struct running_entry *found = NULL, *gone = NULL;
    size_t count = 0;
    for (size_t i = 0; i < scan->len; i++) {
        const struct running_entry *e = &scan->entries[i];
        if (! str_ends (e->record.session_id, suffix))
            continue;
        if (e->liveness == RUNNING_GONE) {
            gone = e;
            continue;
        }
        found = e;
        count++;
    }
    if (count == 1)
        return found;
    _cleanup_free_ char *ids = running_ids (scan);
    if (count > 1)
        mur_fail (err, E_RUN_022, "\"%s\" matches several running sessions:%s", address, ids);
    else if (gone)
        mur_fail (err, E_RUN_022, "%s is not running: its record was removed (%s)",
                  gone->record.session_id, gone->gone_reason);
    else if (*ids)
        mur_fail (err, E_RUN_022, "no running session matches \"%s\"; running:%s", address, ids);
    else
        mur_fail (err, E_RUN_022, "no session is running");
    return none (err);
}

const struct running_entry *
running_session (const char *address, struct running_scan *scan, struct mur_error **err)
{
    address = address ? address : "@1";
    if (strpbrk (address, "/:") || str_ends (address, ".jsonl")) {
        mur_fail (err, E_RUN_022, "%s is not the address of a session", address);
        mur_hint (err, "@N, a full session id, or its last characters");
        return NULL;
    }
    if (! running_scan (true, scan, err))
        return NULL;
    running_prune (scan);
    if (address[0] == '@')
        return by_ordinal (address, scan, err);
    if (strlen (address) < SHORTEST_SUFFIX) {
        mur_fail (err, E_RUN_022, "\"%s\" is too short: at least %d characters of the id", address,
                  SHORTEST_SUFFIX);
        return none (err);
    }
    return by_suffix (address, scan, err);
}

bool
running_session_deaf (const struct running_record *r, struct mur_error **err)
{
    if (r->pid)
        return mur_fail (err, E_RUN_023,
                         "%s is running (pid %ld), but its door at %s does not answer",
                         r->session_id, (long)r->pid, r->url);
    mur_fail (err, E_RUN_023, "%s is running in a cluster, but its door at %s does not answer here",
              r->session_id, r->url);
    return mur_hint (err, "the addresses of pods are reached from inside the cluster");
}
