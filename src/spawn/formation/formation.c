/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread a peer waits for its readiness; this thread waits for them, for signals and for the
 * entry. Signals are blocked from the start, so that no thread made here takes them.
 */
#include "spawn/formation/formation.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/digest.h"
#include "base/fdio.h"
#include "base/json.h"
#include "base/keys/formation_token.h"
#include "base/memory.h"
#include "fs/replace.h"
#include "fs/root.h"
#include "home/paths.h"
#include "home/running.h"
#include "spawn/formation/formation_announce.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define READINESS_MS  180000
#define WIND_DOWN_MS  25000
#define POLL_MS       50
#define IDLE_AFTER_MS 1000 /* a launcher that waits this long gives memory back */

extern char **environ;

/* --- what a member is told --- */

static json_t *
calls_of (const struct formation *f, size_t from, const unsigned char *private_key)
{
    const struct roster *r = f->plan->roster;
    json_t *calls = json_array ();
    for (size_t i = 0; i < r->edges_len; i++) {
        if (r->edges[i].from != from)
            continue;
        const char *to = r->members[r->edges[i].to].name;
        char *token = formation_token_mint (private_key, f->id.text, r->members[from].name, to);
        json_t *call = json_object ();
        json_set_string (call, "name", to);
        json_set_string (call, "token", token ? token : "");
        json_array_append_new (calls, call);
        if (token)
            secret_wipe (token, strlen (token));
        free (token);
    }
    return calls;
}

static bool
write_first_line (struct formation *f, size_t i, const unsigned char *private_key,
                  const unsigned char *public_key, struct mur_error **err)
{
    char start[24] = "";
    _cleanup_free_ char *key = base64url_encode (public_key, ED25519_KEY_LEN);
    _cleanup_json_ json_t *o = json_object ();
    json_t *launcher = json_object ();
    (void)process_start_text (getpid (), start);
    json_object_set_new (launcher, "pid", json_integer (getpid ()));
    json_set_string (launcher, "process_start", start);
    json_set_string (o, "formation_id", f->id.text);
    json_set_string (o, "member", f->members[i].declared->name);
    json_object_set_new (o, "launcher", launcher);
    if (f->members[i].declared->is_entry)
        json_set_bool (o, "entry", true);
    json_set_string (o, "verify_key", key);
    json_object_set_new (o, "calls", calls_of (f, i, private_key));
    char *line = json_text (o, JSON_TEXT_ORDERED);
    bool is_written = member_tell (&f->members[i], line, err);
    secret_wipe (line, strlen (line));
    free (line);
    return is_written;
}

/* All lifelines before the first process: whoever is forked later holds no end of another's. */
static bool
open_members (struct formation *f, struct mur_error **err)
{
    unsigned char private_key[ED25519_KEY_LEN], public_key[ED25519_KEY_LEN];
    if (! ed25519_load (err))
        return false;
    if (! ed25519_new_pair (private_key, public_key))
        return mur_fail (err, E_IO_003, "cannot make the formation's key pair");
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < f->len; i++)
        is_ok = member_open (&f->members[i], err);
    for (size_t i = 0; is_ok && i < f->len; i++)
        is_ok = write_first_line (f, i, private_key, public_key, err);
    secret_wipe (private_key, sizeof private_key);
    return is_ok;
}

/* Where its callees are. A member that is gone already is told nothing. */
static void
write_addresses (struct formation *f, size_t from)
{
    const struct roster *r = f->plan->roster;
    _cleanup_json_ json_t *o = json_object ();
    json_t *list = json_array ();
    for (size_t i = 0; i < r->edges_len; i++) {
        const struct member *to = &f->members[r->edges[i].to];
        if (r->edges[i].from != from || ! to->url)
            continue;
        json_t *one = json_object ();
        json_set_string (one, "name", to->declared->name);
        json_set_string (one, "url", to->url);
        json_array_append_new (list, one);
    }
    bool is_worth_a_line = json_array_size (list) > 0;
    json_object_set_new (o, "addresses", list);
    _cleanup_free_ char *line = json_text (o, JSON_TEXT_ORDERED);
    if (is_worth_a_line)
        (void)member_tell (&f->members[from], line, NULL);
}

/* --- folders --- */

static void
write_marker (struct formation *f, int dir_fd)
{
    char start[24] = "";
    _cleanup_json_ json_t *o = json_object ();
    (void)process_start_text (getpid (), start);
    json_set_string (o, "project_dir", f->plan->project_dir);
    json_object_set_new (o, "launcher_pid", json_integer (getpid ()));
    json_set_string (o, "launcher_start", start);
    _cleanup_free_ char *text = json_text (o, JSON_TEXT_ORDERED);
    _cleanup_free_ char *line = x_asprintf ("%s\n", text);
    _cleanup_error_ struct mur_error *err = NULL;
    if (! fs_replace_at (dir_fd, "formation.json", line, strlen (line), 0600, false, &err))
        diag_plain_warning ("formation.json of %s was not written: %s", f->id.text, err->message);
}

