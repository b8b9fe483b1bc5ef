/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_search.h"

#include "base/alloc.h"
#include "cli/ui/ui_gate.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#define READ_BYTES    ((size_t)256 << 10)
#define AROUND        80 /* bytes shown on each side */
#define MOST_OF_ONE   20 /* hits in one session */
#define MOST_HITS     500
#define WAITING_BYTES ((size_t)256 << 10) /* not read yet by who asked */

/* Shared by the thread that looks and the server's; the last of them frees it. */
struct search {
    struct ui_searches *all;
    struct ui_world *world;
    struct buf raw, escaped; /* what is looked for, folded: as it is, and as a JSON string has it */
    struct strv ids;
    size_t hits;

    pthread_mutex_t lock;
    pthread_cond_t room;
    struct http_stream *stream; /* NULL: not there yet, or gone */
    struct buf out;
    size_t sent;
    bool is_done, is_gone;
    int holders;
};

static void
release (struct search *s)
{
    pthread_mutex_lock (&s->lock);
    bool is_last = --s->holders == 0;
    pthread_mutex_unlock (&s->lock);
    if (! is_last)
        return;
    buf_free (&s->raw);
    buf_free (&s->escaped);
    buf_free (&s->out);
    strv_free (&s->ids);
    pthread_cond_destroy (&s->room);
    pthread_mutex_destroy (&s->lock);
    free (s);
}

/* A line for who asked; waits while they read slowly. False: they have left. */
static bool
say (struct search *s, json_t *line, bool is_last)
{
    _cleanup_free_ char *text = json_text (line, JSON_TEXT_ORDERED);
    json_decref (line);
    pthread_mutex_lock (&s->lock);
    while (! s->is_gone && s->out.len - s->sent > WAITING_BYTES)
        pthread_cond_wait (&s->room, &s->lock);
    buf_puts (&s->out, text);
    buf_putc (&s->out, '\n');
    s->is_done = is_last;
    bool is_wanted = ! s->is_gone;
    if (is_wanted && s->stream)
        http_stream_wake (s->stream);
    pthread_mutex_unlock (&s->lock);
    return is_wanted;
}

/* --- one file --- */

struct hunt {
    struct search *search;
    const char *session, *sha; /* sha: of a body; NULL: the trace */
    const struct buf *needle;  /* folded */
    size_t line;               /* of the first byte of the window */
    size_t found;              /* in this session */
    bool is_wanted;
};

static void
fold (char *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        out[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + 32) : text[i];
}

static void
tell_hit (struct hunt *h, const char *window, size_t len, size_t at, size_t line)
{
    size_t from = at > AROUND ? at - AROUND : 0, to = at + h->needle->len + AROUND;
    if (to > len)
        to = len;
    while (from < at && ((unsigned char)window[from] & 0xc0) == 0x80)
        from++;
    to = from + utf8_cut (window + from, to - from, to - from);
    json_t *hit = json_object ();
    json_set_string (hit, "session", h->session);
    if (h->sha)
        json_set_string (hit, "sha", h->sha);
    else
        json_set_u64 (hit, "n", line);
    json_set_string_n (hit, "text", window + from, to - from);
    h->found++;
    h->search->hits++;
    h->is_wanted = say (h->search, hit, false);
}

static bool
is_left (struct search *s)
{
    pthread_mutex_lock (&s->lock);
    bool is_gone = s->is_gone;
    pthread_mutex_unlock (&s->lock);
    return is_gone;
}

static bool
goes_on (const struct hunt *h)
{
    return h->is_wanted && ! is_left (h->search) && h->found < MOST_OF_ONE &&
           h->search->hits < MOST_HITS;
}

static size_t
count_lines (const char *text, size_t len)
{
    size_t lines = 0;
    for (const char *at = text, *end = text + len; (at = memchr (at, '\n', (size_t)(end - at)));
         at++)
        lines++;
    return lines;
}

/* One hit a line of the trace, one a body. Returns where the next window may begin to match. */
static size_t
look_through (struct hunt *h, const char *window, const char *folded, size_t len, size_t from)
{
    const char *hit;
    while (goes_on (h) &&
           (hit = memmem (folded + from, len - from, h->needle->data, h->needle->len))) {
        size_t at = (size_t)(hit - folded);
        tell_hit (h, window, len, at, h->line + count_lines (window, at));
        const char *stop = h->sha ? NULL : memchr (window + at, '\n', len - at);
        from = stop ? (size_t)(stop - window) : len;
    }
    return from;
}

static void
look_in (struct hunt *h, const char *path)
{
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat (fd, &st) < 0 || ! S_ISREG (st.st_mode))
        return;
    _cleanup_free_ char *window = x_malloc (READ_BYTES * 2);
    _cleanup_free_ char *folded = x_malloc (READ_BYTES * 2);
    size_t kept = 0, from = 0;
    h->line = 0;
    for (ssize_t n; goes_on (h) && (n = read (fd, window + kept, READ_BYTES)) > 0;) {
        size_t len = kept + (size_t)n;
        fold (folded, window, len);
        from = look_through (h, window, folded, len, from);
        if (h->sha && h->found)
            break;
        /* What may be the beginning of a match, and the words before it, stay. */
        size_t stay = h->needle->len + AROUND;
        if (stay > len)
            stay = len;
        size_t gone = len - stay;
        size_t behind = len - (h->needle->len - 1 < len ? h->needle->len - 1 : len);
        if (from < behind)
            from = behind;
        h->line += count_lines (window, gone);
        memmove (window, window + gone, stay);
        from -= gone;
        kept = stay;
    }
}

