/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/ps_formations.h"
#include "base/json_write.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "trace/read/formation.h"

#include <string.h>

struct summary {
    const char *id;
    const char *entry; /* name of the entry member; NULL: its record is not there */
    const char *work_root;
    size_t listed, ended, gone_without_ending;
    struct formation_traces *traces; /* NULL: none could be read */
};

static bool
is_of (const struct running_entry *e, const char *id)
{
    return str_eq (e->record.formation_id, id);
}

/* The formations that are named, each once, newest first. */
static void
list_ids (const struct running_scan *scan, struct strv *ids)
{
    for (size_t i = 0; i < scan->len; i++) {
        const char *id = scan->entries[i].record.formation_id;
        if (id && ! strv_contains (ids, id))
            strv_push (ids, id);
    }
    strv_sort (ids);
}

static bool
is_listed (const struct running_scan *scan, const char *session_id)
{
    for (size_t i = 0; i < scan->len; i++)
        if (scan->entries[i].liveness != RUNNING_GONE &&
            str_eq (scan->entries[i].record.session_id, session_id))
            return true;
    return false;
}

static void
fill (struct summary *s, const struct running_scan *scan, const char *id)
{
    *s = (struct summary){ .id = id };
    for (size_t i = 0; i < scan->len; i++) {
        const struct running_entry *e = &scan->entries[i];
        if (! is_of (e, id))
            continue;
        s->listed += e->liveness != RUNNING_GONE;
        if (e->record.formation_entry)
            s->entry = e->record.formation_member;
        if (! s->work_root || e->record.formation_entry)
            s->work_root = e->record.workdir;
    }
    s->traces = formation_traces_read (id, s->work_root, NULL);
    for (size_t i = 0; s->traces && i < formation_member_count (s->traces); i++) {
        struct formation_member_view m = formation_member_at (s->traces, i);
        if (m.exit_status)
            s->ended++;
        else if (! is_listed (scan, m.session_id))
            s->gone_without_ending++;
    }
}

static void
summary_clear (struct summary *s)
{
    if (s->traces)
        formation_traces_free (s->traces);
}

/* --- JSON --- */

static json_t *
texts (const struct strv *list)
{
    json_t *array = json_array ();
    for (size_t i = 0; list && i < list->len; i++)
        json_array_append_new (array, json_string_lossy (list->items[i], strlen (list->items[i])));
    return array;
}

/* --json removes nothing, so that the record of a session that is gone is still there. */
static json_t *
not_listed (const struct running_scan *scan, const char *id)
{
    json_t *array = json_array ();
    for (size_t i = 0; i < scan->len; i++) {
        const struct running_entry *e = &scan->entries[i];
        if (! is_of (e, id) || e->liveness != RUNNING_GONE)
            continue;
        json_t *one = json_object ();
        json_set_string (one, "session_id", e->record.session_id);
        json_set_string (one, "formation_member", e->record.formation_member);
        json_set_string (one, "reason", e->gone_reason);
        json_set_bool (one, "record_kept", true);
        json_array_append_new (array, one);
    }
    return array;
}

json_t *
ps_formations_json (const struct running_scan *scan)
{
    json_t *array = json_array ();
    _cleanup_strv_ struct strv ids = { 0 };
    list_ids (scan, &ids);
    for (size_t i = ids.len; i-- > 0;) {
        _cleanup_ (summary_clear) struct summary s;
        fill (&s, scan, ids.items[i]);
        json_t *one = json_object ();
        json_set_string (one, "formation_id", s.id);
        json_set_string (one, "entry_member", s.entry);
        json_set_u64 (one, "listed", s.listed);
        json_set_u64 (one, "ended", s.ended);
        json_set_u64 (one, "gone_without_ending", s.gone_without_ending);
        json_object_set_new (one, "not_listed", not_listed (scan, s.id));
        json_object_set_new (one, "searched_roots",
                             texts (s.traces ? formation_searched (s.traces) : NULL));
        json_object_set_new (one, "unreadable_roots",
                             texts (s.traces ? formation_unreadable (s.traces) : NULL));
        json_array_append_new (array, one);
    }
    return array;
}

/* --- the table's summary --- */

static void
print_one (const struct running_scan *scan, const struct summary *s)
{
    size_t pruned = 0;
    _cleanup_strv_ struct strv names = { 0 };
    for (size_t i = 0; i < scan->len; i++) {
        const struct running_entry *e = &scan->entries[i];
        if (! is_of (e, s->id))
            continue;
        pruned += e->liveness == RUNNING_GONE;
        if (e->liveness != RUNNING_GONE)
            strv_push (&names, e->record.formation_member ? e->record.formation_member : "-");
    }
    strv_sort (&names);
    _cleanup_free_ char *list = strv_join (&names, ", ");
    out_printf ("formation %s: %zu listed", s->id, s->listed);
    if (names.len)
        out_printf (" (%s)", list);
    if (pruned)
        out_printf (", %zu pruned now", pruned);
    if (s->ended)
        out_printf ("; %zu ended", s->ended);
    if (s->gone_without_ending)
        out_printf ("; %zu gone without an ending", s->gone_without_ending);
    out_puts ("\n");
}

void
ps_formations_print (const struct running_scan *scan)
{
    _cleanup_strv_ struct strv ids = { 0 };
    list_ids (scan, &ids);
    for (size_t i = ids.len; i-- > 0;) {
        _cleanup_ (summary_clear) struct summary s;
        fill (&s, scan, ids.items[i]);
        print_one (scan, &s);
    }
}
