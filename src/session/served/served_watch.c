/* SPDX-License-Identifier: Apache-2.0
 *
 * Resources that clients look after: a look at each of them every second, while there are any;
 * which there are, looked at less often; and tools that changed while no client called.
 *
 * Always true: what is told was seen to change since it was asked for; nobody is told under the
 * lock.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "door/door.h"
#include "session/served/served_internal.h"

#define LOOK_MS     1000
#define LIST_LOOKS  3    /* so many looks at resources to one at which there are */
#define WATCHED_MAX 1024 /* of all clients */

struct watched {
    struct watched *next;
    char *uri, *mark; /* what it was when it was last looked at */
    unsigned count;   /* lists it is on */
};

void
served_watch_init (struct served_watch *w)
{
    pthread_mutex_init (&w->lock, NULL);
    condition_init (&w->changed);
}

static void
watched_free (struct watched *one)
{
    free (one->uri);
    free (one->mark);
    free (one);
}

void
served_watch_destroy (struct served_watch *w)
{
    while (w->all) {
        struct watched *one = w->all;
        w->all = one->next;
        watched_free (one);
    }
    free (w->list_mark);
    pthread_cond_destroy (&w->changed);
    pthread_mutex_destroy (&w->lock);
}

/* Under the lock. */
static struct watched **
find (struct served_watch *w, const char *uri)
{
    struct watched **at = &w->all;
    while (*at && ! str_eq ((*at)->uri, uri))
        at = &(*at)->next;
    return at;
}

/* Under the lock. True when it was another before. */
static bool
take_mark (struct served_watch *w, const char *uri, char *mark)
{
    struct watched *one = *find (w, uri);
    bool is_new = one && ! str_eq (one->mark, mark);
    if (! is_new) {
        free (mark);
        return false;
    }
    free (one->mark);
    one->mark = mark;
    return true;
}

static void
look_at_list (struct served *v)
{
    struct served_watch *w = &v->watch;
    char *mark = served_list_mark (v);
    pthread_mutex_lock (&w->lock);
    bool is_new = ! str_eq (mark, w->list_mark);
    char *before = w->list_mark;
    w->list_mark = mark;
    pthread_mutex_unlock (&w->lock);
    free (before);
    if (! is_new)
        return;
    stdio_server_tell_resources (v->stdio);
    door_tell_mcp_list (v->s->door, MCP_LIST_RESOURCES);
}

static void
look (struct served *v)
{
    struct served_watch *w = &v->watch;
    _cleanup_strv_ struct strv uris = { 0 };
    pthread_mutex_lock (&w->lock);
    for (const struct watched *one = w->all; one; one = one->next)
        strv_push (&uris, one->uri);
    pthread_mutex_unlock (&w->lock);
    for (size_t i = 0; i < uris.len; i++) {
        char *mark = served_resource_mark (v, uris.items[i]);
        pthread_mutex_lock (&w->lock);
        bool is_new = take_mark (w, uris.items[i], mark);
        pthread_mutex_unlock (&w->lock);
        if (! is_new)
            continue;
        stdio_server_tell_resource (v->stdio, uris.items[i]);
        door_tell_mcp_resource (v->s->door, uris.items[i]);
    }
}

/* Without the lock. */
static void
tell_tools (struct served *v)
{
    served_tell_changes (v);
    stdio_server_tell_tools (v->stdio);
}

static void *
watch_thread (void *arg)
{
    struct served *v = arg;
    struct served_watch *w = &v->watch;
    pthread_mutex_lock (&w->lock);
    while (! w->is_over) {
        uint64_t at_ms = clock_monotonic_ms () + LOOK_MS;
        struct timespec at = { (time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000 };
        if (w->has_new_tools) {
            w->has_new_tools = false;
            pthread_mutex_unlock (&w->lock);
            tell_tools (v);
            pthread_mutex_lock (&w->lock);
            continue;
        }
        if (w->all || w->lists)
            pthread_cond_timedwait (&w->changed, &w->lock, &at);
        else
            pthread_cond_wait (&w->changed, &w->lock);
        bool is_wanted = (w->all || w->lists) && ! w->is_over && clock_monotonic_ms () >= at_ms;
        if (! is_wanted)
            continue;
        bool is_turn = w->lists && ++w->looks % LIST_LOOKS == 0;
        pthread_mutex_unlock (&w->lock);
        look (v);
        if (is_turn)
            look_at_list (v);
        pthread_mutex_lock (&w->lock);
    }
    pthread_mutex_unlock (&w->lock);
    return NULL;
}

/* Under the lock. */
static bool
is_looking (struct served *v)
{
    struct served_watch *w = &v->watch;
    w->is_running =
        w->is_running || (! w->is_over && pthread_create (&w->thread, NULL, watch_thread, v) == 0);
    return w->is_running;
}

void
served_watch_tools (struct session *s)
{
    struct served_watch *w = &s->rooms.served->watch;
    pthread_mutex_lock (&w->lock);
    w->has_new_tools = true;
    if (is_looking (s->rooms.served))
        pthread_cond_signal (&w->changed);
    pthread_mutex_unlock (&w->lock);
}

/* Under the lock; <mark> is taken over. False: there are too many. */
static bool
put (struct served *v, const char *uri, char *mark)
{
    struct served_watch *w = &v->watch;
    struct watched **at = find (w, uri);
    if (*at) {
        free (mark);
        (*at)->count++;
        return true;
    }
    if (! is_looking (v) || w->count == WATCHED_MAX) {
        free (mark);
        return false;
    }
    *at = x_new0 (struct watched);
    **at = (struct watched){ .uri = x_strdup (uri), .mark = mark, .count = 1 };
    w->count++;
    pthread_cond_signal (&w->changed);
    return true;
}

bool
served_resource_watch (void *ctx, const char *uri, struct mcp_answer *no)
{
    struct served *v = ctx;
    char *mark = served_resource_mark (v, uri);
    if (! mark)
        return mcp_refuse (no, MCP_INVALID_PARAMS, "%s: there is no such resource", uri);
    pthread_mutex_lock (&v->watch.lock);
    bool is_put = put (v, uri, mark);
    pthread_mutex_unlock (&v->watch.lock);
    return is_put || mcp_refuse (no, MCP_INTERNAL,
                                 "%d resources are looked after for all clients, "
                                 "which is the bound",
                                 WATCHED_MAX);
}

void
served_list_watch (void *ctx)
{
    struct served *v = ctx;
    struct served_watch *w = &v->watch;
    char *mark = served_list_mark (v);
    pthread_mutex_lock (&w->lock);
    bool is_first = ! w->lists && is_looking (v);
    if (is_first) {
        w->lists = true;
        w->list_mark = mark;
        pthread_cond_signal (&w->changed);
    }
    pthread_mutex_unlock (&w->lock);
    if (! is_first)
        free (mark);
}

void
served_resource_unwatch (void *ctx, const char *uri)
{
    struct served *v = ctx;
    pthread_mutex_lock (&v->watch.lock);
    struct watched **at = find (&v->watch, uri), *one = *at;
    if (one && --one->count == 0) {
        *at = one->next;
        v->watch.count--;
        watched_free (one);
    }
    pthread_mutex_unlock (&v->watch.lock);
}

void
served_watch_end (struct served *v)
{
    struct served_watch *w = &v->watch;
    pthread_mutex_lock (&w->lock);
    bool is_running = w->is_running;
    w->is_over = true;
    w->is_running = false;
    pthread_cond_signal (&w->changed);
    pthread_mutex_unlock (&w->lock);
    if (is_running)
        pthread_join (w->thread, NULL);
}