/* --- one session --- */

static void
look_in_bodies (struct hunt *h, const char *records_dir)
{
    _cleanup_free_ char *path = x_asprintf ("%s/blobs", records_dir);
    DIR *dir = opendir (path);
    for (const struct dirent *e; dir && goes_on (h) && (e = readdir (dir));) {
        if (e->d_name[0] == '.')
            continue;
        _cleanup_free_ char *file = x_asprintf ("%s/%s", path, e->d_name);
        size_t before = h->found;
        h->sha = e->d_name;
        h->needle = &h->search->raw;
        look_in (h, file);
        h->needle = &h->search->escaped;
        if (h->found == before && h->search->escaped.len != h->search->raw.len)
            look_in (h, file);
    }
    if (dir)
        closedir (dir);
}

static bool
look_in_session (struct search *s, const char *id)
{
    _cleanup_ui_place_ struct ui_place place = { 0 };
    if (! ui_world_place (s->world, id, &place))
        return true;
    struct hunt h = { .search = s, .session = id, .needle = &s->escaped, .is_wanted = true };
    look_in (&h, place.trace_path);
    look_in_bodies (&h, place.records_dir);
    return h.is_wanted && ! is_left (s) && s->hits < MOST_HITS;
}

static void *
run (void *ctx)
{
    struct search *s = ctx;
    size_t done = 0;
    while (done < s->ids.len && look_in_session (s, s->ids.items[done]))
        if (++done % 10 == 0 && ! say (s,
                                       json_pack ("{s:I, s:I}", "done", (json_int_t)done, "total",
                                                  (json_int_t)s->ids.len),
                                       false))
            break;
    say (s,
         json_pack ("{s:b, s:I, s:I, s:I}", "end", 1, "hits", (json_int_t)s->hits, "done",
                    (json_int_t)done, "total", (json_int_t)s->ids.len),
         true);
    struct ui_searches *all = s->all;
    release (s);
    pthread_mutex_lock (&all->lock);
    all->count--;
    pthread_cond_signal (&all->none);
    pthread_mutex_unlock (&all->lock);
    return NULL;
}

/* --- the answer --- */

static ssize_t
read_lines (void *ctx, char *out, size_t cap)
{
    struct search *s = ctx;
    pthread_mutex_lock (&s->lock);
    size_t left = s->out.len - s->sent, part = left < cap ? left : cap;
    memcpy (out, s->out.data ? s->out.data + s->sent : "", part);
    s->sent += part;
    if (part && s->sent == s->out.len) {
        buf_truncate (&s->out, 0);
        s->sent = 0;
        pthread_cond_signal (&s->room);
    }
    ssize_t answer = part ? (ssize_t)part : s->is_done ? HTTP_STREAM_END : HTTP_STREAM_WAIT;
    if (! part && http_stream_is_gone (s->stream))
        answer = HTTP_STREAM_END;
    pthread_mutex_unlock (&s->lock);
    return answer;
}

static void
leave (void *ctx)
{
    struct search *s = ctx;
    pthread_mutex_lock (&s->lock);
    s->stream = NULL;
    s->is_gone = true;
    pthread_cond_signal (&s->room);
    pthread_mutex_unlock (&s->lock);
    release (s);
}

/* As a JSON string has it, without its quotes. */
static void
escape (struct buf *out, const char *text)
{
    _cleanup_json_ json_t *value = json_string (text);
    _cleanup_free_ char *escaped = value ? json_dumps (value, JSON_ENCODE_ANY) : NULL;
    if (escaped)
        buf_append (out, escaped + 1, strlen (escaped) - 2);
}

/* False: no thread for it. */
static bool
begin (struct search *s)
{
    pthread_t thread;
    struct ui_searches *all = s->all;
    pthread_mutex_lock (&all->lock);
    all->count++;
    bool is_begun = pthread_create (&thread, NULL, run, s) == 0;
    all->count -= ! is_begun;
    pthread_mutex_unlock (&all->lock);
    if (is_begun)
        pthread_detach (thread);
    return is_begun;
}

void
ui_searches_wait (struct ui_searches *all)
{
    pthread_mutex_lock (&all->lock);
    while (all->count)
        pthread_cond_wait (&all->none, &all->lock);
    pthread_mutex_unlock (&all->lock);
}

void
ui_search_stream (struct ui_searches *all, struct ui_world *w, struct http_exchange *x,
                  const char *text)
{
    static const struct http_stream_source source = { .read = read_lines,
                                                      .tick_ms = 1000,
                                                      .closed = leave };
    struct search *s = x_new0 (struct search);
    pthread_mutex_init (&s->lock, NULL);
    pthread_cond_init (&s->room, NULL);
    s->all = all;
    s->world = w;
    s->holders = 2;
    buf_puts (&s->raw, text);
    escape (&s->escaped, text);
    fold (s->raw.data, s->raw.data, s->raw.len);
    fold (s->escaped.data, s->escaped.data, s->escaped.len);
    ui_world_ids (w, &s->ids);
    struct http_stream *stream = ui_reply_stream (x, "application/x-ndjson", &source, s);
    if (! stream)
        s->holders = 1;
    s->stream = stream;
    if (stream && begin (s))
        return;
    s->is_done = true;
    release (s);
}