/* Each peer's own, never one that is there already. */
static bool
make_folder (struct formation *f, struct member *m, int dir_fd, const char *dir,
             struct mur_error **err)
{
    m->workdir = x_asprintf ("%s/%s", dir, m->declared->name);
    if (mkdirat (dir_fd, m->declared->name, 0700) == 0 &&
        fchmodat (dir_fd, m->declared->name, 0700, 0) == 0)
        return true;
    (void)f;
    return mur_fail_errno (err, E_RUN_045, "member '%s' (%s@%s): cannot create its folder %s",
                           m->declared->name, m->declared->capsule, m->declared->version,
                           m->workdir);
}

static bool
make_folders (struct formation *f, struct mur_error **err)
{
    if (f->len == 1)
        return true;
    _cleanup_free_ char *below = x_asprintf ("formations/%s", f->id.text);
    _cleanup_free_ char *dir = home_path_below (below, err);
    _cleanup_close_ int dir_fd = dir ? home_open_dir (below, err) : -1;
    if (dir_fd < 0)
        return false;
    write_marker (f, dir_fd);
    for (size_t i = 0; i < f->len; i++)
        if (! f->members[i].declared->is_entry &&
            ! make_folder (f, &f->members[i], dir_fd, dir, err))
            return false;
    return true;
}

/* --- what is executed --- */

static void
push_words (struct strv *argv, const char *const *words, size_t len)
{
    for (size_t i = 0; i < len; i++)
        strv_push (argv, words[i]);
}

static bool
build_argv (const struct formation *f, const struct member *m, struct strv *argv,
            struct mur_error **err)
{
    const struct formation_plan *p = f->plan;
    if (! program_push (argv, err))
        return false;
    bool is_entry = m->declared->is_entry;
    const char *const common[] = { "run",
                                   "--capsule",
                                   m->declared->capsule,
                                   "--capsule-version",
                                   m->declared->version,
                                   "--capsule-sha256",
                                   m->sha256,
                                   "--workdir",
                                   is_entry ? p->project_dir : m->workdir };
    push_words (argv, common, ARRAY_LEN (common));
    if (is_entry) {
        const char *const words[] = { "--lifecycle-task-acceptance", p->task ? "single" : "queue",
                                      "--lifecycle-after-task", p->task ? "exit" : "sleep" };
        push_words (argv, words, ARRAY_LEN (words));
        if (p->task) {
            strv_push (argv, "--task");
            strv_push (argv, p->task);
        }
        if (p->is_json)
            strv_push (argv, "--json");
        if (p->is_verbose)
            strv_push (argv, "--verbose");
    } else {
        const char *const words[] = { "--store-root",       p->project_dir, "--json",
                                      "--readiness-tokens", "--bind",       "127.0.0.1" };
        push_words (argv, words, ARRAY_LEN (words));
    }
    if (p->has_no_env_file)
        strv_push (argv, "--no-env-file");
    if (p->containment) {
        strv_push (argv, "--containment");
        strv_push (argv, p->containment);
    }
    if (f->deadline_at_ms) {
        strv_push (argv, "--inherited-deadline");
        strv_printf (argv, "%llu", (unsigned long long)f->deadline_at_ms);
    }
    return true;
}

static bool
is_replaced (const char *entry)
{
    static const char *const names[] = { "MURMUR_SPAWNER",
                                         "MURMUR_SPAWNER_LIFELINE",
                                         "MURMUR_FORMATION_PEERS",
                                         "MURMUR_FORMATION_ID",
                                         "MURMUR_FORMATION_CHANNEL",
                                         "MURMUR_FORMATION_LIFELINE",
                                         "MURMUR_HOST_WARNINGS_REPORTED",
                                         "NOTIFY_SOCKET" /* the launcher is the service */ };
    size_t len = strcspn (entry, "=");
    for (size_t i = 0; i < ARRAY_LEN (names); i++)
        if (strlen (names[i]) == len && strncmp (names[i], entry, len) == 0)
            return true;
    return false;
}

static void
build_environment (const struct formation *f, const struct member *m, struct strv *out)
{
    for (char **e = environ; *e; e++)
        if (! is_replaced (*e))
            strv_push (out, *e);
    strv_printf (out, "MURMUR_FORMATION_ID=%s", f->id.text);
    strv_printf (out, "MURMUR_FORMATION_CHANNEL=%d", m->channel.read_end);
    strv_printf (out, "MURMUR_FORMATION_LIFELINE=%d", m->lifeline.read_end);
    strv_push (out, "MURMUR_HOST_WARNINGS_REPORTED=1");
}

