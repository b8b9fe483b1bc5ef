/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/top_rows.h"

#include "base/alloc.h"
#include "cli/running/door_task.h"
#include "client/door_client.h"

#include <string.h>

/* --- what a session has used --- */

static struct token_tally *
tally_of (struct top_rows *rows, const struct running_record *r)
{
    for (size_t i = 0; i < rows->tally_len; i++)
        if (str_eq (rows->tallies[i].session_id, r->session_id)) {
            rows->tallies[i].is_seen = true;
            return &rows->tallies[i].tally;
        }
    x_grow (rows->tallies, rows->tally_len, rows->tally_cap);
    struct top_tally *t = &rows->tallies[rows->tally_len++];
    *t = (struct top_tally){ .session_id = x_strdup (r->session_id), .is_seen = true };
    token_tally_open (&t->tally, r->records_dir);
    return &t->tally;
}

/* Those of sessions that are gone. */
static void
drop_tallies (struct top_rows *rows, bool drops_all)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows->tally_len; i++) {
        struct top_tally *t = &rows->tallies[i];
        if (t->is_seen && ! drops_all) {
            t->is_seen = false;
            rows->tallies[kept++] = *t;
            continue;
        }
        token_tally_clear (&t->tally);
        free (t->session_id);
    }
    rows->tally_len = kept;
}

/* --- what it does --- */

static void
take_tasks (struct top_row *row, const json_t *tasks)
{
    size_t i;
    const json_t *task;
    const char *word = "waits";
    json_array_foreach (tasks, i, task)
    {
        const char *state = json_get_string (json_object_get (task, "status"), "state");
        if (str_eq (state, "TASK_STATE_INPUT_REQUIRED") && ! row->asks)
            row->asks = door_task_words (task);
        else if (str_eq (state, "TASK_STATE_WORKING"))
            word = "works";
    }
    row->state = x_strdup (row->asks ? "asks" : word);
}

static struct top_row
row_of (struct top_rows *rows, const struct running_record *r, bool is_live)
{
    char uptime[32];
    listing_uptime (r->started_at, uptime);
    struct token_tally *tally = tally_of (rows, r);
    struct top_row row = { .session_id = x_strdup (r->session_id),
                           .capsule = x_asprintf ("%s@%s", r->capsule_name, r->capsule_version),
                           .uptime = x_strdup (uptime),
                           .parent = r->spawned_by ? x_strdup (r->spawned_by) : NULL,
                           .work_root = running_work_root (r),
                           .used = tally->fd >= 0 ? token_tally_status (tally) : NULL };
    _cleanup_json_ json_t *tasks =
        is_live ? door_tasks (rows->client, r->url, r->door_token) : NULL;
    if (is_live)
        take_tasks (&row, tasks);
    else
        row.state = x_strdup ("no answer");
    return row;
}

static void
clear_items (struct top_rows *rows)
{
    for (size_t i = 0; i < rows->len; i++) {
        struct top_row *r = &rows->items[i];
        char *const owned[] = { r->session_id, r->capsule, r->state,  r->asks,
                                r->used,       r->uptime,  r->parent, r->work_root };
        for (size_t k = 0; k < ARRAY_LEN (owned); k++)
            free (owned[k]);
    }
    free (rows->items);
    rows->items = NULL;
    rows->len = 0;
}

/* Those that ask first; the order is kept otherwise. */
static void
put_questions_first (struct top_rows *rows)
{
    size_t first = 0;
    for (size_t i = 0; i < rows->len; i++) {
        if (! rows->items[i].asks)
            continue;
        struct top_row row = rows->items[i];
        memmove (&rows->items[first + 1], &rows->items[first], (i - first) * sizeof row);
        rows->items[first++] = row;
    }
}

bool
top_rows_read (struct top_rows *rows, struct mur_error **err)
{
    struct listing l = { 0 };
    if (! rows->client)
        rows->client = http_client_new ();
    bool is_ok = listing_read (&l, false, err);
    if (is_ok) {
        clear_items (rows);
        rows->items = x_new_array (struct top_row, l.len + 1);
        for (size_t i = 0; i < l.len; i++)
            rows->items[rows->len++] = row_of (rows, l.records[i], l.is_live[i]);
        put_questions_first (rows);
        drop_tallies (rows, false);
    }
    listing_free (&l);
    return is_ok;
}

void
top_rows_clear (struct top_rows *rows)
{
    clear_items (rows);
    drop_tallies (rows, true);
    free (rows->tallies);
    http_client_free (rows->client);
}
