/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/lines/sent_lists.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/digest.h"
#include "base/ids.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

struct kept_message {
    char id[ID_LEN + 1];
    char sha[SHA256_HEX_LEN + 1];
};

struct sent_lists {
    pthread_mutex_t lock;
    uint64_t clock;
    struct kept_list {
        char event_id[ID_LEN + 1]; /* "": the place is free */
        uint64_t used;             /* of the clock, when it was added */
        struct kept_message *items;
        size_t len, cap;
    } lists[SENT_LISTS];
};

struct sent_lists *
sent_lists_new (void)
{
    struct sent_lists *l = x_new0 (struct sent_lists);
    pthread_mutex_init (&l->lock, NULL);
    return l;
}

void
sent_lists_free (struct sent_lists *l)
{
    if (! l)
        return;
    for (size_t i = 0; i < SENT_LISTS; i++)
        free (l->lists[i].items);
    pthread_mutex_destroy (&l->lock);
    free (l);
}

static size_t
shared_beginning (const struct kept_list *list, const struct sent_message *messages, size_t count)
{
    size_t n = 0;
    while (n < list->len && n < count && str_eq (list->items[n].id, messages[n].id) &&
           (! messages[n].sha[0] || str_eq (list->items[n].sha, messages[n].sha)))
        n++;
    return n;
}

static struct kept_list *
list_of (struct sent_lists *l, const char *event_id)
{
    for (size_t i = 0; i < SENT_LISTS && event_id[0]; i++)
        if (str_eq (l->lists[i].event_id, event_id))
            return &l->lists[i];
    return NULL;
}

static struct kept_list *
oldest (struct sent_lists *l)
{
    struct kept_list *found = &l->lists[0];
    for (size_t i = 1; i < SENT_LISTS; i++)
        if (l->lists[i].used < found->used)
            found = &l->lists[i];
    return found;
}

struct sent_base
sent_lists_find (struct sent_lists *l, const struct sent_message *messages, size_t count)
{
    struct sent_base base = { 0 };
    if (count <= SENT_IN_FULL)
        return base;
    pthread_mutex_lock (&l->lock);
    for (size_t i = 0; i < SENT_LISTS; i++) {
        const struct kept_list *list = &l->lists[i];
        size_t shared = list->event_id[0] ? shared_beginning (list, messages, count) : 0;
        if (shared <= base.kept)
            continue;
        base.kept = shared;
        memcpy (base.after, list->event_id, sizeof (list->event_id));
    }
    pthread_mutex_unlock (&l->lock);
    return base;
}

/* False for a message no list can hold: its id is none of ours. */
static bool
keep (struct kept_list *list, const struct sent_message *m)
{
    if (strlen (m->id) > ID_LEN || strlen (m->sha) > SHA256_HEX_LEN)
        return false;
    x_grow (list->items, list->len, list->cap);
    struct kept_message *kept = &list->items[list->len++];
    strcpy (kept->id, m->id);
    strcpy (kept->sha, m->sha);
    return true;
}

void
sent_lists_add (struct sent_lists *l, const char *event_id, const struct sent_base *base,
                const struct sent_message *messages, size_t count)
{
    if (count <= SENT_IN_FULL || strlen (event_id) > ID_LEN)
        return;
    pthread_mutex_lock (&l->lock);
    struct kept_list *list = list_of (l, base->after);
    size_t kept = list && base->kept <= list->len ? base->kept : 0;
    list = list ? list : oldest (l);
    list->len = kept;
    strcpy (list->event_id, event_id);
    list->used = ++l->clock;
    for (size_t i = kept; i < count; i++)
        if (! keep (list, &messages[i])) {
            list->event_id[0] = '\0';
            break;
        }
    pthread_mutex_unlock (&l->lock);
}

struct sent_message *
sent_lists_first (struct sent_lists *l, const char *after, size_t count)
{
    pthread_mutex_lock (&l->lock);
    const struct kept_list *list = list_of (l, after);
    struct sent_message *messages = NULL;
    if (list && count <= list->len) {
        messages = x_new_array (struct sent_message, count + 1);
        for (size_t i = 0; i < count; i++)
            messages[i] = (struct sent_message){ list->items[i].id, list->items[i].sha };
    }
    pthread_mutex_unlock (&l->lock);
    return messages;
}
