/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/refused.h"

#include "base/alloc.h"
#include "session/state/held_hosts.h"
#include "session/state/session.h"

#include <pthread.h>
#include <string.h>

#define SESSION_MOST 400 /* lines of one session */

struct refusal {
    char *what; /* a host, or a line */
    int port;   /* of a host */
    bool is_host;
    uint64_t count;
};

struct refused {
    pthread_mutex_t lock;
    struct refusal items[REFUSED_MOST];
    size_t len;
    size_t recorded; /* lines of the session; whoever acts as the task loop */
};

void
refused_new (struct session *s)
{
    s->rooms.refused = x_new0 (struct refused);
    pthread_mutex_init (&s->rooms.refused->lock, NULL);
}

static void
forget (struct refusal *items, size_t len)
{
    for (size_t i = 0; i < len; i++)
        free (items[i].what);
}

void
refused_free (struct session *s)
{
    if (! s->rooms.refused)
        return;
    forget (s->rooms.refused->items, s->rooms.refused->len);
    pthread_mutex_destroy (&s->rooms.refused->lock);
    free (s->rooms.refused);
    s->rooms.refused = NULL;
}

static void
note (struct refused *r, const char *what, int port, bool is_host)
{
    pthread_mutex_lock (&r->lock);
    size_t i = 0;
    while (i < r->len && (r->items[i].is_host != is_host || r->items[i].port != port ||
                          ! str_eq (r->items[i].what, what)))
        i++;
    if (i == r->len && r->len < REFUSED_MOST)
        r->items[r->len++] = (struct refusal){ x_strdup (what), port, is_host, 0 };
    r->items[i < r->len ? i : r->len - 1].count++;
    pthread_mutex_unlock (&r->lock);
}

void
refused_note_host (void *session, const char *host, int port)
{
    const struct session *s = session;
    note (s->rooms.refused, host, port, true);
}

void
refused_note_line (struct session *s, const char *line)
{
    note (s->rooms.refused, line, 0, false);
}

static void
record_host (struct session *s, const char *task_id, uint64_t turn, const char *by,
             const struct refusal *r)
{
    const struct allow_hold *hold = held_hosts_of (s);
    bool is_held = hold && held_hosts_names (s, r->what);
    _cleanup_free_ char *rule = x_asprintf (
        is_held ? "approvals.hosts: %s" : "capabilities.network.allow: no entry is %s", r->what);
    _cleanup_free_ char *remedy =
        is_held ? x_strdup ("name the host in the call, so that somebody can approve it")
                : x_asprintf ("capabilities.network.allow: [%s]", r->what);
    TRACE (s->trace, NULL, network_refused, .turn = turn, .task_id = task_id, .target = by,
           .host = r->what, .port = { r->port != 0, r->port }, .rule = rule, .remedy = remedy,
           .count = r->count);
}

static void
record_line (struct session *s, const char *task_id, uint64_t turn, const char *by,
             const struct refusal *r)
{
    const char *open = strrchr (r->what, '(');
    size_t len = strlen (r->what);
    bool has_rule = open && open > r->what && r->what[len - 1] == ')';
    _cleanup_free_ char *what =
        has_rule ? x_strndup (r->what, (size_t)(open - r->what) - 1) : x_strdup (r->what);
    _cleanup_free_ char *remedy =
        has_rule ? x_strndup (open + 1, len - (size_t)(open - r->what) - 2) : NULL;
    _cleanup_free_ char *rule = remedy ? x_strndup (remedy, strcspn (remedy, ": ")) : NULL;
    TRACE (s->trace, NULL, command_refused, .turn = turn, .task_id = task_id, .binary = by,
           .what = what, .rule = rule, .remedy = remedy, .count = r->count);
}

void
refused_record (struct session *s, const char *task_id, uint64_t turn, const char *by)
{
    struct refused *r = s->rooms.refused;
    struct refusal items[REFUSED_MOST];
    pthread_mutex_lock (&r->lock);
    size_t len = r->len;
    memcpy (items, r->items, len * sizeof *items);
    r->len = 0;
    pthread_mutex_unlock (&r->lock);
    for (size_t i = 0; i < len && r->recorded < SESSION_MOST; i++, r->recorded++)
        (items[i].is_host ? record_host : record_line) (s, task_id, turn, by, &items[i]);
    forget (items, len);
}
