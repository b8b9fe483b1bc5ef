/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/session_state.h"

#include <string.h>
#include <unistd.h>

void
session_tell (struct mur_session *s)
{
    s->changes++;
    pthread_cond_broadcast (&s->news);
}

bool
session_is_ours (const struct mur_session *s)
{
    return s && s->owner == getpid ();
}

const struct secret *
session_token (const struct mur_session *s, const char *name)
{
    for (size_t i = 0; i < s->ready.names.len; i++)
        if (str_eq (s->ready.names.items[i], name))
            return s->ready.tokens[i];
    return NULL;
}
