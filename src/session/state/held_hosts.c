/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/held_hosts.h"

#include "base/alloc.h"
#include "session/state/session.h"

#include <pthread.h>
#include <strings.h>

struct held_host {
    struct allow_list rule; /* one */
    unsigned open_count;
    bool is_open;
};

struct held_hosts {
    struct allow_hold hold;
    pthread_mutex_t lock;
    struct held_host *by_rule; /* of every rule; those of other kinds are empty */
    size_t len;
};

static bool
is_held (void *ctx, const char *host, int port)
{
    struct held_hosts *h = ctx;
    bool held = false;
    pthread_mutex_lock (&h->lock);
    for (size_t i = 0; i < h->len && ! held; i++) {
        const struct allow_rule *r = h->by_rule[i].rule.rules;
        held = r && strcasecmp (r->host, host) == 0 &&
               (r->port == ALLOW_ANY_PORT || r->port == port) && ! h->by_rule[i].is_open &&
               ! h->by_rule[i].open_count;
    }
    pthread_mutex_unlock (&h->lock);
    return held;
}

void
held_hosts_new (struct session *s)
{
    const struct approval_rules *rules = &s->policy->approvals;
    bool has_any = false;
    for (size_t i = 0; i < rules->len; i++)
        has_any |= rules->items[i].kind == APPROVAL_HOST;
    if (! has_any)
        return;
    struct held_hosts *h = s->rooms.held_hosts = x_new0 (struct held_hosts);
    h->hold = (struct allow_hold){ is_held, h };
    pthread_mutex_init (&h->lock, NULL);
    h->by_rule = x_new_array (struct held_host, rules->len);
    h->len = rules->len;
    for (size_t i = 0; i < rules->len; i++) {
        h->by_rule[i] = (struct held_host){ 0 };
        struct mur_error *ignored = NULL;
        if (rules->items[i].kind == APPROVAL_HOST)
            (void)allow_list_add (&h->by_rule[i].rule, rules->items[i].text, &ignored);
        mur_error_free (ignored);
    }
}

void
held_hosts_free (struct session *s)
{
    struct held_hosts *h = s->rooms.held_hosts;
    if (! h)
        return;
    for (size_t i = 0; i < h->len; i++)
        allow_list_free (&h->by_rule[i].rule);
    free (h->by_rule);
    pthread_mutex_destroy (&h->lock);
    free (h);
    s->rooms.held_hosts = NULL;
}

const struct allow_hold *
held_hosts_of (const struct session *s)
{
    return s->rooms.held_hosts ? &s->rooms.held_hosts->hold : NULL;
}

bool
held_hosts_names (const struct session *s, const char *host)
{
    const struct held_hosts *h = s->rooms.held_hosts;
    for (size_t i = 0; h && i < h->len; i++)
        if (h->by_rule[i].rule.len && strcasecmp (h->by_rule[i].rule.rules[0].host, host) == 0)
            return true;
    return false;
}

void
held_hosts_open (struct session *s, size_t rule, bool is_for_session)
{
    struct held_hosts *h = s->rooms.held_hosts;
    pthread_mutex_lock (&h->lock);
    h->by_rule[rule].is_open |= is_for_session;
    h->by_rule[rule].open_count += ! is_for_session;
    pthread_mutex_unlock (&h->lock);
}

void
held_hosts_close (struct session *s, size_t rule)
{
    struct held_hosts *h = s->rooms.held_hosts;
    pthread_mutex_lock (&h->lock);
    h->by_rule[rule].open_count--;
    pthread_mutex_unlock (&h->lock);
}
