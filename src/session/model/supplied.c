/* SPDX-License-Identifier: Apache-2.0 */
#include "session/model/supplied.h"

#include "base/alloc.h"

#include <pthread.h>
#include <string.h>

struct supplied_secrets {
    const struct str_list *names;
    pthread_mutex_t lock;   /* a leaf: guards the values */
    struct secret **values; /* in the order of the names; NULL: not set */
};

struct supplied_secrets *
supplied_secrets_new (const struct str_list *names)
{
    struct supplied_secrets *s = x_new0 (struct supplied_secrets);
    s->names = names;
    pthread_mutex_init (&s->lock, NULL);
    s->values = x_new_array (struct secret *, names->len + 1);
    return s;
}

void
supplied_secrets_free (struct supplied_secrets *s)
{
    if (! s)
        return;
    for (size_t i = 0; i < s->names->len; i++)
        secret_free (s->values[i]);
    free (s->values);
    pthread_mutex_destroy (&s->lock);
    free (s);
}

static struct secret **
place_of (const struct supplied_secrets *s, const char *name)
{
    for (size_t i = 0; i < s->names->len; i++)
        if (strcmp (s->names->items[i], name) == 0)
            return &s->values[i];
    return NULL;
}

bool
supplied_secrets_owns (const struct supplied_secrets *s, const char *name)
{
    return s && place_of (s, name);
}

struct secret *
supplied_secrets_get (struct supplied_secrets *s, const char *name)
{
    pthread_mutex_lock (&s->lock);
    const struct secret *value = *place_of (s, name);
    struct secret *copy = value ? secret_copy (value) : NULL;
    pthread_mutex_unlock (&s->lock);
    return copy;
}

bool
supplied_secrets_put (struct supplied_secrets *s, const char *name, struct secret *value)
{
    pthread_mutex_lock (&s->lock);
    struct secret **place = place_of (s, name), *before = *place;
    *place = value;
    pthread_mutex_unlock (&s->lock);
    secret_free (before);
    return before != NULL;
}
