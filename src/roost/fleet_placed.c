/* SPDX-License-Identifier: Apache-2.0
 *
 * The Jobs as last heard of: finding one, and the few ways one changes.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "deploy/object_name.h"
#include "manifest/settings/roster.h"
#include "roost/fleet_internal.h"

#include <string.h>

/* --- finding --- */

struct placed *
fleet_find_job (const struct fleet *f, const char *job)
{
    for (size_t i = 0; i < f->len; i++)
        if (str_eq (f->items[i]->job, job))
            return f->items[i];
    return NULL;
}

struct placed *
fleet_find_member (const struct fleet *f, const char *entry, const char *member)
{
    for (size_t i = 0; i < f->len; i++)
        if (f->items[i]->seat.entry && str_eq (f->items[i]->seat.entry, entry) &&
            str_eq (f->items[i]->seat.member, member))
            return f->items[i];
    return NULL;
}

struct placed *
fleet_find_session (const struct fleet *f, const char *session)
{
    for (size_t i = 0; i < f->len; i++)
        if (session && str_eq (f->items[i]->session, session))
            return f->items[i];
    return NULL;
}

struct placed *
fleet_find_delegation (const struct fleet *f, const char *delegation)
{
    for (size_t i = 0; i < f->len; i++)
        if (*delegation && str_eq (f->items[i]->delegation, delegation))
            return f->items[i];
    return NULL;
}

struct placed *
fleet_add (struct fleet *f, const char *job)
{
    struct placed *p = x_new0 (struct placed);
    p->job = x_strdup (job);
    p->created_ms = p->news = clock_unix_ms (); /* so news of a later referee is news, too */
    x_grow (f->items, f->len, f->cap);
    f->items[f->len++] = p;
    return p;
}

static void
team_free (struct fleet_team *t)
{
    if (! t)
        return;
    for (size_t i = 0; t->sha256 && i < t->roster->len; i++)
        free (t->sha256[i]);
    free (t->sha256);
    roster_free (t->roster);
    free (t->code);
    free (t->fault);
    free (t);
}

void
fleet_placed_free (struct placed *p)
{
    char *const all[] = { p->job,           p->uid,         p->root,           p->parent,
                          p->name,          p->version,     p->session,        p->pod.name,
                          p->pod.uid,       p->pod.ip,      p->pod.fault,      p->pod.wait,
                          p->end.status,    p->end.detail,  p->end.answer,     p->doom,
                          p->end.job_fault, p->seat.member, p->seat.formation, p->seat.entry };
    team_free (p->seat.team);
    for (size_t i = 0; i < ARRAY_LEN (all); i++)
        free (all[i]);
    free (p);
}

void
fleet_remove (struct fleet *f, struct placed *p)
{
    for (size_t i = 0; i < f->len; i++)
        if (f->items[i] == p) {
            f->items[i] = f->items[--f->len];
            fleet_placed_free (p);
            return;
        }
}

/* --- changing --- */

void
fleet_tell (struct fleet *f, struct placed *p)
{
    struct placed *entry = p && p->seat.entry ? fleet_find_job (f, p->seat.entry) : NULL;
    if (p)
        p->news++;
    if (entry) /* what its formation waits for */
        entry->news++;
    pthread_cond_broadcast (&f->changed);
}

void
fleet_doom (struct fleet *f, struct placed *p, const char *why)
{
    if (p->doom || p->is_deleted)
        return;
    p->doom = x_strdup (why);
    pthread_cond_broadcast (&f->changed);
}

static const char *
hex_of (const struct placed *p)
{
    return p->delegation + strlen ("dlg_");
}

void
fleet_reserve (struct fleet *f, const struct placed *p)
{
    struct referee *r = f->referee;
    fleet_unreserve (f, p);
    struct reservation reserved = { .parent = x_strdup (p->parent), .expires_ms = UINT64_MAX };
    memcpy (reserved.jti, hex_of (p), sizeof reserved.jti);
    x_grow (r->reservations, r->reservation_len, r->reservation_cap);
    r->reservations[r->reservation_len++] = reserved;
}

void
fleet_unreserve (struct fleet *f, const struct placed *p)
{
    struct referee *r = f->referee;
    for (size_t i = 0; *p->delegation && i < r->reservation_len; i++)
        if (str_eq (r->reservations[i].jti, hex_of (p))) {
            referee_drop_reservation (r, i);
            return;
        }
}

/* With those that ran in the same pod. */
static void
finish_session (struct fleet *f, const char *session)
{
    struct referee *r = f->referee;
    struct job *j = job_table_find (&r->jobs, session);
    if (j && j->state == JOB_RUNNING)
        referee_finish (r, j, JOB_FAILED);
    for (size_t i = 0; i < r->jobs.size; i++) {
        const struct job *below = r->jobs.slots[i];
        if (below && below->state == JOB_RUNNING && str_eq (below->parent, session) &&
            ! fleet_find_session (f, below->session_id))
            finish_session (f, below->session_id);
    }
}

void
fleet_end (struct fleet *f, struct placed *p, const char *status, const char *detail)
{
    if (p->state == PLACED_ENDED)
        return;
    p->state = PLACED_ENDED;
    if (! p->end.status) {
        p->end.status = x_strdup (status);
        p->end.detail = detail ? x_strdup (detail) : NULL;
        p->end.duration_ms = p->registered_ms ? clock_unix_ms () - p->registered_ms : 0;
    }
    fleet_unreserve (f, p);
    if (p->session)
        finish_session (f, p->session);
    for (size_t i = 0; i < f->len; i++)
        if (p->session && str_eq (f->items[i]->parent, p->session) &&
            f->items[i]->state != PLACED_ENDED)
            fleet_doom (f, f->items[i], "the session that started it has ended");
    fleet_tell (f, p);
}

/* --- doors --- */

char *
fleet_address (const struct placed *p)
{
    if (p->state != PLACED_RUNNING || ! p->pod.ip)
        return NULL;
    bool is_v6 = strchr (p->pod.ip, ':') != NULL;
    return x_asprintf ("%s%s%s:%d", is_v6 ? "[" : "", p->pod.ip, is_v6 ? "]" : "", DEPLOY_PORT);
}

char *
fleet_formation (const struct fleet *f, const struct placed *p)
{
    char hex[SHA256_HEX_LEN + 1];
    if (p->seat.formation)
        return x_strdup (p->seat.formation);
    _cleanup_free_ char *text = x_asprintf ("%s/%s", f->namespace, p->root);
    sha256_hex (text, strlen (text), hex);
    return x_asprintf ("frm_%.32s", hex);
}

/* A member's name is a letter and 31 more. */
char *
fleet_member (const struct placed *p)
{
    if (p->seat.member)
        return x_strdup (p->seat.member);
    return *p->delegation ? x_asprintf ("d%.31s", hex_of (p) + 1) : x_strdup ("root");
}

/* --- objects --- */

char *
fleet_path (const struct fleet *f, const char *kind, const char *name)
{
    bool is_job = str_eq (kind, "jobs");
    return x_asprintf ("/%s/namespaces/%s/%s%s%s", is_job ? "apis/batch/v1" : "api/v1",
                       f->namespace, kind, name ? "/" : "", name ? name : "");
}
