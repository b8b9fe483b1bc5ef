/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur watch`: follows a running session through its door (spec/cli.md 3, spec/door.md 8.5, 17).
 *
 * The network thread only hands bytes over; this thread parses, prints, and notices when the reader
 * of stdout leaves. A connection that breaks while the door still answers is taken up again behind
 * the last event seen. Exit 0 only when the capsule said it is closed, or the reader left.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/running/commands.h"
#include "cli/running/door_client.h"
#include "cli/running/running_session.h"
#include "cli/running/watch_view.h"
#include "net/sse.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#define MOST_WAITING   (1024 * 1024) /* bytes not yet shown; then the door has to wait */
#define REFUSAL_LIMIT  (64 * 1024)
#define MOST_RESUMES   3           /* in a row without a new event */
#define SILENCE_MS     (60 * 1000) /* four heartbeats */
#define TRACE_READ_MAX (4 * 1024 * 1024)

/* What the network thread and this one share. */
struct feed {
    pthread_mutex_t lock;
    int wake_fd; /* an eventfd: there are bytes, or it is over */
    struct buf waiting;
    bool is_paused, is_over;
    int status;
    char *failure; /* what ended it, in words */
};

/* Tokens spent, summed from the session's trace as it grows. */
struct tally {
    int fd; /* -1: no trace to read */
    struct buf line;
    uint64_t input, output;
};

struct watch {
    const char *url;
    const struct secret *token;
    struct watch_view *view;
    struct sse_parser parser;
    char last_id[24]; /* of the last complete event, "" before the first */
    size_t events;
    bool is_closed;     /* the capsule said so */
    struct buf refusal; /* an answer that is no stream */
};

/* --- tokens --- */

static void
tally_line (struct tally *t)
{
    if (t->line.data && strstr (t->line.data, "\"inference\"")) {
        _cleanup_json_ json_t *event = json_loads (t->line.data, 0, NULL);
        uint64_t tokens;
        if (str_eq (json_get_string (event, "event_type"), "inference")) {
            if (json_get_u64 (event, "input_tokens_actual", &tokens))
                t->input += tokens;
            if (json_get_u64 (event, "output_tokens_actual", &tokens))
                t->output += tokens;
        }
    }
    buf_truncate (&t->line, 0);
}

static void
tally_read (struct tally *t)
{
    char piece[65536];
    ssize_t len;
    for (size_t total = 0; total < TRACE_READ_MAX; total += (size_t)len) {
        len = read (t->fd, piece, sizeof (piece));
        if (len <= 0)
            return;
        for (const char *at = piece, *end = piece + len; at < end;) {
            const char *stop = memchr (at, '\n', (size_t)(end - at));
            buf_append (&t->line, at, (size_t)((stop ? stop : end) - at));
            if (! stop)
                break;
            tally_line (t);
            at = stop + 1;
        }
    }
}

/* 1234567 as "1,234,567". */
static void
put_grouped (struct buf *out, uint64_t n)
{
    char digits[24];
    int len = snprintf (digits, sizeof (digits), "%" PRIu64, n);
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            buf_putc (out, ',');
        buf_putc (out, digits[i]);
    }
}

static char *
tally_words (void *ctx)
{
    struct tally *t = ctx;
    if (t->fd < 0)
        return NULL;
    tally_read (t);
    struct buf words = { 0 };
    put_grouped (&words, t->input);
    buf_puts (&words, " tokens in, ");
    put_grouped (&words, t->output);
    buf_puts (&words, " out");
    return buf_steal (&words);
}

/* --- the network thread's side --- */

static void
feed_wake (struct feed *f)
{
    uint64_t one = 1;
    (void)! write (f->wake_fd, &one, sizeof (one));
}

static void
on_head (void *ctx, int status, const struct http_header *headers, size_t header_count)
{
    struct feed *f = ctx;
    (void)headers;
    (void)header_count;
    pthread_mutex_lock (&f->lock);
    f->status = status;
    pthread_mutex_unlock (&f->lock);
}

static bool
on_body (void *ctx, const void *data, size_t len)
{
    struct feed *f = ctx;
    pthread_mutex_lock (&f->lock);
    bool has_room = f->waiting.len < MOST_WAITING;
    f->is_paused = ! has_room;
    if (has_room)
        buf_append (&f->waiting, data, len);
    pthread_mutex_unlock (&f->lock);
    feed_wake (f);
    return has_room;
}

static void
on_end (void *ctx, enum http_failure failure, const char *detail)
{
    struct feed *f = ctx;
    pthread_mutex_lock (&f->lock);
    f->is_over = true;
    if (failure != HTTP_OK)
        f->failure = x_strdup (detail ? detail : http_failure_text (failure));
    pthread_mutex_unlock (&f->lock);
    feed_wake (f);
}

/* --- events --- */

static void
show (struct buf *out, struct buf *notes)
{
    if (out->len)
        out_write (out->data, out->len);
    for (char *line = notes->data, *end; line && *line; line = end) {
        end = line + strcspn (line, "\n");
        if (*end)
            *end++ = '\0';
        diag_stderr_line ("%s", line);
    }
    buf_truncate (out, 0);
    buf_truncate (notes, 0);
}

static bool
on_event (void *ctx, const char *id, const char *data, size_t len)
{
    struct watch *w = ctx;
    _cleanup_json_ json_t *response = json_loadb (data, len, 0, NULL);
    const json_t *result = json_object_get (response, "result");
    if (*id) {
        snprintf (w->last_id, sizeof (w->last_id), "%s", id);
        w->events++;
    }
    _cleanup_buf_ struct buf out = { 0 }, notes = { 0 };
    if (result && ! watch_view_event (w->view, result, &out, &notes))
        w->is_closed = true;
    show (&out, &notes);
    return ! w->is_closed && ! out_is_refused ();
}

/* Takes what waits and shows it. Returns false when the watch is done. */
static bool
take (struct watch *w, struct feed *f, struct http_transfer *transfer)
{
    pthread_mutex_lock (&f->lock);
    struct buf bytes = f->waiting;
    f->waiting = (struct buf){ 0 };
    bool was_paused = f->is_paused, is_stream = f->status == 200;
    f->is_paused = false;
    pthread_mutex_unlock (&f->lock);
    if (was_paused)
        http_transfer_resume (transfer);
    bool goes_on = true;
    bool is_refusal = ! is_stream || w->refusal.len ||
                      (! w->parser.line.len && ! w->events && bytes.len && bytes.data[0] == '{');
    if (bytes.len && is_refusal) {
        if (w->refusal.len + bytes.len < REFUSAL_LIMIT)
            buf_append (&w->refusal, bytes.data, bytes.len);
    } else if (bytes.len) {
        goes_on = sse_feed (&w->parser, bytes.data, bytes.len, on_event, w);
    }
    buf_free (&bytes);
    return goes_on;
}

/* Waits for bytes. False when the reader of stdout has left. */
static bool
wait_for_bytes (const struct feed *f)
{
    struct pollfd fds[] = { { .fd = f->wake_fd, .events = POLLIN }, { .fd = STDOUT_FILENO } };
    while (poll (fds, 2, -1) < 0)
        if (errno != EINTR)
            return false;
    uint64_t count;
    if (fds[0].revents)
        (void)! read (f->wake_fd, &count, sizeof (count));
    return ! (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* --- one connection --- */

static struct http_transfer *
subscribe (const struct watch *w, struct http_client *client, struct feed *feed)
{
    static const char body[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"murmur.WatchSession\",\"params\":{}}";
    static const struct http_events events = { .head = on_head, .body = on_body, .end = on_end };
    _cleanup_free_ char *url = x_asprintf ("http://%s/", w->url);
    char *bearer = w->token ? x_asprintf ("Bearer %s", secret_reveal (w->token)) : NULL;
    struct http_header headers[5] = {
        { "content-type", "application/json", strlen ("application/json") },
        { "accept", "text/event-stream", strlen ("text/event-stream") },
        { "a2a-version", "1.0", strlen ("1.0") },
    };
    size_t count = 3;
    if (*w->last_id)
        headers[count++] = (struct http_header){ "last-event-id", w->last_id, strlen (w->last_id) };
    if (bearer)
        headers[count++] = (struct http_header){ "authorization", bearer, strlen (bearer) };
    struct http_request request = { .method = "POST",
                                    .url = url,
                                    .headers = headers,
                                    .header_count = count,
                                    .body_kind = HTTP_BODY_BUFFER,
                                    .body = body,
                                    .body_len = strlen (body),
                                    .connect_timeout_ms = 2000,
                                    .first_byte_timeout_ms = 30000,
                                    .between_bytes_timeout_ms = SILENCE_MS };
    struct http_transfer *transfer = http_start (client, &request, &events, feed);
    if (bearer)
        secret_wipe (bearer, strlen (bearer));
    free (bearer);
    return transfer;
}

enum outcome {
    DONE,        /* the capsule is closed, or the reader left */
    BROKEN,      /* a stream that had begun ended; *why says how (owned) */
    UNREACHABLE, /* no answer; *why says how */
    REFUSED,     /* the door refused; *err says why */
};

static enum outcome
refused (const struct watch *w, int status, struct mur_error **err)
{
    if (status == 401 || status == 403) {
        mur_fail (err, E_IO_003, "the door at %s refused this watch with HTTP %d", w->url, status);
        mur_hint (err,
                  "its token is taken from the session's record, for --url from MURMUR_DOOR_TOKEN");
        return REFUSED;
    }
    const char *text = w->refusal.data ? w->refusal.data : "";
    _cleanup_json_ json_t *answer = json_loads (text, 0, NULL);
    const char *message = json_get_string (json_object_get (answer, "error"), "message");
    if (message)
        mur_fail (err, E_IO_003, "the door at %s answered murmur.WatchSession with: %s", w->url,
                  message);
    else
        mur_fail (err, E_IO_003, "what answers at %s is no capsule (HTTP %d)", w->url, status);
    return REFUSED;
}

static enum outcome
follow (struct watch *w, struct http_client *client, char **why, struct mur_error **err)
{
    struct feed feed = { .lock = PTHREAD_MUTEX_INITIALIZER,
                         .wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK) };
    if (feed.wake_fd < 0) {
        mur_fail_errno (err, E_IO_003, "cannot make an event descriptor");
        return REFUSED;
    }
    struct http_transfer *transfer = subscribe (w, client, &feed);
    bool is_reading = true, is_over = false;
    while (is_reading && ! is_over) {
        bool has_reader = wait_for_bytes (&feed);
        pthread_mutex_lock (&feed.lock);
        is_over = feed.is_over;
        pthread_mutex_unlock (&feed.lock);
        is_reading = has_reader && take (w, &feed, transfer);
    }
    http_transfer_release (transfer);
    close (feed.wake_fd);
    buf_free (&feed.waiting);
    sse_parser_free (&w->parser);
    w->parser = (struct sse_parser){ 0 };
    enum outcome outcome = is_reading ? BROKEN : DONE;
    if (outcome == BROKEN && (w->refusal.len || (feed.status && feed.status != 200)))
        outcome = refused (w, feed.status, err);
    else if (outcome == BROKEN && ! feed.status)
        outcome = UNREACHABLE;
    *why = feed.failure ? feed.failure : x_strdup ("the capsule ended the connection");
    return outcome;
}

/* --- the watch --- */

static bool
lost (const struct watch *w, const char *why, struct mur_error **err)
{
    if (*w->last_id)
        mur_fail (err, E_IO_003, "the connection to %s was lost after event %s: %s", w->url,
                  w->last_id, why);
    else
        mur_fail (err, E_IO_003, "the connection to %s was lost before its first event: %s", w->url,
                  why);
    mur_hint (err, "a capsule that exits or is stopped ends its watches like this; `mur ps` lists "
                   "what runs");
    return false;
}

/* Follows until the end, taking up broken connections while the door still answers. */
static bool
watch (struct watch *w, struct http_client *client, struct mur_error **err)
{
    _cleanup_free_ char *first_why = NULL; /* of the break after the last event */
    for (unsigned idle = 0;; idle++) {
        size_t before = w->events;
        _cleanup_free_ char *why = NULL;
        enum outcome outcome = follow (w, client, &why, err);
        _cleanup_buf_ struct buf out = { 0 }, notes = { 0 };
        watch_view_end (w->view, &out);
        show (&out, &notes);
        if (w->is_closed)
            diag_stderr_line ("[murmur] capsule closed");
        if (outcome == DONE || outcome == REFUSED)
            return outcome == DONE;
        if (w->events > before) {
            idle = 0;
            free (steal_ptr (&first_why));
        }
        if (! first_why)
            first_why = steal_ptr (&why);
        if (outcome == UNREACHABLE || idle >= MOST_RESUMES)
            return lost (w, first_why, err);
    }
}

static unsigned
terminal_width (void)
{
    struct winsize size = { 0 };
    return ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Watches what <record> names, or the bare address. */
static bool
watch_door (const char *url, const struct secret *token, const struct running_record *record,
            struct http_client *client, struct mur_error **err)
{
    const char *terminal = getenv ("TERM");
    struct tally tally = { .fd = -1 };
    struct watch_style style = {
        .is_terminal = isatty (STDOUT_FILENO) && ! str_eq (terminal, "dumb"),
        .has_colour = diag_wants_colour (STDOUT_FILENO),
        .width = terminal_width (),
        .spent = record ? tally_words : NULL,
        .spent_ctx = &tally,
    };
    if (record && style.is_terminal) {
        _cleanup_free_ char *trace = x_asprintf ("%s/trace.jsonl", record->records_dir);
        tally.fd = open (trace, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (record)
        diag_stderr_line ("watching %s@%s (%s) at %s", record->capsule_name,
                          record->capsule_version, record->session_id, url);
    else
        diag_stderr_line ("watching %s", url);
    diag_stderr_line ("Ctrl-C ends the watch, not the capsule");
    struct watch w = { .url = url, .token = token, .view = watch_view_new (&style) };
    bool is_ok = watch (&w, client, err);
    watch_view_free (w.view);
    buf_free (&w.refusal);
    buf_free (&tally.line);
    if (tally.fd >= 0)
        close (tally.fd);
    return is_ok;
}

static bool
watch_session (const char *address, struct http_client *client, struct mur_error **err)
{
    _cleanup_ (running_scan_free) struct running_scan scan = { 0 };
    const struct running_entry *e = running_session (address, &scan, err);
    if (! e)
        return false;
    const struct running_record *r = &e->record;
    if (! door_answers (client, r))
        return mur_fail (err, E_RUN_023,
                         "%s is running (pid %ld), but its door at %s does not answer",
                         r->session_id, (long)r->pid, r->url);
    return watch_door (r->url, r->door_token, r, client, err);
}

int
cmd_watch (const struct cli_args *args, struct mur_error **err)
{
    const char *url = cli_value (args, "--url");
    struct http_client *client = http_client_new ();
    bool is_ok;
    if (url) {
        _cleanup_secret_ struct secret *token = door_token_of_environment ();
        is_ok = watch_door (url, token, NULL, client, err);
    } else {
        is_ok = watch_session (cli_positional (args, "SESSION"), client, err);
    }
    http_client_free (client);
    return is_ok ? CLI_OK : CLI_FAILED;
}
