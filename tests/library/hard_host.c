/* SPDX-License-Identifier: Apache-2.0
 *
 * Hosts that make a library's life hard: each case is a program of its own, prints "ok" when all it
 * holds is so, and what is not otherwise.
 *
 *   hard-host CASE MANIFEST-FOLDER
 */
#include "murmur/murmur.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOLDS(fact)                                                                                \
    do {                                                                                           \
        if (! (fact)) {                                                                            \
            dprintf (told_fd, "line %d: not so: %s\n", __LINE__, #fact);                           \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int told_fd;

static struct mur_request *
request (const char *folder)
{
    struct mur_request *r = mur_request_new ();
    mur_request_set_manifest (r, folder);
    mur_request_set_after_task (r, "sleep");
    mur_request_set_task_acceptance (r, "queue");
    return r;
}

static bool
wait_for (struct mur_session *s, enum mur_event_kind kind)
{
    for (;;) {
        struct mur_event *e = mur_session_next (s, 60000);
        bool is_it = mur_event_kind (e) == kind, is_over = ! e;
        mur_event_free (e);
        if (is_it || is_over)
            return is_it;
    }
}

static bool
does_a_task (struct mur_session *s)
{
    char *task = mur_session_send (s, "hi", 2, NULL, NULL);
    bool is_done = task && wait_for (s, MUR_EVENT_TASK_ENDED);
    free (task);
    return is_done;
}

/* --- signals --- */

static atomic_int heard;
static pthread_t main_thread;

static void
hear (int number)
{
    (void)number;
    atomic_fetch_add (&heard, pthread_equal (pthread_self (), main_thread) ? 1 : 1000);
}

/* Its own handlers stay, run on its own threads, and nothing of the library waits less for them. */
static int
signals (const char *folder)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGPIPE, SIGUSR1, SIGWINCH };
    struct sigaction own = { 0 }, after;
    own.sa_handler = hear;
    main_thread = pthread_self ();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction (numbers[i], &own, NULL);
    struct mur_request *r = request (folder);
    struct mur_session *s = mur_session_launch (r, NULL);
    HOLDS (s);
    for (int i = 0; i < 50; i++)
        kill (getpid (), numbers[(size_t)i % (sizeof numbers / sizeof *numbers)]);
    HOLDS (does_a_task (s));
    HOLDS (atomic_load (&heard) == 50);
    HOLDS (mur_session_end (s));
    HOLDS (strcmp (mur_session_status (s), "ok") == 0);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        HOLDS (sigaction (numbers[i], NULL, &after) == 0 && after.sa_handler == hear);
    HOLDS (sigaction (SIGCHLD, NULL, &after) == 0 && after.sa_handler == SIG_DFL);
    mur_session_free (s);
    mur_request_free (r);
    return 0;
}

static void
reap_all (int number)
{
    int kept = errno;
    (void)number;
    while (waitpid (-1, NULL, WNOHANG) > 0)
        ;
    errno = kept;
}

/* A host that reaps every child itself, or has the kernel do it. */
static int
reaping (const char *folder)
{
    for (int round = 0; round < 2; round++) {
        signal (SIGCHLD, round ? reap_all : SIG_IGN);
        struct mur_request *r = request (folder);
        struct mur_error *err = NULL;
        char *scope = mur_request_explain (r, NULL);
        HOLDS (scope && strstr (scope, "declared_containment"));
        free (scope);
        struct mur_session *s = mur_session_launch (r, NULL);
        HOLDS (s && does_a_task (s));
        HOLDS (mur_session_end (s));
        HOLDS (strcmp (mur_session_status (s), "ok") == 0 && ! mur_session_error (s));
        HOLDS (mur_session_total (s, MUR_TOTAL_TURNS) > 0);
        mur_session_free (s);
        mur_request_set_manifest (r, "/nowhere");
        HOLDS (! mur_session_launch (r, &err) && strcmp (mur_error_code (err), "E-IO-001") == 0);
        mur_error_free (err);
        mur_request_free (r);
    }
    return 0;
}

/* --- descriptors --- */

/* No standard stream is open; what the library opens is none of a program's the host executes. */
static int
descriptors (const char *folder)
{
    told_fd = fcntl (STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);
    for (int fd = 0; fd < 100; fd++)
        close (fd);
    int own[2];
    HOLDS (socketpair (AF_UNIX, SOCK_STREAM, 0, own) == 0);
    HOLDS (fcntl (own[0], F_DUPFD, 200) == 200 && close (own[0]) == 0 && close (own[1]) == 0);
    struct mur_request *r = request (folder);
    struct mur_session *s = mur_session_launch (r, NULL);
    HOLDS (s && does_a_task (s));
    HOLDS (mur_session_fd (s) > 2);
    HOLDS (fcntl (200, F_GETFD) == 0);
    for (int fd = 0; fd < 100; fd++)
        HOLDS (fcntl (fd, F_GETFD) < 0 || fcntl (fd, F_GETFD) & FD_CLOEXEC);
    HOLDS (mur_session_end (s));
    mur_session_free (s);
    mur_request_free (r);
    for (int fd = 0; fd < 100; fd++)
        HOLDS (fcntl (fd, F_GETFD) < 0);
    return 0;
}

static int
open_descriptors (void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl (fd, F_GETFD) >= 0;
    return count;
}

/* Few descriptors: what cannot be is told with a code, leaves none open and closes none of the
 * host's. */
static int
few_descriptors (const char *folder)
{
    struct rlimit before, few;
    int own = open_descriptors ();
    bool worked = false;
    HOLDS (getrlimit (RLIMIT_NOFILE, &before) == 0);
    for (rlim_t count = 3; ! worked && count < 64; count++) {
        struct mur_error *err = NULL;
        struct mur_request *r = request (folder);
        few = (struct rlimit){ count, before.rlim_max };
        setrlimit (RLIMIT_NOFILE, &few);
        struct mur_session *s = mur_session_launch (r, &err);
        worked = s && does_a_task (s);
        HOLDS (s || strcmp (mur_error_code (err), "E-IO-003") == 0);
        HOLDS (s || strstr (mur_error_message (err), "Too many open files"));
        mur_session_free (s);
        setrlimit (RLIMIT_NOFILE, &before);
        mur_error_free (err);
        mur_request_free (r);
        HOLDS (open_descriptors () == own);
    }
    HOLDS (worked);
    return 0;
}

/* A limit to files: a text that passes it is told, and kills nobody. */
static int
small_files (const char *folder)
{
    struct rlimit before, small;
    HOLDS (getrlimit (RLIMIT_FSIZE, &before) == 0);
    small = (struct rlimit){ 1000, before.rlim_max };
    struct mur_request *r = request (folder);
    char text[5000];
    memset (text, 'a', sizeof text);
    mur_request_set_task (r, text, sizeof text);
    setrlimit (RLIMIT_FSIZE, &small);
    struct mur_error *err = NULL;
    HOLDS (! mur_session_launch (r, &err) && strcmp (mur_error_code (err), "E-IO-003") == 0);
    mur_error_free (err);
    setrlimit (RLIMIT_FSIZE, &before);
    struct mur_session *s = mur_session_launch (r, NULL);
    HOLDS (s && wait_for (s, MUR_EVENT_TASK_ENDED));
    mur_session_free (s);
    mur_request_free (r);
    return 0;
}

/* It goes elsewhere between what it says and the launch: paths are those of where it is then. */
static int
moved (const char *folder)
{
    struct mur_request *r = request ("project");
    struct mur_error *err = NULL;
    char parent[4096];
    HOLDS (chdir ("/") == 0 && ! mur_session_launch (r, &err));
    HOLDS (strcmp (mur_error_code (err), "E-IO-001") == 0);
    mur_error_free (err);
    HOLDS (chdir (folder) == 0 && chdir ("..") == 0 && getcwd (parent, sizeof parent));
    HOLDS (symlink (folder, "project") == 0 || errno == EEXIST);
    struct mur_session *s = mur_session_launch (r, NULL);
    HOLDS (s && does_a_task (s));
    char now[4096];
    HOLDS (getcwd (now, sizeof now) && strcmp (now, parent) == 0);
    mur_session_free (s);
    mur_request_free (r);
    return 0;
}

/* --- forks --- */

static int
forks (const char *folder)
{
    struct mur_request *r = request (folder);
    struct mur_session *s = mur_session_launch (r, NULL);
    HOLDS (s);
    pid_t pid = fork ();
    if (pid == 0) {
        struct mur_error *err = NULL;
        bool is_refused = ! mur_session_send (s, "hi", 2, NULL, &err) && err;
        bool is_quiet = ! mur_session_next (s, -1) && mur_session_end (s);
        mur_session_free (s);
        struct mur_session *own = mur_session_launch (r, NULL);
        bool works = own && does_a_task (own) && mur_session_end (own);
        mur_session_free (own);
        _exit (is_refused && is_quiet && works ? 0 : 1);
    }
    int status;
    HOLDS (waitpid (pid, &status, 0) == pid && status == 0);
    HOLDS (mur_session_is_running (s) && does_a_task (s));
    mur_session_free (s);
    mur_request_free (r);
    return 0;
}

/* --- threads and callbacks --- */

struct calls {
    atomic_int count, is_freed, is_ended, is_in;
    struct mur_session *session;
    int release[2];
};

static void
free_at_once (void *ctx, struct mur_session *s, const struct mur_event *e)
{
    struct calls *c = ctx;
    atomic_fetch_add (&c->count, 1);
    if (mur_event_kind (e) != MUR_EVENT_ANSWER)
        return;
    mur_session_free (s);
    atomic_store (&c->is_freed, 1);
    (void)! write (c->release[1], "x", 1);
}

/* Freed by a callback: it was the last. */
static int
freed_by_callback (const char *folder)
{
    struct calls c = { 0 };
    HOLDS (pipe2 (c.release, O_CLOEXEC) == 0);
    struct mur_request *r = request (folder);
    mur_request_set_task (r, "hi", 2);
    mur_request_set_events (r, free_at_once, &c);
    HOLDS (mur_session_launch (r, NULL));
    char byte;
    HOLDS (read (c.release[0], &byte, 1) == 1 && atomic_load (&c.is_freed));
    mur_request_free (r);
    return 0;
}

static void
block (void *ctx, struct mur_session *s, const struct mur_event *e)
{
    struct calls *c = ctx;
    char byte;
    atomic_fetch_add (&c->count, 1);
    if (atomic_exchange (&c->is_in, 1) == 0)
        (void)! read (c->release[0], &byte, 1);
    if (mur_event_kind (e) == MUR_EVENT_ENDED)
        atomic_store (&c->is_ended, 1);
    (void)s;
}

static void *
free_it (void *ctx)
{
    struct calls *c = ctx;
    mur_session_free (c->session);
    atomic_store (&c->is_freed, 1);
    return NULL;
}

/* Freed by another thread while a callback runs: that waits for it, and for the last event. */
static int
freed_during_callback (const char *folder)
{
    struct calls c = { 0 };
    pthread_t thread;
    HOLDS (pipe2 (c.release, O_CLOEXEC) == 0);
    struct mur_request *r = request (folder);
    mur_request_set_task (r, "hi", 2);
    mur_request_set_events (r, block, &c);
    c.session = mur_session_launch (r, NULL);
    HOLDS (c.session);
    while (! atomic_load (&c.is_in))
        sched_yield ();
    HOLDS (! mur_session_next (c.session, -1));
    HOLDS (pthread_create (&thread, NULL, free_it, &c) == 0);
    while (mur_session_is_running (c.session))
        sched_yield ();
    HOLDS (! atomic_load (&c.is_freed) && ! atomic_load (&c.is_ended));
    HOLDS (write (c.release[1], "x", 1) == 1);
    pthread_join (thread, NULL);
    HOLDS (atomic_load (&c.is_ended));
    mur_request_free (r);
    return 0;
}

static char *
end_for_key (void *ctx, const char *name)
{
    struct calls *c = ctx;
    (void)name;
    atomic_fetch_add (&c->count, 1);
    if (c->session && ! mur_session_end (c->session))
        atomic_store (&c->is_ended, 1);
    return strdup ("sk-not-a-key");
}

/* A callback for keys that ends its session does not wait for itself. */
static int
ended_by_key (const char *folder)
{
    struct calls c = { 0 };
    struct mur_request *r = request (folder);
    mur_request_set_credentials (r, end_for_key, &c);
    c.session = mur_session_launch (r, NULL);
    HOLDS (c.session);
    free (mur_session_send (c.session, "hi", 2, NULL, NULL));
    HOLDS (wait_for (c.session, MUR_EVENT_ENDED));
    HOLDS (atomic_load (&c.is_ended));
    mur_session_free (c.session);
    mur_request_free (r);
    return 0;
}

static char *
free_for_key (void *ctx, const char *name)
{
    struct calls *c = ctx;
    (void)name;
    if (! c->session)
        return strdup ("sk-not-a-key"); /* it is staged */
    atomic_fetch_add (&c->count, 1);
    mur_session_free (c->session);
    char *key = (char *)malloc (1 << 20); /* more than its reader takes */
    memset (key, 'k', (1 << 20) - 1);
    key[(1 << 20) - 1] = '\0';
    atomic_store (&c->is_freed, 1);
    return key;
}

/* A callback for keys that frees its session: the rest goes once it has returned, and is all of it.
 */
static int
freed_by_key (const char *folder)
{
    struct calls c = { 0 };
    struct mur_request *r = request (folder);
    mur_request_set_credentials (r, free_for_key, &c);
    c.session = mur_session_launch (r, NULL);
    HOLDS (c.session);
    int fd = mur_session_fd (c.session);
    free (mur_session_send (c.session, "hi", 2, NULL, NULL));
    while (! atomic_load (&c.is_freed) || fcntl (fd, F_GETFD) >= 0)
        usleep (1000);
    HOLDS (atomic_load (&c.count) == 1);
    mur_request_free (r);
    return 0;
}

static atomic_int are_done;

static void *
launch_often (void *ctx)
{
    for (int i = 0; i < 3; i++) {
        struct mur_session *s = mur_session_launch ((struct mur_request *)ctx, NULL);
        if (! s || ! does_a_task (s))
            return NULL;
        mur_session_free (s);
    }
    atomic_fetch_add (&are_done, 1);
    return NULL;
}

/* Forks in the middle of what other threads do: each copy can launch, whatever they held. */
static int
busy_forks (const char *folder)
{
    pthread_t all[2];
    struct mur_request *r = request (folder);
    /* What is loaded while somebody forks, the copy's loader cannot read (ld.so has no such
     * promise): here all has been. */
    HOLDS (! launch_often (r) && atomic_exchange (&are_done, 0) == 1);
    for (size_t i = 0; i < 2; i++)
        HOLDS (pthread_create (&all[i], NULL, launch_often, r) == 0);
    for (int i = 0; i < 6; i++) {
        pid_t pid = fork ();
        if (pid == 0) {
            alarm (120);
            struct mur_session *own = mur_session_launch (r, NULL);
            bool works = own && does_a_task (own);
            mur_session_free (own);
            _exit (works ? 0 : 1);
        }
        int status;
        HOLDS (waitpid (pid, &status, 0) == pid && status == 0);
    }
    for (size_t i = 0; i < 2; i++)
        pthread_join (all[i], NULL);
    HOLDS (atomic_load (&are_done) == 2);
    mur_request_free (r);
    return 0;
}

/* What is known of it, which any thread may ask. */
static bool
is_known (struct mur_session *s)
{
    const struct mur_error *why = mur_session_error (s);
    bool is_ended = ! mur_session_is_running (s);
    bool is_well = (! why || *mur_error_message (why)) && (! is_ended || mur_session_status (s));
    free (mur_session_result (s));
    return is_well && *mur_session_id (s) && *mur_session_address (s) && *mur_session_records (s) &&
           *mur_session_workdir (s) && mur_session_fd (s) > 2 && ! mur_session_token (s) &&
           ! mur_session_token_of (s, "nobody") && mur_session_total (s, MUR_TOTAL_TURNS) < 1000;
}

static void *
use_it (void *ctx)
{
    struct mur_session *s = ctx;
    bool is_well = true;
    for (int i = 0; i < 20; i++) {
        char *task = mur_session_send (s, "hi", 2, NULL, NULL);
        if (task && i % 2)
            (void)mur_session_answer (s, task, "what?", NULL);
        if (task)
            (void)mur_session_cancel (s, task, NULL);
        free (task);
        mur_event_free (mur_session_next (s, 0));
        is_well = is_known (s) && is_well;
    }
    return is_well ? s : NULL;
}

/* Many threads call all that any thread may while one ends it. */
static int
threads (const char *folder)
{
    pthread_t all[6];
    struct mur_request *r = request (folder);
    struct mur_session *s = mur_session_launch (r, NULL);
    HOLDS (s);
    for (size_t i = 0; i < 6; i++)
        HOLDS (pthread_create (&all[i], NULL, use_it, s) == 0);
    HOLDS (mur_session_end (s) && mur_session_end (s));
    for (size_t i = 0; i < 6; i++) {
        void *is_well;
        pthread_join (all[i], &is_well);
        HOLDS (is_well);
    }
    HOLDS (! wait_for (s, (enum mur_event_kind)99) && ! mur_session_next (s, -1));
    mur_session_free (s);
    mur_request_free (r);
    return 0;
}

/* --- wrong calls --- */

/* Every function with nothing instead of a session or a request. */
static int
no_handles (const char *folder)
{
    static void (*const texts[]) (struct mur_request *, const char *) = {
        mur_request_set_manifest,     mur_request_set_workdir, mur_request_set_system_prompt,
        mur_request_set_containment,  mur_request_set_resume,  mur_request_set_context,
        mur_request_set_after_task,   mur_request_set_model,   mur_request_set_task_acceptance,
        mur_request_set_conversation, mur_request_set_bind,    mur_request_set_resume_mode,
        mur_request_set_public_url,   mur_request_set_case_id, mur_request_set_secrets_dir,
        mur_request_set_dataset_id,   mur_request_set_program, mur_request_set_records_store,
    };
    static void (*const flags[]) (struct mur_request *, bool) = {
        mur_request_set_env_file,
        mur_request_set_forget_session,
        mur_request_set_unconfined,
        mur_request_set_formation_member,
    };
    struct mur_error *err = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        texts[i](NULL, folder);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        flags[i](NULL, true);
    mur_request_set_manifest_text (NULL, "x", 1, folder);
    mur_request_set_capsule (NULL, "a/b", "1.0.0");
    mur_request_set_deadline (NULL, 1);
    mur_request_set_max_session_tokens (NULL, 1);
    mur_request_set_port (NULL, 1);
    mur_request_set_task (NULL, "x", 1);
    mur_request_set_variable (NULL, "A", "b");
    mur_request_set_credentials (NULL, NULL, NULL);
    mur_request_set_events (NULL, NULL, NULL);
    HOLDS (! mur_session_id (NULL) && ! mur_session_address (NULL) && ! mur_session_token (NULL));
    HOLDS (! mur_session_token_of (NULL, "x") && ! mur_session_workdir (NULL));
    HOLDS (! mur_session_records (NULL) && ! mur_session_status (NULL));
    HOLDS (! mur_session_error (NULL) && ! mur_session_result (NULL));
    HOLDS (! mur_session_next (NULL, -1) && mur_session_fd (NULL) == -1);
    HOLDS (! mur_session_is_running (NULL) && mur_session_end (NULL));
    HOLDS (mur_session_total (NULL, MUR_TOTAL_TURNS) == 0);
    HOLDS (! mur_session_send (NULL, "x", 1, NULL, NULL));
    HOLDS (! mur_session_answer (NULL, "tsk", "x", NULL));
    HOLDS (! mur_session_cancel (NULL, "tsk", &err) && err);
    HOLDS (strstr (mur_error_message (err), "no session"));
    mur_error_free (err);
    return 0;
}

static int
wrong_calls (const char *folder)
{
    struct mur_error *err = NULL;
    mur_session_free (NULL);
    mur_request_free (NULL);
    mur_event_free (NULL);
    mur_error_free (NULL);
    mur_child_free (NULL);
    HOLDS (! *mur_error_code (NULL) && ! *mur_error_message (NULL) && ! mur_error_hint (NULL));
    HOLDS (mur_event_kind (NULL) == MUR_EVENT_OTHER && ! mur_event_text (NULL));
    HOLDS (! mur_session_launch (NULL, NULL) && ! mur_request_explain (NULL, NULL));
    struct mur_request *r = request (folder);
    mur_request_set_variable (r, "A=B", "c");
    HOLDS (! mur_session_launch (r, &err) && strstr (mur_error_message (err), "equals sign"));
    mur_error_free (err);
    mur_request_free (r);
    r = request (folder);
    char *long_text = (char *)calloc (1, (1 << 20) + 1);
    memset (long_text, 'a', 1 << 20);
    mur_request_set_system_prompt (r, long_text);
    err = NULL;
    HOLDS (! mur_session_launch (r, &err) && strstr (mur_error_hint (err), "128 KiB"));
    mur_error_free (err);
    mur_request_set_system_prompt (r, NULL);
    mur_request_set_capsule (r, long_text, long_text);
    HOLDS (! mur_session_launch (r, NULL) && ! mur_request_explain (r, NULL));
    mur_request_set_manifest (r, long_text);
    HOLDS (! mur_session_launch (r, NULL) && ! mur_request_explain (r, NULL));
    free (long_text);
    mur_request_set_manifest_text (r, "a\0b", 3, folder);
    HOLDS (! mur_session_launch (r, NULL));
    mur_request_set_capsule (r, NULL, NULL);
    mur_request_set_manifest (r, folder);
    mur_request_set_workdir (r, "/nowhere");
    mur_request_set_workdir (r, NULL);
    mur_request_set_task (r, "x", 1);
    mur_request_set_task (r, NULL, 7);
    struct mur_session *s = mur_session_launch (r, NULL);
    mur_request_free (r);
    HOLDS (s && ! mur_session_status (s) && ! mur_session_error (s) && ! mur_session_result (s));
    HOLDS (mur_session_total (s, MUR_TOTAL_TURNS) == 0);
    HOLDS (! mur_session_send (s, NULL, 0, NULL, NULL) &&
           ! mur_session_send (s, "\xff", 1, NULL, NULL));
    HOLDS (! mur_session_answer (s, NULL, "x", NULL) && ! mur_session_cancel (s, NULL, NULL));
    HOLDS (! mur_session_cancel (s, "tsk_nothing", NULL));
    HOLDS (! mur_session_next (s, 0) && ! mur_session_next (s, 1));
    char *large = (char *)malloc (64 << 20);
    memset (large, 'a', 64 << 20);
    err = NULL;
    HOLDS (! mur_session_send (s, large, 64 << 20, NULL, &err) && err);
    mur_error_free (err);
    free (large);
    HOLDS (does_a_task (s) && mur_session_end (s));
    err = NULL;
    HOLDS (! mur_session_send (s, "late", 4, NULL, &err) && err);
    mur_error_free (err);
    mur_session_free (s);
    return 0;
}

static const struct {
    const char *name;
    int (*run) (const char *folder);
} cases[] = {
    { "signals", signals },
    { "reaping", reaping },
    { "descriptors", descriptors },
    { "forks", forks },
    { "freed-by-callback", freed_by_callback },
    { "freed-during-callback", freed_during_callback },
    { "ended-by-key", ended_by_key },
    { "threads", threads },
    { "wrong-calls", wrong_calls },
    { "no-handles", no_handles },
    { "few-descriptors", few_descriptors },
    { "small-files", small_files },
    { "moved", moved },
    { "freed-by-key", freed_by_key },
    { "busy-forks", busy_forks },
};

int
main (int argc, char **argv)
{
    told_fd = STDOUT_FILENO;
    for (size_t i = 0; argc == 3 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp (argv[1], cases[i].name) == 0) {
            if (cases[i].run (argv[2]) != 0)
                return 1;
            dprintf (told_fd, "ok\n");
            return 0;
        }
    return 2;
}
