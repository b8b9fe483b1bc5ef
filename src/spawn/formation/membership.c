/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/formation/membership.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/diag.h"
#include "base/digest.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/keys/formation_token.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#define VARIABLE      "MURMUR_FORMATION_CHANNEL"
#define LINE_MAX_LEN  ((size_t)1 << 20)
#define FIRST_LINE_MS 10000
#define MEMBER_MAX    32

struct callee {
    char *name;
    struct secret *token;
    char *url; /* under the lock; NULL until it came */
};

struct membership {
    char *formation_id, *member;
    pid_t launcher;
    char *launcher_start;
    bool is_entry, is_far;
    unsigned char verify_key[ED25519_KEY_LEN];
    struct callee *callees;
    size_t len;

    int fd, stop_fd;
    struct buf pending; /* what was read past the last whole line; the reader's */
    pthread_t reader;
    bool has_reader;
    pthread_mutex_t lock; /* a leaf */
    pthread_cond_t changed;
};

/* --- the descriptor --- */

static bool
check_descriptor (int fd, struct mur_error **err)
{
    struct stat st;
    if (fd <= STDERR_FILENO)
        return mur_fail (err, E_RUN_046, VARIABLE " names descriptor %d, a standard stream", fd);
    if (fstat (fd, &st) < 0)
        return mur_fail (err, E_RUN_046, VARIABLE " names descriptor %d, which is not open", fd);
    if (! S_ISFIFO (st.st_mode) && ! S_ISREG (st.st_mode))
        return mur_fail (err, E_RUN_046,
                         VARIABLE " names descriptor %d, which is neither a pipe nor a file", fd);
    return fd_set_cloexec (fd, true) ||
           mur_fail_errno (err, E_RUN_046, VARIABLE ": descriptor %d", fd);
}

static int
open_channel (struct mur_error **err)
{
    const char *text = getenv (VARIABLE);
    errno = 0;
    unsigned long fd = strtoul (text, NULL, 10);
    if (text[strspn (text, "0123456789")] || errno || fd > INT_MAX)
        return mur_fail (err, E_RUN_046, VARIABLE " is not the decimal number of a descriptor"), -1;
    return check_descriptor ((int)fd, err) ? (int)fd : -1;
}

/* --- lines --- */

/* Cuts the next whole line off what was read. Owned; NULL when there is none yet. */
static char *
next_line (struct buf *pending)
{
    char *end = pending->len ? memchr (pending->data, '\n', pending->len) : NULL;
    if (! end)
        return NULL;
    size_t len = (size_t)(end - pending->data);
    char *line = x_strndup (pending->data, len);
    memmove (pending->data, end + 1, pending->len - len - 1);
    size_t left = pending->len - len - 1;
    explicit_bzero (pending->data + left, pending->len - left); /* tokens were in it */
    buf_truncate (pending, left);
    return line;
}

/* Reads once; 0 at the end, -1 with errno. */
static ssize_t
read_more (struct membership *m)
{
    char *to = buf_reserve (&m->pending, 16384);
    ssize_t n;
    while ((n = read (m->fd, to, 16384)) < 0 && errno == EINTR)
        ;
    if (n > 0) {
        m->pending.len += (size_t)n;
        buf_append (&m->pending, "", 0);
    }
    return n;
}

/* The first line, owned; its text is in no message. */
static char *
first_line (struct membership *m, struct mur_error **err)
{
    uint64_t end_ms = clock_monotonic_ms () + FIRST_LINE_MS;
    for (char *line;;) {
        if ((line = next_line (&m->pending)))
            return line;
        uint64_t now_ms = clock_monotonic_ms ();
        if (m->pending.len > LINE_MAX_LEN)
            return mur_fail (err, E_RUN_046, "the formation channel's first line is too long"),
                   NULL;
        if (now_ms >= end_ms || fd_wait (m->fd, POLLIN, (int64_t)(end_ms - now_ms)) == 0)
            return mur_fail (err, E_RUN_046, "the formation channel gave no line within 10 s"),
                   NULL;
        ssize_t n = read_more (m);
        if (n < 0)
            return mur_fail_errno (err, E_RUN_046, "cannot read the formation channel"), NULL;
        if (n == 0)
            return mur_fail (err, E_RUN_046, "the formation channel ended before its first line"),
                   NULL;
    }
}

