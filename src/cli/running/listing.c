/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/listing.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "client/door_client.h"

#include <string.h>
#include <time.h>

void
listing_free (struct listing *l)
{
    running_scan_free (&l->scan);
    free (l->records);
    free (l->is_live);
}

bool
listing_read (struct listing *l, bool creates, struct mur_error **err)
{
    if (! running_scan (creates, &l->scan, err))
        return false;
    l->records = x_new_array (const struct running_record *, l->scan.len + 1);
    l->is_live = x_new_array (bool, l->scan.len + 1);
    /* Held processes come first in what is asked, so that the two arrays stay in step. */
    size_t asked = 0;
    const struct running_record **held =
        x_new_array (const struct running_record *, l->scan.len + 1);
    for (size_t i = 0; i < l->scan.len; i++) {
        const struct running_entry *e = &l->scan.entries[i];
        if (e->liveness != RUNNING_GONE)
            l->records[l->len++] = &e->record;
        if (e->liveness == RUNNING_HELD)
            held[asked++] = &e->record;
    }
    bool *answers = x_new_array (bool, asked + 1);
    if (asked) {
        struct http_client *client = http_client_new ();
        doors_answer (client, held, asked, answers);
        http_client_free (client);
    }
    for (size_t i = 0, a = 0; i < l->len && a < asked; i++)
        if (l->records[i] == held[a])
            l->is_live[i] = answers[a++];
    free (answers);
    free (held);
    return true;
}

/* Seconds since an RFC 3339 time with an offset of zero; 0 when it cannot be read. */
static uint64_t
seconds_since (const char *started_at)
{
    struct tm tm = { 0 };
    if (! started_at || ! strptime (started_at, "%Y-%m-%dT%H:%M:%S", &tm))
        return 0;
    uint64_t then = (uint64_t)timegm (&tm), now = clock_unix_ms () / 1000;
    return now > then ? now - then : 0;
}

void
listing_uptime (const char *started_at, char out[32])
{
    uint64_t s = seconds_since (started_at);
    unsigned long days = (unsigned long)(s / 86400);
    unsigned hours = (unsigned)(s / 3600 % 24), minutes = (unsigned)(s / 60 % 60);
    if (days)
        snprintf (out, 32, "%lud %02u:%02u:%02u", days, hours, minutes, (unsigned)(s % 60));
    else
        snprintf (out, 32, "%02u:%02u:%02u", hours, minutes, (unsigned)(s % 60));
}

char *
running_work_root (const struct running_record *r)
{
    char *root = x_strdup (r->workdir), *last = strrchr (root, '/');
    if (last && str_eq (last + 1, r->session_id))
        *last = '\0';
    return root;
}
