/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/fleet.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/fdio.h"
#include "base/secret.h"
#include "roost/fleet_internal.h"
#include "roost/fleet_tend.h"
#include "roost/fleet_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#define LIST_MS 30000

/* --- keys --- */

/* Two keys of 32 bytes: of the MACs, and of the doors' tokens. */
static bool
read_keys (struct fleet *f, struct mur_error **err)
{
    const char *path = f->options.key_file;
    if (! ed25519_load (err))
        return false;
    if (! path) {
        random_bytes (f->mac_key, sizeof f->mac_key);
        return ed25519_new_pair (f->sign_key, f->verify_key) ||
               mur_fail (err, E_IO_003, "no key pair for the tokens of doors can be made");
    }
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    _cleanup_buf_ struct buf text = { 0 };
    if (fd < 0 || ! fd_read_all (fd, 4096, &text))
        return mur_fail_errno (err, E_IO_003, "--key-file %s", path);
    bool is_whole = text.len == sizeof f->mac_key + sizeof f->sign_key;
    if (is_whole) {
        memcpy (f->mac_key, text.data, sizeof f->mac_key);
        memcpy (f->sign_key, text.data + sizeof f->mac_key, sizeof f->sign_key);
    }
    if (text.data)
        secret_wipe (text.data, text.len);
    if (! is_whole)
        return mur_fail (err, E_IO_003, "--key-file %s holds %zu bytes, not 64", path, text.len);
    return ed25519_public_of (f->sign_key, f->verify_key) ||
           mur_fail (err, E_IO_003, "--key-file %s: its second half is no key", path);
}

struct fleet *
fleet_new (const struct fleet_options *options, struct mur_error **err)
{
    struct fleet *f = x_new0 (struct fleet);
    f->options = *options;
    f->kube = kube_new (options->kubeconfig, err);
    if (f->kube && read_keys (f, err)) {
        f->namespace =
            x_strdup (options->namespace ? options->namespace : kube_namespace (f->kube));
        f->cancel = cancel_new ();
        f->started_ms = clock_monotonic_ms ();
        condition_init (&f->changed);
        return f;
    }
    kube_free (f->kube);
    free (f);
    return NULL;
}

void
fleet_stop (struct fleet *f)
{
    if (! f)
        return;
    cancel_raise (f->cancel);
    pthread_mutex_lock (&f->referee->lock);
    pthread_cond_broadcast (&f->changed);
    pthread_mutex_unlock (&f->referee->lock);
}

void
fleet_free (struct fleet *f)
{
    if (! f)
        return;
    const pthread_t threads[] = { f->job_watch, f->pod_watch, f->tender };
    cancel_raise (f->cancel);
    for (unsigned i = 0; i < f->threads; i++)
        pthread_join (threads[i], NULL);
    for (size_t i = 0; i < f->len; i++)
        fleet_placed_free (f->items[i]);
    free (f->items);
    kube_free (f->kube);
    cancel_unref (f->cancel);
    pthread_cond_destroy (&f->changed);
    secret_wipe (f->mac_key, sizeof f->mac_key);
    secret_wipe (f->sign_key, sizeof f->sign_key);
    free (f->namespace);
    free (f);
}

bool
fleet_start (struct fleet *f, struct referee *r, struct mur_error **err)
{
    const struct {
        pthread_t *thread;
        void *(*run) (void *);
    } all[] = { { &f->job_watch, fleet_watch_jobs },
                { &f->pod_watch, fleet_watch_pods },
                { &f->tender, fleet_tend } };
    f->referee = r;
    r->fleet = f;
    memcpy (r->key, f->mac_key, sizeof r->key);
    /* Signals stay with the thread that expects them. */
    sigset_t every, before;
    sigfillset (&every);
    pthread_sigmask (SIG_SETMASK, &every, &before);
    for (size_t i = 0; i < ARRAY_LEN (all); i++)
        if (pthread_create (all[i].thread, NULL, all[i].run, f) == 0)
            f->threads++;
        else
            break;
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    if (f->threads < ARRAY_LEN (all))
        return mur_fail (err, E_IO_003, "no thread to watch the cluster with");
    uint64_t at_ms = clock_monotonic_ms () + LIST_MS;
    const struct timespec at = { (time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000 };
    int status = 0;
    pthread_mutex_lock (&r->lock);
    /* Who asks before the sessions of before are known would be taken for a stranger. */
    while (! f->is_restored && status != ETIMEDOUT)
        status = pthread_cond_timedwait (&f->changed, &r->lock, &at);
    bool is_whole = f->is_restored;
    pthread_mutex_unlock (&r->lock);
    return is_whole ||
           mur_fail (err, E_KUB_002,
                     "the Jobs and pods of namespace %s could not be listed within %d s",
                     f->namespace, LIST_MS / 1000);
}