static bool
start_member (struct formation *f, struct member *m, struct mur_error **err)
{
    _cleanup_strv_ struct strv argv = { 0 }, environment = { 0 };
    if (! build_argv (f, m, &argv, err))
        return false;
    build_environment (f, m, &environment);
    return member_start (m, argv.items, &environment, err);
}

/* --- waiting --- */

struct gathering {
    struct formation *formation;
    struct member_wait wait;
    atomic_bool is_abandoned;
    atomic_size_t next;     /* of the threads: the member each takes */
    atomic_size_t finished; /* threads that are through */
    int news_fd;
};

static void *
await_one (void *ctx)
{
    struct gathering *g = ctx;
    struct formation *f = g->formation;
    size_t i;
    while ((i = atomic_fetch_add (&g->next, 1)) < f->len && f->members[i].declared->is_entry)
        ;
    struct member *m = &f->members[i];
    if (! member_await (m, &g->wait, &m->fault))
        atomic_store (&g->is_abandoned, true);
    atomic_fetch_add (&g->finished, 1);
    eventfd_write (g->news_fd, 1);
    return NULL;
}

static void
abandon (struct gathering *g)
{
    struct formation *f = g->formation;
    atomic_store (&g->is_abandoned, true);
    for (size_t i = 0; i < f->len; i++)
        if (f->members[i].output)
            output_leave (f->members[i].output);
}

/* A signal that was taken: 128 + its number, else 0. */
static int
take_signal (int signal_fd)
{
    struct signalfd_siginfo info;
    return read (signal_fd, &info, sizeof info) == (ssize_t)sizeof info ? 128 + (int)info.ssi_signo
                                                                        : 0;
}

/* Until every thread is through. Returns the status a signal asks for, or 0. */
static int
wait_for_threads (struct gathering *g, size_t count, int signal_fd)
{
    int status = 0;
    while (atomic_load (&g->finished) < count) {
        struct pollfd fds[] = { { g->news_fd, POLLIN, 0 }, { signal_fd, POLLIN, 0 } };
        if (poll (fds, ARRAY_LEN (fds), -1) < 0 && errno != EINTR)
            break;
        eventfd_t seen;
        if (fds[0].revents)
            (void)eventfd_read (g->news_fd, &seen);
        if (fds[1].revents && ! status)
            status = take_signal (signal_fd);
        if (status || atomic_load (&g->is_abandoned))
            abandon (g);
    }
    return status;
}

/* The first of them that failed by itself: "another member failed" is never the reason. */
static struct mur_error *
first_fault (struct formation *f)
{
    struct mur_error *found = NULL;
    for (size_t i = 0; i < f->len; i++) {
        struct mur_error *fault = steal_ptr (&f->members[i].fault);
        bool is_echo = fault && strstr (fault->message, "another member failed");
        if (fault && (! found || (! is_echo && strstr (found->message, "another member failed")))) {
            mur_error_free (found);
            found = fault;
        } else {
            mur_error_free (fault);
        }
    }
    return found;
}

static uint64_t
readiness_deadline (const struct formation_plan *p)
{
    uint64_t at_ms = clock_monotonic_ms () + READINESS_MS;
    uint64_t end_ms = p->deadline_secs ? p->started_ms + p->deadline_secs * 1000 : UINT64_MAX;
    return at_ms < end_ms ? at_ms : end_ms;
}

static bool
has_passed (const struct formation_plan *p)
{
    return p->deadline_secs && clock_monotonic_ms () >= p->started_ms + p->deadline_secs * 1000;
}

static bool
fail_deadline (const struct formation_plan *p, struct mur_error **err)
{
    return mur_fail (err, E_RUN_053,
                     "the formation's deadline of %llu second%s passed before its entry started",
                     (unsigned long long)p->deadline_secs, p->deadline_secs == 1 ? "" : "s");
}

/* Every peer ready, or why not. */
static bool
await_peers (struct formation *f, int signal_fd, int *exit_status, struct mur_error **err)
{
    struct gathering g = { .formation = f,
                           .wait = { f->id.text, readiness_deadline (f->plan), &g.is_abandoned,
                                     f->plan->probe, f->plan->probe_ctx },
                           .news_fd = eventfd (0, EFD_CLOEXEC) };
    pthread_t threads[ROSTER_MEMBERS_MAX];
    size_t started = 0, peers = f->len - 1;
    int failed = g.news_fd < 0 ? errno : 0;
    while (! failed && started < peers) {
        failed = pthread_create (&threads[started], NULL, await_one, &g);
        started += ! failed;
    }
    if (failed)
        abandon (&g);
    *exit_status = started ? wait_for_threads (&g, started, signal_fd) : 0;
    for (size_t i = 0; i < started; i++)
        pthread_join (threads[i], NULL);
    if (g.news_fd >= 0)
        close (g.news_fd);
    struct mur_error *fault = first_fault (f);
    errno = failed;
    bool is_ready = ! fault && ! failed && ! *exit_status;
    if (*exit_status)
        mur_error_free (fault);
    else if (failed)
        mur_fail_errno (err, E_IO_003, "cannot wait for the formation's members");
    else if (fault && has_passed (f->plan)) {
        fail_deadline (f->plan, err);
        mur_error_free (fault);
    } else if (fault)
        mur_propagate (err, fault);
    return is_ready;
}

