/* SPDX-License-Identifier: Apache-2.0
 *
 * The line is built in one buffer kept for the session, under the trace lock, so an event costs no
 * allocation once the buffer has grown and ids rise in file order.
 */
#include "trace/lines/writer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/keys/token.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FREE_TEXT_LIMIT_BYTES 2000
#define KEPT_BUFFER_BYTES     (256 * 1024)

struct trace_writer {
    pthread_mutex_t lock; /* base/locks.h: trace */
    int fd;
    off_t size; /* of the whole lines in the file; -1: others append too, nothing is taken back */
    bool is_rootless; /* of a reopened trace without session_start */
    struct redactor *redactor;
    struct id session;
    struct id session_node, task_node, turn_node; /* "" while there is none */
    struct buf line;
    uint64_t lost; /* lines that did not get into the file since the last one that did */
    trace_observer_fn *observer; /* NULL: nobody */
    void *observer_ctx;
};

static struct trace_writer *
writer_on (int fd, const char *session_id)
{
    struct trace_writer *w = x_new0 (struct trace_writer);
    pthread_mutex_init (&w->lock, NULL);
    w->fd = fd;
    w->size = -1;
    snprintf (w->session.text, sizeof (w->session.text), "%s", session_id);
    return w;
}

struct trace_writer *
trace_writer_new (struct fs_root *records, const char *session_id, struct redactor *redactor,
                  struct mur_error **err)
{
    int fd = fs_open_append (records, "trace.jsonl", 0666, err);
    if (fd < 0)
        return NULL;
    struct trace_writer *w = writer_on (fd, session_id);
    struct stat st;
    if (fstat (fd, &st) == 0)
        w->size = st.st_size;
    w->redactor = redactor;
    return w;
}

