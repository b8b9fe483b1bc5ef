/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/jobs.h"

#include "base/alloc.h"
#include "base/buf.h"

#define KEPT_FINISHED 4096

static size_t
hash_id (const char *id)
{
    size_t h = 1469598103934665603u;
    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * 1099511628211u;
    return h;
}

struct job *
job_table_find (const struct job_table *t, const char *session_id)
{
    if (! t->size)
        return NULL;
    size_t mask = t->size - 1;
    for (size_t i = hash_id (session_id) & mask; t->slots[i]; i = (i + 1) & mask)
        if (str_eq (t->slots[i]->session_id, session_id))
            return t->slots[i];
    return NULL;
}

static void
place (struct job **slots, size_t count, struct job *j)
{
    size_t i = hash_id (j->session_id) & (count - 1);
    while (slots[i])
        i = (i + 1) & (count - 1);
    slots[i] = j;
}

static void
job_free (struct job *j)
{
    free (j->session_id);
    free (j->parent);
    free (j->name);
    capsule_manifest_free (j->manifest);
    free (j);
}

/* Those that finished longest ago. The table is laid out anew. */
static void
forget_oldest (struct job_table *t)
{
    struct job **slots = x_new_array (struct job *, t->size);
    for (size_t i = 0; i < t->size; i++) {
        struct job *j = t->slots[i];
        if (j && j->finished && j->finished + KEPT_FINISHED <= t->finished) {
            job_free (j);
            t->count--;
            t->kept--;
        } else if (j) {
            place (slots, t->size, j);
        }
    }
    free (t->slots);
    t->slots = slots;
}

void
job_table_add (struct job_table *t, struct job *j)
{
    if (2 * (t->count + 1) > t->size) {
        size_t slots = t->size ? 2 * t->size : 64;
        struct job **grown = x_new_array (struct job *, slots);
        for (size_t i = 0; i < t->size; i++)
            if (t->slots[i])
                place (grown, slots, t->slots[i]);
        free (t->slots);
        t->slots = grown;
        t->size = slots;
    }
    if (t->kept > 2 * KEPT_FINISHED)
        forget_oldest (t);
    place (t->slots, t->size, j);
    t->count++;
    t->running++;
}

void
job_table_finish (struct job_table *t, struct job *j, enum job_state state)
{
    j->state = state;
    j->finished = ++t->finished;
    t->kept++;
    t->running--;
}

void
job_table_clear (struct job_table *t)
{
    for (size_t i = 0; i < t->size; i++)
        if (t->slots[i])
            job_free (t->slots[i]);
    free (t->slots);
    *t = (struct job_table){ 0 };
}
