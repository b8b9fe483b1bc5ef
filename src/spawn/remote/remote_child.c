/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/remote/remote_child.h"

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/diag.h"
#include "base/ids.h"
#include "base/json.h"
#include "fs/replace.h"
#include "home/paths.h"
#include "spawn/child/lifeline.h"
#include "spawn/child/roost_client.h"
#include "spawn/report/completion.h"
#include "trace/ship/bring_home.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#define ASK_WAIT_S  20
#define AGAIN_MS    1000 /* when mur-roost was not heard */
#define END_MS      3000 /* a parent waits five seconds for us */
#define RESULT_CUT  "\n […] (cut: the whole answer has %llu bytes and is in the child's records)\n"
#define ENDED_BY_US 143

struct standing {
    const struct remote_child *what;
    struct http_client *http;
    struct cancel *told; /* raised: we are to end */
    int stop_fd;         /* SIGTERM, SIGINT */
    pthread_t listener;
    uint64_t seen;  /* news of the child that we know */
    int records_fd; /* -1 before it registered */
    char *session_id, *records_dir;
};

/* --- being told to end --- */

/* SIGTERM from the parent, or the parent's own end. */
static void *
listen_for_end (void *ctx)
{
    struct standing *s = ctx;
    struct pollfd fds[] = { { .fd = s->stop_fd, .events = POLLIN },
                            { .fd = lifeline_fd (LIFELINE_SPAWNER), .events = POLLIN } };
    for (;;) {
        if (poll (fds, ARRAY_LEN (fds), -1) < 0 && errno != EINTR)
            break;
        if (fds[1].revents && lifeline_has_ended (LIFELINE_SPAWNER)) {
            diag_stderr_line (LIFELINE_ENDED_LINE);
            break;
        }
        if (fds[0].revents)
            break;
    }
    cancel_raise (s->told);
    return NULL;
}

static bool
listen_begin (struct standing *s, struct mur_error **err)
{
    sigset_t stop;
    sigemptyset (&stop);
    sigaddset (&stop, SIGTERM);
    sigaddset (&stop, SIGINT);
    pthread_sigmask (SIG_BLOCK, &stop, NULL);
    s->stop_fd = signalfd (-1, &stop, SFD_CLOEXEC);
    if (s->stop_fd < 0 || pthread_create (&s->listener, NULL, listen_for_end, s) != 0)
        return mur_fail_errno (err, E_IO_003, "cannot listen for the parent's end");
    return true;
}

/* Our own SIGTERM is what it waits for, too. */
static void
listen_finish (struct standing *s)
{
    kill (getpid (), SIGTERM);
    pthread_join (s->listener, NULL);
}

/* --- asking --- */

static json_t *
ask (const struct standing *s, const char *path, const json_t *body, uint64_t timeout_ms,
     struct cancel *cancel, struct roost_refusal *refusal)
{
    const struct roost_request request = { .url = s->what->roost_url,
                                           .path = path,
                                           .header = "x-murmur-child-ticket",
                                           .token = s->what->ticket,
                                           .body = body,
                                           .total_timeout_ms = timeout_ms,
                                           .cancel = cancel };
    return roost_ask (s->http, &request, refusal);
}

/* What is new of the child; owned. NULL: we were told to end, or (*err) mur-roost knows nothing of
 * it. */
static json_t *
next_news (struct standing *s, struct mur_error **err)
{
    while (! cancel_is_raised (s->told)) {
        struct roost_refusal refusal = { 0 };
        _cleanup_free_ char *path =
            x_asprintf ("/children/%s?wait=%d&seen=%llu", s->what->delegation_id, ASK_WAIT_S,
                        (unsigned long long)s->seen);
        json_t *news = ask (s, path, NULL, (ASK_WAIT_S + 10) * 1000, s->told, &refusal);
        _cleanup_free_ char *text = refusal.text;
        if (news && json_get_u64 (news, "news", &s->seen))
            return news;
        json_decref (news);
        if (! news && ! refusal.is_unheard) {
            mur_fail (err, E_RUN_007, "mur-roost at %s: %s", s->what->roost_url, text);
            return NULL;
        }
        cancel_sleep (s->told, AGAIN_MS);
    }
    return NULL;
}

/* The child is wanted no more. mur-roost's own watch of our pod ends it where this is not heard. */
static void
end_child (const struct standing *s)
{
    struct roost_refusal refusal = { 0 };
    _cleanup_json_ json_t *nothing = json_object ();
    _cleanup_free_ char *path = x_asprintf ("/children/%s/end", s->what->delegation_id);
    json_decref (ask (s, path, nothing, END_MS, NULL, &refusal));
    free (refusal.text);
}

/* --- being the child --- */

