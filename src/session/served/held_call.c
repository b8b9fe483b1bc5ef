/* SPDX-License-Identifier: Apache-2.0
 *
 * A held call by itself: what it is made of, and what answers it.
 */
#include "base/clock.h"
#include "mcp/input.h"
#include "session/served/held_internal.h"

void
held_free (struct held_call *h)
{
    free (h->name);
    free (h->traceparent);
    free (h->principal);
    free (h->task.said);
    json_decref (h->task.end);
    json_decref (h->arguments);
    json_decref (h->message_id);
    json_decref (h->capabilities);
    json_decref (h->asked);
    json_decref (h->given);
    json_decref (h->ahead);
    cancel_unref (h->cancel);
    call_outcome_clear (&h->outcome);
    free (h);
}

void
held_forget (struct held_call *h)
{
    struct held_call **at = &h->served->held.open;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    held_free (h);
}

void
held_take (struct held_call *h, const json_t *responses)
{
    const char *key;
    void *tmp;
    json_t *request;
    json_object_foreach_safe (h->asked, tmp, key, request)
    {
        json_t *response = json_object_get (responses, key);
        if (! mcp_input_is_answered (request, response))
            continue;
        json_object_set (h->given, key, response);
        json_object_del (h->asked, key);
    }
}

void
held_task_touch (struct held_call *h)
{
    h->task.changed_ms = clock_unix_ms ();
}
