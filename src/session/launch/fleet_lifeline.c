/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/fleet_lifeline.h"

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/json.h"
#include "net/http_client.h"
#include "spawn/child/lifeline.h"
#include "spawn/child/roost_client.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#define ASK_MS     20000 /* a child outlives its parent by no more than twice as long */
#define TIMEOUT_MS 10000

struct fleet_lifeline {
    char *roost_url, *path;
    int write_fd; /* -1 once the referee has said its word */
    struct cancel *over;
    pthread_t thread;
};

static bool
is_over (const struct fleet_lifeline *l, struct http_client *http)
{
    const struct roost_request request = {
        .url = l->roost_url, .path = l->path, .total_timeout_ms = TIMEOUT_MS, .cancel = l->over
    };
    struct roost_refusal refusal = { 0 };
    _cleanup_json_ json_t *answer = roost_ask (http, &request, &refusal);
    free (refusal.text);
    const char *status = json_get_string (answer, "status");
    return status && ! str_eq (status, "running");
}

static void *
ask_on (void *ctx)
{
    struct fleet_lifeline *l = ctx;
    struct http_client *http = http_client_new ();
    while (cancel_sleep (l->over, ASK_MS))
        if (is_over (l, http) && ! cancel_is_raised (l->over)) {
            close (l->write_fd);
            l->write_fd = -1;
            break;
        }
    http_client_free (http);
    return NULL;
}

struct fleet_lifeline *
fleet_lifeline_new (const char *roost_url, const char *session_id, struct mur_error **err)
{
    int ends[2];
    if (pipe2 (ends, O_CLOEXEC) < 0) {
        mur_fail_errno (err, E_IO_003, "cannot make a lifeline");
        return NULL;
    }
    struct fleet_lifeline *l = x_new0 (struct fleet_lifeline);
    l->roost_url = x_strdup (roost_url);
    l->path = x_asprintf ("/status/%s", session_id);
    l->write_fd = ends[1];
    l->over = cancel_new ();
    lifeline_give (LIFELINE_SPAWNER, ends[0]);
    int failed = pthread_create (&l->thread, NULL, ask_on, l);
    if (! failed)
        return l;
    errno = failed;
    mur_fail_errno (err, E_IO_003, "cannot watch over the parent");
    cancel_unref (l->over);
    free (l->roost_url);
    free (l->path);
    free (l); /* its pipe stays: an end of it would be the parent's */
    return NULL;
}

void
fleet_lifeline_free (struct fleet_lifeline *l)
{
    if (! l)
        return;
    cancel_raise (l->over);
    pthread_join (l->thread, NULL);
    cancel_unref (l->over);
    free (l->roost_url);
    free (l->path);
    free (l); /* likewise */
}