/* The records of a session elsewhere: a folder for its record and its answer. */
static bool
make_records (struct standing *s, struct mur_error **err)
{
    _cleanup_free_ char *group = home_records_group (s->what->workdir, err);
    _cleanup_close_ int group_fd = group ? home_open_records_group (s->what->workdir, err) : -1;
    if (group_fd < 0)
        return false;
    if (mkdirat (group_fd, s->session_id, 0700) < 0 && errno != EEXIST)
        return mur_fail_errno (err, E_IO_003, "cannot create %s/%s", group, s->session_id);
    s->records_dir = x_asprintf ("%s/%s", group, s->session_id);
    s->records_fd = openat (group_fd, s->session_id, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return s->records_fd >= 0 || mur_fail_errno (err, E_IO_003, "cannot open %s", s->records_dir);
}

/* The line its parent waits for. The token goes through the pipe alone. */
static bool
announce (struct standing *s, const json_t *news, struct mur_error **err)
{
    const char *slash = strrchr (s->what->capsule, '/');
    s->session_id = x_strdup (json_get_string (news, "session_id"));
    if (! id_is_valid (s->session_id, "ses_") || ! make_records (s, err))
        return false;
    _cleanup_json_ json_t *line = json_pack (
        "{s:s,s:s,s:i,s:s,s:s,s:{s:s},s:s,s:s,s:s}", "auth", "bearer", "name",
        slash ? slash + 1 : s->what->capsule, "pid", (int)getpid (), "records_dir", s->records_dir,
        "session_id", s->session_id, "tokens", "operator", json_get_string (news, "token"), "url",
        json_get_string (news, "url"), "version", s->what->version, "workdir", s->what->workdir);
    char *text = json_text (line, JSON_TEXT_ORDERED);
    bool is_said = text && printf ("%s\n", text) > 0 && fflush (stdout) == 0;
    if (text)
        secret_wipe (text, strlen (text));
    free (text);
    return is_said || mur_fail_errno (err, E_IO_003, "the parent takes no readiness line");
}

static enum completion_status
status_of (const char *name)
{
    for (int i = COMPLETION_OK; i <= COMPLETION_TERMINATED; i++)
        if (str_eq (completion_status_name ((enum completion_status)i), name))
            return (enum completion_status)i;
    return COMPLETION_CRASHED;
}

/* What the child shipped, up to where it came. The child sends its end once all of it is there; one
 * that was killed left its closed parts. What does not come costs a warning: the outcome is known.
 */
static bool
bring_records (const struct standing *s)
{
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_brought_ struct brought brought = { 0 };
    _cleanup_record_store_ struct record_store *store =
        s->what->records_store ? record_store_open (s->what->records_store, &err) : NULL;
    if (! store && ! err)
        return false;
    _cleanup_ (fs_root_freep) struct fs_root *records =
        fs_root_new (fcntl (s->records_fd, F_DUPFD_CLOEXEC, 3), s->records_dir, NULL, true);
    bool is_there = store && bring_home (store, s->session_id, records, &brought, &err);
    if (! is_there)
        diag_warn (DIAG_RUNTIME, W_RUN_012, "%s: %s", s->session_id,
                   err ? err->message : "the records store has nothing of it");
    return is_there && brought.is_complete;
}

static bool
write_result (const struct standing *s, const json_t *news, struct mur_error **err)
{
    const char *text = json_get_string (news, "result");
    uint64_t bytes = 0;
    if (! text)
        return true;
    if (mkdirat (s->records_fd, "out", 0700) < 0 && errno != EEXIST)
        return mur_fail_errno (err, E_IO_003, "cannot create %s/out", s->records_dir);
    _cleanup_close_ int out = openat (s->records_fd, "out", O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_buf_ struct buf whole = { 0 };
    buf_puts (&whole, text);
    if (json_get_u64 (news, "result_bytes", &bytes) && bytes > whole.len)
        buf_printf (&whole, RESULT_CUT, (unsigned long long)bytes);
    return fs_replace_at (out, "result.txt", whole.data, whole.len, 0600, false, err);
}

/* The record as if it had run here. It is told to nobody: this process' end tells. */
static int
settle (const struct standing *s, const json_t *news, struct mur_error **err)
{
    enum completion_status status = status_of (json_get_string (news, "status"));
    struct completion c = {
        .delegation_id = s->what->delegation_id,
        .capsule_name = s->what->capsule,
        .capsule_version = s->what->version,
        .session_id = s->session_id,
        .status = status,
        .workdir = s->what->workdir,
        .detail = json_get_string (news, "detail"),
        .reported_by = status <= COMPLETION_ERROR ? REPORTED_BY_CHILD : REPORTED_BY_LAUNCHER,
        .is_delivered = true,
    };
    json_get_u64 (news, "duration_ms", &c.duration_ms);
    if ((! bring_records (s) && ! write_result (s, news, err)) ||
        ! completion_write (s->records_fd, &c, err))
        return 1;
    return status == COMPLETION_OK ? 0 : 1;
}

static int
stand (struct standing *s, struct mur_error **err)
{
    for (;;) {
        _cleanup_json_ json_t *news = next_news (s, err);
        if (! news) {
            if (! *err)
                end_child (s);
            return *err ? 1 : ENDED_BY_US;
        }
        const char *state = json_get_string (news, "state");
        bool is_ended = str_eq (state, "ended");
        if (is_ended && s->records_fd < 0) {
            const char *why = json_get_string (news, "detail");
            mur_fail (err, E_RUN_007, "%s@%s on another machine ended before it was ready: %s",
                      s->what->capsule, s->what->version, why ? why : "it did not say why");
            return 1;
        }
        if (is_ended)
            return settle (s, news, err);
        if (s->records_fd < 0 && json_get_string (news, "url") &&
            json_get_string (news, "session_id") && ! announce (s, news, err)) {
            end_child (s);
            return 1;
        }
    }
}

int
remote_child_run (const struct remote_child *what, struct mur_error **err)
{
    struct standing s = { .what = what, .told = cancel_new (), .stop_fd = -1, .records_fd = -1 };
    struct mur_error *fault = NULL;
    int status = 1;
    s.http = http_client_new ();
    if (! what->delegation_id || ! what->roost_url)
        mur_fail (&fault, E_RUN_020, "a remote child needs MURMUR_SPAWNER and MURMUR_ROOST_URL");
    else if (listen_begin (&s, &fault)) {
        status = stand (&s, &fault);
        listen_finish (&s);
    }
    http_client_free (s.http);
    cancel_unref (s.told);
    if (s.stop_fd >= 0)
        close (s.stop_fd);
    if (s.records_fd >= 0)
        close (s.records_fd);
    free (s.session_id);
    free (s.records_dir);
    if (fault)
        mur_propagate (err, fault);
    return status;
}
