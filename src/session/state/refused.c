/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/refused.h"

#include "base/alloc.h"
#include "session/state/held_hosts.h"
#include "session/state/session.h"

#include <pthread.h>
#include <string.h>

#define SESSION_MOST 400 /* lines of one session */
#define TOLD_MOST    200

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
    size_t recorded;  /* lines of the session; whoever acts as the task loop */
    struct strv told; /* what the model was told of calls that came through all the same */
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
    strv_free (&s->rooms.refused->told);
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

static bool
is_held (struct session *s, const struct refusal *r)
{
    return held_hosts_of (s) && held_hosts_names (s, r->what);
}

/* The entry of network.allow that would let it through: a host alone means the web's two ports. */
static char *
entry_for (const struct refusal *r)
{
    bool is_usual = r->port == 0 || r->port == 80 || r->port == 443;
    return is_usual ? x_strdup (r->what) : x_asprintf ("%s:%d", r->what, r->port);
}

static const char held_remedy[] = "name the host in the call, so that somebody can approve it";

/* Names of the reverse tree are asked for by logs, not by the work. */
static bool
is_telling (const struct refusal *r)
{
    return r->is_host && ! str_ends (r->what, ".arpa");
}

void
refused_host_lines (struct session *s, struct strv *out)
{
    struct refused *r = s->rooms.refused;
    pthread_mutex_lock (&r->lock);
    for (size_t i = 0; i < r->len; i++) {
        const struct refusal *one = &r->items[i];
        if (! is_telling (one))
            continue;
        _cleanup_free_ char *entry = entry_for (one);
        if (is_held (s, one))
            strv_printf (out, "%s waits for an approval (%s)", entry, held_remedy);
        else
            strv_printf (out, "%s is no host of this capsule (network.allow: [%s])", entry, entry);
    }
    pthread_mutex_unlock (&r->lock);
}

bool
refused_is_news (struct session *s, const char *line)
{
    struct refused *r = s->rooms.refused;
    pthread_mutex_lock (&r->lock);
    bool is_news = ! strv_contains (&r->told, line);
    if (is_news && r->told.len < TOLD_MOST)
        strv_push (&r->told, line);
    pthread_mutex_unlock (&r->lock);
    return is_news;
}

static void
record_host (struct session *s, const char *task_id, uint64_t turn, const char *by,
             const struct refusal *r)
{
    bool has_approval = is_held (s, r);
    _cleanup_free_ char *entry = entry_for (r);
    _cleanup_free_ char *rule = x_asprintf (
        has_approval ? "approvals.hosts: %s" : "capabilities.network.allow: no entry is %s",
        has_approval ? r->what : entry);
    _cleanup_free_ char *remedy = has_approval
                                      ? x_strdup (held_remedy)
                                      : x_asprintf ("capabilities.network.allow: [%s]", entry);
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