/* Until the entry is reaped or a signal came; the status that follows from it. */
static int
await_entry (struct formation *f, int signal_fd)
{
    struct member *entry = &f->members[f->plan->roster->entry];
    int wait_ms = IDLE_AFTER_MS;
    while (! member_has_exited (entry)) {
        struct pollfd fds[] = { { entry->pidfd, POLLIN, 0 }, { signal_fd, POLLIN, 0 } };
        int ready = poll (fds, ARRAY_LEN (fds), wait_ms);
        if (ready < 0 && errno != EINTR)
            break;
        if (ready == 0) {
            memory_release_idle ();
            wait_ms = -1;
        }
        int status = fds[1].revents ? take_signal (signal_fd) : 0;
        if (status)
            return status;
    }
    return WIFSIGNALED (entry->status) ? 128 + WTERMSIG (entry->status)
                                       : WEXITSTATUS (entry->status);
}

/* --- the end --- */

static bool
all_have_exited (struct formation *f)
{
    bool are_gone = true;
    for (size_t i = 0; i < f->len; i++)
        are_gone &= member_has_exited (&f->members[i]);
    return are_gone;
}

/* Lifelines first; whoever is still there after their patience is killed with its group. */
static void
end_all (struct formation *f)
{
    for (size_t i = 0; i < f->len; i++)
        member_let_go (&f->members[i]);
    uint64_t end_ms = clock_monotonic_ms () + WIND_DOWN_MS;
    while (! all_have_exited (f) && clock_monotonic_ms () < end_ms)
        usleep (POLL_MS * 1000);
    for (size_t i = 0; i < f->len; i++)
        member_kill (&f->members[i]);
    while (! all_have_exited (f))
        usleep (POLL_MS * 1000);
}

/* --- the whole --- */

static void
begin (struct formation *f)
{
    const struct formation_plan *p = f->plan;
    f->id = id_new ("frm_");
    f->len = p->roster->len;
    f->members = x_new_array (struct member, f->len);
    for (size_t i = 0; i < f->len; i++)
        f->members[i] = (struct member){ .declared = &p->roster->members[i],
                                         .sha256 = p->sha256[i],
                                         .lifeline = NO_PIPE,
                                         .channel = NO_PIPE,
                                         .pidfd = -1,
                                         .status = -1 };
    if (p->deadline_secs) {
        uint64_t passed_ms = clock_monotonic_ms () - p->started_ms;
        f->deadline_at_ms = clock_unix_ms () - passed_ms + p->deadline_secs * 1000;
    }
}

static bool
start_peers (struct formation *f, struct mur_error **err)
{
    for (size_t i = 0; i < f->len; i++)
        if (! f->members[i].declared->is_entry && ! start_member (f, &f->members[i], err))
            return false;
    return true;
}

static bool
run_all (struct formation *f, int signal_fd, int *exit_status, struct mur_error **err)
{
    if (! open_members (f, err))
        return false;
    f->has_begun = true;
    if (! make_folders (f, err) || ! start_peers (f, err) ||
        ! await_peers (f, signal_fd, exit_status, err))
        return false;
    for (size_t i = 0; i < f->len; i++)
        write_addresses (f, i);
    if (has_passed (f->plan))
        return fail_deadline (f->plan, err);
    formation_announce (f);
    if (! start_member (f, &f->members[f->plan->roster->entry], err))
        return false;
    *exit_status = await_entry (f, signal_fd);
    return true;
}

bool
formation_run (struct formation *f, int *exit_status, struct mur_error **err)
{
    sigset_t signals, before;
    sigemptyset (&signals);
    sigaddset (&signals, SIGINT);
    sigaddset (&signals, SIGTERM);
    sigaddset (&signals, SIGHUP);
    pthread_sigmask (SIG_BLOCK, &signals, &before);
    _cleanup_close_ int signal_fd = signalfd (-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    *exit_status = 0;
    if (signal_fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot watch for signals");
    begin (f);
    bool is_ok = run_all (f, signal_fd, exit_status, err);
    end_all (f);
    return is_ok;
}

void
formation_clear (struct formation *f)
{
    for (size_t i = 0; i < f->len; i++)
        member_clear (&f->members[i]);
    free (f->members);
    *f = (struct formation){ 0 };
}