/* --- the first line --- */

static bool
member_name_is_valid (const char *name)
{
    size_t len = name ? strlen (name) : 0;
    return len && len <= MEMBER_MAX && name[0] >= 'a' && name[0] <= 'z' &&
           strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static bool
fault (const char *what, struct mur_error **err)
{
    return mur_fail (err, E_RUN_046, "the formation channel's first line %s", what);
}

static bool
take_key (struct membership *m, const json_t *o, struct mur_error **err)
{
    const char *text = json_get_string (o, "verify_key");
    size_t len;
    _cleanup_free_ unsigned char *key = text ? base64url_decode (text, strlen (text), &len) : NULL;
    if (! key || len != sizeof m->verify_key)
        return fault ("has no verify_key of 32 bytes", err);
    memcpy (m->verify_key, key, sizeof m->verify_key);
    return true;
}

static bool
take_launcher (struct membership *m, const json_t *o, struct mur_error **err)
{
    const json_t *launcher = json_object_get (o, "launcher");
    uint64_t pid;
    if (! launcher || json_is_null (launcher))
        return true;
    const char *start = json_get_string (launcher, "process_start");
    if (! json_get_u64 (launcher, "pid", &pid) || pid < 1 || pid > INT_MAX || ! start)
        return fault ("has a launcher that names no process", err);
    m->launcher = (pid_t)pid;
    m->launcher_start = x_strdup (start);
    return true;
}

static bool
take_callee (struct membership *m, const json_t *o, struct mur_error **err)
{
    const char *name = json_get_string (o, "name"), *token = json_get_string (o, "token");
    if (! member_name_is_valid (name) || ! token || strcmp (name, m->member) == 0)
        return fault ("has a call without a member's name and token", err);
    _cleanup_free_ char *from = NULL;
    if (formation_token_verify (m->verify_key, m->formation_id, name, token, &from) !=
            FORMATION_GENUINE ||
        strcmp (from, m->member) != 0)
        return fault ("has a token its own key does not vouch for", err);
    for (size_t i = 0; i < m->len; i++)
        if (strcmp (m->callees[i].name, name) == 0)
            return fault ("names a callee twice", err);
    m->callees[m->len++] =
        (struct callee){ x_strdup (name), secret_new (token, strlen (token)), NULL };
    return true;
}

static bool
take_callees (struct membership *m, const json_t *o, struct mur_error **err)
{
    const json_t *calls = json_object_get (o, "calls"), *call;
    size_t i;
    if (calls && ! json_is_array (calls))
        return fault ("has calls that are no list", err);
    m->callees = x_new_array (struct callee, json_array_size (calls) + 1);
    json_array_foreach (calls, i, call) if (! take_callee (m, call, err)) return false;
    return true;
}

static bool
take_line (struct membership *m, const char *formation_id, const char *line, struct mur_error **err)
{
    _cleanup_json_ json_t *o = json_loads (line, 0, NULL);
    const char *formation = json_get_string (o, "formation_id");
    const char *member = json_get_string (o, "member");
    const json_t *entry = json_object_get (o, "entry");
    if (! json_is_object (o))
        return fault ("is no JSON object", err);
    if (! formation || ! id_is_valid (formation, "frm_"))
        return fault ("has no formation_id", err);
    if (strcmp (formation, formation_id) != 0)
        return fault ("is of another formation than MURMUR_FORMATION_ID", err);
    if (! member_name_is_valid (member))
        return fault ("names no member", err);
    if (entry && ! json_is_boolean (entry))
        return fault ("has an entry that is no boolean", err);
    m->formation_id = x_strdup (formation);
    m->member = x_strdup (member);
    m->is_entry = json_is_true (entry);
    return take_key (m, o, err) && take_launcher (m, o, err) && take_callees (m, o, err);
}

/* --- address lines --- */

static bool
is_address (const char *url)
{
    return url && strncmp (url, "http://", 7) == 0 && url[7] &&
           url[7 + strcspn (url + 7, "/?#@ ")] == '\0';
}

static void
take_address (struct membership *m, const json_t *o)
{
    const char *name = json_get_string (o, "name"), *url = json_get_string (o, "url");
    for (size_t i = 0; name && is_address (url) && i < m->len; i++)
        if (strcmp (m->callees[i].name, name) == 0) {
            free (m->callees[i].url);
            m->callees[i].url = x_strdup (url);
        }
}

static void
take_addresses (struct membership *m, const char *line)
{
    _cleanup_json_ json_t *o = json_loads (line, 0, NULL);
    const json_t *list = json_object_get (o, "addresses"), *one;
    size_t i;
    if (! json_is_array (list)) {
        diag_stderr_line ("[capsule-runtime] a line of the formation channel was not understood");
        return;
    }
    pthread_mutex_lock (&m->lock);
    json_array_foreach (list, i, one) take_address (m, one);
    pthread_cond_broadcast (&m->changed);
    pthread_mutex_unlock (&m->lock);
}

static void *
read_addresses (void *arg)
{
    struct membership *m = arg;
    struct pollfd fds[] = { { m->fd, POLLIN, 0 }, { m->stop_fd, POLLIN, 0 } };
    for (;;) {
        for (char *line; (line = next_line (&m->pending)); free (line))
            take_addresses (m, line);
        if (m->pending.len > LINE_MAX_LEN)
            return NULL;
        if (poll (fds, ARRAY_LEN (fds), -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[1].revents)
            return NULL;
        if (fds[0].revents && read_more (m) <= 0)
            return NULL;
    }
}

static bool
start_reader (struct membership *m, struct mur_error **err)
{
    m->stop_fd = eventfd (0, EFD_CLOEXEC);
    int failed = m->stop_fd < 0 ? errno : thread_start (&m->reader, read_addresses, m);
    errno = failed;
    m->has_reader = ! failed;
    return ! failed || mur_fail_errno (err, E_RUN_046, "cannot listen on the formation channel");
}

/* --- the whole --- */

struct membership *
membership_take (const char *formation_id, struct mur_error **err)
{
    const char *text = getenv (VARIABLE);
    if (! text || ! text[strspn (text, " \t\r\n")])
        return NULL;
    if (! formation_id)
        return mur_fail (err, E_RUN_046, VARIABLE " is set without MURMUR_FORMATION_ID"), NULL;
    int fd = open_channel (err);
    return fd < 0 ? NULL : membership_of_channel (fd, formation_id, false, err);
}

struct membership *
membership_of_channel (int fd, const char *formation_id, bool is_far, struct mur_error **err)
{
    _cleanup_ (membership_freep) struct membership *m = x_new0 (struct membership);
    condition_init (&m->changed);
    pthread_mutex_init (&m->lock, NULL);
    m->stop_fd = -1;
    m->fd = fd;
    m->is_far = is_far;
    struct mur_error *unloadable = NULL;
    if (! ed25519_load (&unloadable)) {
        mur_fail (err, E_RUN_046, "%s", unloadable->message);
        mur_error_free (unloadable);
        return NULL;
    }
    char *line = first_line (m, err);
    bool is_taken = line && take_line (m, formation_id, line, err);
    if (line)
        secret_wipe (line, strlen (line));
    free (line);
    return is_taken && start_reader (m, err) ? steal_ptr (&m) : NULL;
}

struct membership *
membership_recorded (const char *formation_id, const char *member, const char *const *callees,
                     size_t count)
{
    struct membership *m = x_new0 (struct membership);
    condition_init (&m->changed);
    pthread_mutex_init (&m->lock, NULL);
    m->fd = m->stop_fd = -1;
    m->formation_id = x_strdup (formation_id);
    m->member = x_strdup (member);
    m->callees = x_new_array (struct callee, count + 1);
    for (size_t i = 0; i < count; i++) {
        char token[37]; /* of nobody, but no word of a text either */
        uuid_text (token);
        m->callees[m->len++] =
            (struct callee){ x_strdup (callees[i]), secret_new (token, strlen (token)), NULL };
    }
    return m;
}

void
membership_free (struct membership *m)
{
    if (! m)
        return;
    if (m->has_reader) {
        eventfd_write (m->stop_fd, 1);
        pthread_join (m->reader, NULL);
    }
    if (m->fd >= 0)
        close (m->fd);
    if (m->stop_fd >= 0)
        close (m->stop_fd);
    for (size_t i = 0; i < m->len; i++) {
        free (m->callees[i].name);
        free (m->callees[i].url);
        secret_free (m->callees[i].token);
    }
    free (m->callees);
    if (m->pending.data)
        explicit_bzero (m->pending.data, m->pending.cap);
    buf_free (&m->pending);
    free (m->formation_id);
    free (m->member);
    free (m->launcher_start);
    pthread_cond_destroy (&m->changed);
    pthread_mutex_destroy (&m->lock);
    free (m);
}

/* --- asking --- */

const char *
membership_formation_id (const struct membership *m)
{
    return m->formation_id;
}

const char *
membership_member (const struct membership *m)
{
    return m->member;
}

bool
membership_is_entry (const struct membership *m)
{
    return m->is_entry;
}

pid_t
membership_launcher (const struct membership *m, const char **process_start)
{
    *process_start = m->launcher_start;
    return m->launcher;
}

const unsigned char *
membership_verify_key (const struct membership *m)
{
    return m->verify_key;
}

size_t
membership_callee_count (const struct membership *m)
{
    return m->len;
}

const char *
membership_callee (const struct membership *m, size_t i)
{
    return m->callees[i].name;
}

static struct callee *
find (const struct membership *m, const char *name)
{
    for (size_t i = 0; i < m->len; i++)
        if (strcmp (m->callees[i].name, name) == 0)
            return &m->callees[i];
    return NULL;
}

const struct secret *
membership_token (const struct membership *m, const char *callee)
{
    const struct callee *c = find (m, callee);
    return c ? c->token : NULL;
}

static void
wake (void *ctx)
{
    struct membership *m = ctx;
    pthread_mutex_lock (&m->lock);
    pthread_cond_broadcast (&m->changed);
    pthread_mutex_unlock (&m->lock);
}

char *
membership_address (struct membership *m, const char *callee, struct cancel *cancel)
{
    const struct callee *c = find (m, callee);
    if (! c)
        return NULL;
    uint64_t end_ms = clock_monotonic_ms () + FORMATION_ADDRESS_MS;
    struct timespec end = { (time_t)(end_ms / 1000), (long)(end_ms % 1000) * 1000000 };
    uint64_t listener = cancel_add (cancel, wake, m);
    pthread_mutex_lock (&m->lock);
    while (! c->url && ! (cancel && cancel_is_raised (cancel)) &&
           pthread_cond_timedwait (&m->changed, &m->lock, &end) == 0)
        ;
    char *url = c->url ? x_strdup (c->url) : NULL;
    pthread_mutex_unlock (&m->lock);
    cancel_remove (cancel, listener);
    return url;
}

char *
membership_asked_for (const struct membership *m, const char *url)
{
    const char *authority = url + strlen ("http://"), *port = strrchr (authority, ':');
    return m->is_far ? x_asprintf ("localhost%s", port ? port : "") : x_strdup (authority);
}

char *
membership_peers_text (const struct membership *m)
{
    struct buf text = { 0 };
    for (size_t i = 0; i < m->len; i++)
        buf_printf (&text, "%s%s=http://%s" FORMATION_HOST_SUFFIX, i ? " " : "", m->callees[i].name,
                    m->callees[i].name);
    return m->len ? buf_steal (&text) : NULL;
}

/* Every occurrence of <what> in the text by <with>. */
static void
replace (struct buf *text, const char *what, const char *with)
{
    size_t len = strlen (what);
    if (! len || ! text->data || ! strstr (text->data, what))
        return;
    struct buf clean = { 0 };
    const char *from = text->data;
    for (const char *at; (at = strstr (from, what)); from = at + len) {
        buf_append (&clean, from, (size_t)(at - from));
        buf_puts (&clean, with);
    }
    buf_puts (&clean, from);
    buf_free (text);
    *text = clean;
}

char *
membership_redact (struct membership *m, const char *text)
{
    struct buf clean = { 0 };
    buf_puts (&clean, text);
    pthread_mutex_lock (&m->lock);
    for (size_t i = 0; i < m->len; i++) {
        const struct callee *c = &m->callees[i];
        _cleanup_free_ char *host = x_asprintf ("%s" FORMATION_HOST_SUFFIX, c->name);
        if (c->url)
            replace (&clean, c->url + strlen ("http://"), host);
        replace (&clean, secret_reveal (c->token), "[redacted]");
    }
    pthread_mutex_unlock (&m->lock);
    return buf_steal (&clean);
}
