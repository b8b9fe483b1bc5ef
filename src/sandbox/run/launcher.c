/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/launcher.h"

#include "base/alloc.h"
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

enum launcher_state {
    LAUNCHER_STARTING,
    LAUNCHER_FAILED, /* to restrict itself; its thread has ended */
    LAUNCHER_IDLE,
    LAUNCHER_ASKED, /* the request is there, its answer is not */
    LAUNCHER_DONE,  /* the answer is there, whoever asked has not taken it */
    LAUNCHER_ENDING,
};

struct launcher {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum launcher_state state;
    bool walls_sockets;
    pid_t tid;
    int errno_value; /* of LAUNCHER_FAILED */
    const struct spawn_request *request;
    struct spawned *out;
    struct mur_error **err;
    bool is_started;
};

static void
enter (struct launcher *l, enum launcher_state state)
{
    l->state = state;
    pthread_cond_broadcast (&l->changed);
}

static void
await_any (struct launcher *l, enum launcher_state one, enum launcher_state other)
{
    while (l->state != one && l->state != other)
        pthread_cond_wait (&l->changed, &l->lock);
}

static bool
restrict_thread (struct launcher *l)
{
    if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        landlock_share_scope (l->walls_sockets) == 0)
        return true;
    l->errno_value = errno;
    return false;
}

static void *
launch (void *arg)
{
    struct launcher *l = arg;
    pthread_mutex_lock (&l->lock);
    l->tid = gettid ();
    enter (l, restrict_thread (l) ? LAUNCHER_IDLE : LAUNCHER_FAILED);
    while (l->state != LAUNCHER_FAILED && l->state != LAUNCHER_ENDING) {
        await_any (l, LAUNCHER_ASKED, LAUNCHER_ENDING);
        if (l->state != LAUNCHER_ASKED)
            break;
        pthread_mutex_unlock (&l->lock);
        bool is_started = sandbox_spawn (l->request, l->out, l->err);
        pthread_mutex_lock (&l->lock);
        l->is_started = is_started;
        enter (l, LAUNCHER_DONE);
    }
    pthread_mutex_unlock (&l->lock);
    return NULL;
}

static void
let_go (struct launcher *l)
{
    pthread_cond_destroy (&l->changed);
    pthread_mutex_destroy (&l->lock);
    free (l);
}

struct launcher *
launcher_new (bool walls_sockets, struct mur_error **err)
{
    struct launcher *l = x_new0 (struct launcher);
    l->walls_sockets = walls_sockets;
    pthread_mutex_init (&l->lock, NULL);
    pthread_cond_init (&l->changed, NULL);
    /* No handler of a signal must run within the domain. */
    errno = thread_start (&l->thread, launch, l);
    if (errno == 0) {
        pthread_mutex_lock (&l->lock);
        await_any (l, LAUNCHER_IDLE, LAUNCHER_FAILED);
        pthread_mutex_unlock (&l->lock);
        if (l->state == LAUNCHER_IDLE)
            return l;
        pthread_join (l->thread, NULL);
        errno = l->errno_value;
    }
    mur_fail_errno (err, E_IO_003, "cannot start the launcher of commands");
    let_go (l);
    return NULL;
}

pid_t
launcher_tid (const struct launcher *l)
{
    return l->tid;
}

bool
launcher_spawn (struct launcher *l, const struct spawn_request *request, struct spawned *out,
                struct mur_error **err)
{
    pthread_mutex_lock (&l->lock);
    await_any (l, LAUNCHER_IDLE, LAUNCHER_IDLE);
    l->request = request;
    l->out = out;
    l->err = err;
    enter (l, LAUNCHER_ASKED);
    await_any (l, LAUNCHER_DONE, LAUNCHER_DONE);
    bool is_started = l->is_started;
    enter (l, LAUNCHER_IDLE);
    pthread_mutex_unlock (&l->lock);
    return is_started;
}

void
launcher_free (struct launcher *l)
{
    if (! l)
        return;
    pthread_mutex_lock (&l->lock);
    enter (l, LAUNCHER_ENDING);
    pthread_mutex_unlock (&l->lock);
    pthread_join (l->thread, NULL);
    let_go (l);
}