/* Whether the file ends within a line. */
static bool
is_torn (struct fs_root *records, const char *file_name)
{
    struct stat st;
    char last = '\n';
    _cleanup_close_ int fd = fs_open_read (records, file_name, NULL);
    return fd >= 0 && fstat (fd, &st) == 0 && st.st_size > 0 &&
           pread (fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

struct trace_writer *
trace_writer_reopen (struct fs_root *records, const char *file_name, const char *session_id,
                     const char *session_node, struct mur_error **err)
{
    _cleanup_close_ int fd = fs_open_append (records, file_name, 0666, err);
    if (fd < 0)
        return NULL;
    if (is_torn (records, file_name) && ! fd_write_all (fd, "\n", 1))
        return mur_fail_errno (err, E_IO_003, "cannot end the last line of %s", file_name), NULL;
    struct trace_writer *w = writer_on (steal_fd (&fd), session_id);
    w->is_rootless = ! session_node;
    if (session_node)
        snprintf (w->session_node.text, sizeof (w->session_node.text), "%s", session_node);
    return w;
}

void
trace_writer_free (struct trace_writer *w)
{
    if (! w)
        return;
    close (w->fd);
    buf_free (&w->line);
    pthread_mutex_destroy (&w->lock);
    free (w);
}

void
trace_writer_observe (struct trace_writer *w, trace_observer_fn *fn, void *ctx)
{
    pthread_mutex_lock (&w->lock);
    w->observer = fn;
    w->observer_ctx = ctx;
    pthread_mutex_unlock (&w->lock);
}

char *
trace_free_text (struct trace_writer *w, const char *text)
{
    char *clean = w && w->redactor ? redactor_apply (w->redactor, text) : x_strdup (text);
    clean[utf8_cut (clean, strlen (clean), FREE_TEXT_LIMIT_BYTES)] = '\0';
    return clean;
}

/* --- one line --- */

static void
append_text (struct trace_writer *w, const char *text)
{
    _cleanup_free_ char *clean = trace_free_text (w, text);
    json_append_string (&w->line, clean, strlen (clean));
}

static void
append_strings (struct buf *b, char *const *items)
{
    buf_putc (b, '[');
    for (size_t i = 0; items && items[i]; i++) {
        if (i)
            buf_putc (b, ',');
        json_append_string (b, items[i], strlen (items[i]));
    }
    buf_putc (b, ']');
}

static void
append_number (struct buf *b, int64_t value)
{
    char text[24];
    int len = snprintf (text, sizeof (text), "%lld", (long long)value);
    buf_append (b, text, (size_t)len);
}

/* True when the member of a NULLABLE or OPTIONAL field holds nothing. */
static bool
is_unset (const struct trace_field *f, const void *member)
{
    switch (f->kind) {
    case TRACE_KIND_INT:
        return ! ((const struct trace_num *)member)->is_set;
    case TRACE_KIND_MBOOL:
        return ! ((const struct trace_flag *)member)->is_set;
    case TRACE_KIND_U64:
    case TRACE_KIND_BOOL:
        return false;
    case TRACE_KIND_STR:
    case TRACE_KIND_TEXT:
    case TRACE_KIND_STRS:
    case TRACE_KIND_JSON:
    default:
        return *(const void *const *)member == NULL;
    }
}

static void
append_value (struct trace_writer *w, const struct trace_field *f, const void *member)
{
    struct buf *b = &w->line;
    const char *text =
        f->kind == TRACE_KIND_STR || f->kind == TRACE_KIND_TEXT || f->kind == TRACE_KIND_JSON
            ? *(const char *const *)member
            : NULL;
    switch (f->kind) {
    case TRACE_KIND_STR:
        json_append_string (b, text ? text : "", text ? strlen (text) : 0);
        break;
    case TRACE_KIND_TEXT:
        append_text (w, text ? text : "");
        break;
    case TRACE_KIND_U64:
        buf_printf (b, "%llu", (unsigned long long)*(const uint64_t *)member);
        break;
    case TRACE_KIND_INT:
        append_number (b, ((const struct trace_num *)member)->value);
        break;
    case TRACE_KIND_BOOL:
        buf_puts (b, *(const bool *)member ? "true" : "false");
        break;
    case TRACE_KIND_MBOOL:
        buf_puts (b, ((const struct trace_flag *)member)->value ? "true" : "false");
        break;
    case TRACE_KIND_STRS:
        append_strings (b, *(char *const *const *)member);
        break;
    case TRACE_KIND_JSON:
        buf_puts (b, text ? text : "null");
        break;
    }
}

static void
append_fields (struct trace_writer *w, const struct trace_event_info *info, const char *payload)
{
    for (size_t i = 0; i < info->field_count; i++) {
        const struct trace_field *f = &info->fields[i];
        const void *member = payload + f->offset;
        bool unset = f->presence != TRACE_ALWAYS && is_unset (f, member);
        if (unset && f->presence == TRACE_OPTIONAL)
            continue;
        buf_append (&w->line, ",\"", 2);
        buf_puts (&w->line, f->key);
        buf_append (&w->line, "\":", 2);
        if (unset)
            buf_puts (&w->line, "null");
        else
            append_value (w, f, member);
    }
}

/* --- the tree --- */

/* The id of the parent node, or NULL for null. */
static const char *
parent_node (const struct trace_writer *w, enum trace_parent parent, const char *given)
{
    if (parent == TRACE_PARENT_PLAN && given)
        return given;
    if (parent == TRACE_PARENT_ROOT)
        return NULL;
    if (parent == TRACE_PARENT_TURN && w->turn_node.text[0])
        return w->turn_node.text;
    if ((parent == TRACE_PARENT_TURN || parent == TRACE_PARENT_TASK) && w->task_node.text[0])
        return w->task_node.text;
    return w->session_node.text[0] ? w->session_node.text : NULL;
}

/* Moves the nodes after a line was written. */
static void
follow (struct trace_writer *w, enum trace_event_type event, const void *payload, struct id id)
{
    if (event == TRACE_EVENT_session_start) {
        w->session_node = id;
    } else if (event == TRACE_EVENT_task_start) {
        w->task_node = id;
        w->turn_node = (struct id){ 0 };
    } else if (event == TRACE_EVENT_inference) {
        if (! ((const struct trace_inference *)payload)->origin)
            w->turn_node = id;
    } else if (event == TRACE_EVENT_task_end) {
        w->task_node = (struct id){ 0 };
        w->turn_node = (struct id){ 0 };
    }
}

/* A hook's inference hangs from the turn, the agent loop's from the task. */
static enum trace_parent
usual_parent (enum trace_event_type event, const void *payload)
{
    if (event == TRACE_EVENT_inference && ((const struct trace_inference *)payload)->origin)
        return TRACE_PARENT_TURN;
    return trace_event_info (event)->parent;
}

/* One whole line, or nothing: what a full disk let through of a line is taken back, so that a later
 * line does not continue it. */
static bool
append_line (struct trace_writer *w, const struct buf *line)
{
    if (fd_write_all (w->fd, line->data, line->len)) {
        w->size += w->size < 0 ? 0 : (off_t)line->len;
        return true;
    }
    int saved = errno;
    if (w->size >= 0 && ftruncate (w->fd, w->size) < 0)
        w->size = -1;
    errno = saved;
    return false;
}

/* Told once for each gap; the line that follows it says how many are missing. */
static void
note_lost (struct trace_writer *w, const char *name, struct mur_error **err)
{
    mur_fail_errno (err, E_IO_003, "cannot write the %s line of the trace", name);
    if (! w->lost++)
        diag_lost ("a line of the trace (%s) was not written: %s", name, strerror (errno));
}

bool
trace_write_under (struct trace_writer *w, enum trace_parent parent, const char *parent_id,
                   enum trace_event_type event, const void *payload, struct id *id,
                   struct mur_error **err)
{
    if (! w)
        return true;
    const struct trace_event_info *info = trace_event_info (event);
    pthread_mutex_lock (&w->lock);
    struct id line_id = id_new ("evt_");
    const char *above = parent_node (w, parent, parent_id);
    struct buf *b = &w->line;
    buf_truncate (b, 0);
    buf_printf (b, "{\"event_type\":\"%s\",\"event_id\":\"%s\"", info->name, line_id.text);
    if (above)
        buf_printf (b, ",\"parent_id\":\"%s\"", above);
    else if (! w->is_rootless)
        buf_puts (b, ",\"parent_id\":null");
    buf_printf (b, ",\"session_id\":\"%s\",\"timestamp\":%llu", w->session.text,
                (unsigned long long)clock_unix_ms ());
    append_fields (w, info, payload);
    if (w->lost)
        buf_printf (b, ",\"lines_lost\":%llu", (unsigned long long)w->lost);
    buf_append (b, "}\n", 2);
    /* Whoever holds a handle may fetch the file: none is ever recorded (door.md 13). */
    token_scrub (&token_peer_handle, b, 0);
    bool ok = append_line (w, b);
    if (! ok)
        note_lost (w, info->name, err);
    else
        w->lost = 0;
    if (ok)
        follow (w, event, payload, line_id);
    if (ok && w->observer)
        w->observer (w->observer_ctx, event, payload,
                     &(struct trace_line){ line_id.text, b->data, b->len });
    if (b->cap > KEPT_BUFFER_BYTES)
        buf_free (b);
    pthread_mutex_unlock (&w->lock);
    if (ok && id)
        *id = line_id;
    return ok;
}

bool
trace_write (struct trace_writer *w, enum trace_event_type event, const void *payload,
             struct id *id, struct mur_error **err)
{
    return trace_write_under (w, usual_parent (event, payload), NULL, event, payload, id, err);
}
