/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_trace.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "trace/lines/events.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#define HELD_TRACES  4
#define READ_BYTES   ((size_t)256 << 10)
#define HEAD_BYTES   96 /* the type stands at the beginning of a line */
#define ROW_LINE_MAX ((size_t)1 << 20)
#define MOST_ROWS    1000
#define TEXT_SHOWN   240
#define ITEMS_SHOWN  24
#define KIND_UNKNOWN 254 /* of a later release */
#define KIND_BROKEN  255 /* no line of a trace */
#define NAME_PLACES  256
#define INDEX_STEP   16384

_Static_assert(TRACE_EVENT_COUNT < KIND_UNKNOWN, "a type fits into a byte beside the marks");

/* One trace: begin of each line, and its type. */
struct indexed {
    char *path;
    dev_t dev;
    ino_t ino;
    int fd;
    uint64_t end;      /* behind the last whole line */
    uint64_t torn;     /* bytes behind that */
    uint64_t *offsets; /* len + 1 of them: the last is `end` */
    uint8_t *kinds;
    size_t len, cap;
    uint64_t used_ms;
};

struct ui_traces {
    pthread_mutex_t lock;
    struct indexed held[HELD_TRACES];
    struct {
        char name[40];
        uint8_t kind;
    } names[NAME_PLACES]; /* looked up once each */
};

struct ui_traces *
ui_traces_new (void)
{
    struct ui_traces *t = x_new0 (struct ui_traces);
    pthread_mutex_init (&t->lock, NULL);
    for (size_t i = 0; i < HELD_TRACES; i++)
        t->held[i].fd = -1;
    return t;
}

static void
indexed_clear (struct indexed *x)
{
    if (x->fd >= 0)
        close (x->fd);
    free (x->path);
    free (x->offsets);
    free (x->kinds);
    *x = (struct indexed){ .fd = -1 };
}

void
ui_traces_free (struct ui_traces *t)
{
    if (! t)
        return;
    for (size_t i = 0; i < HELD_TRACES; i++)
        indexed_clear (&t->held[i]);
    pthread_mutex_destroy (&t->lock);
    free (t);
}

/* --- finding lines --- */

static uint8_t
kind_of_name (struct ui_traces *t, const char *name, size_t len)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    size_t at = hash % NAME_PLACES;
    if (strncmp (t->names[at].name, name, len) == 0 && t->names[at].name[len] == '\0')
        return t->names[at].kind;
    memcpy (t->names[at].name, name, len);
    t->names[at].name[len] = '\0';
    t->names[at].kind = KIND_UNKNOWN;
    for (unsigned i = 0; i < TRACE_EVENT_COUNT; i++)
        if (str_eq (trace_event_info ((enum trace_event_type)i)->name, t->names[at].name))
            t->names[at].kind = (uint8_t)i;
    return t->names[at].kind;
}

static uint8_t
kind_of_line (struct ui_traces *t, const char *line, size_t len)
{
    static const char opening[] = "{\"event_type\":\"";
    size_t skip = sizeof opening - 1, most = sizeof t->names[0].name - 1;
    if (len < skip || memcmp (line, opening, skip) != 0)
        return KIND_BROKEN;
    const char *quote = memchr (line + skip, '"', len - skip);
    if (! quote)
        return KIND_BROKEN;
    size_t name = (size_t)(quote - line) - skip;
    return name <= most ? kind_of_name (t, line + skip, name) : KIND_UNKNOWN;
}

static void
add_line (struct indexed *x, uint64_t offset, uint8_t kind)
{
    if (x->len + 1 >= x->cap) {
        x->cap += INDEX_STEP;
        x->offsets = x_reallocarray (x->offsets, x->cap + 1, sizeof *x->offsets);
        x->kinds = x_reallocarray (x->kinds, x->cap, sizeof *x->kinds);
    }
    x->offsets[x->len] = offset;
    x->kinds[x->len++] = kind;
}

/* What a window begins with is a line. Returns how much of it was whole lines. */
static size_t
take_window (struct ui_traces *t, struct indexed *x, const char *window, size_t len)
{
    size_t at = 0;
    const char *stop;
    while (at < len && (stop = memchr (window + at, '\n', len - at))) {
        size_t line = (size_t)(stop - window) - at;
        uint8_t kind = kind_of_line (t, window + at, line);
        if (line && stop[-1] != '}')
            kind = KIND_BROKEN;
        add_line (x, x->end + at, kind);
        at += line + 1;
    }
    return at;
}

/* A line longer than the window: its head says what it is, its end is looked for. */
static bool
take_long_line (struct ui_traces *t, struct indexed *x, char *window)
{
    uint8_t kind = kind_of_line (t, window, HEAD_BYTES);
    for (uint64_t at = x->end;;) {
        ssize_t n = pread (x->fd, window, READ_BYTES, (off_t)at);
        const char *stop = n > 0 ? memchr (window, '\n', (size_t)n) : NULL;
        if (n <= 0)
            return false;
        if (stop) {
            add_line (x, x->end, kind);
            x->end = at + (uint64_t)(stop - window) + 1;
            return true;
        }
        at += (uint64_t)n;
    }
}

static void
read_on (struct ui_traces *t, struct indexed *x)
{
    _cleanup_free_ char *window = x_malloc (READ_BYTES);
    for (;;) {
        ssize_t n = pread (x->fd, window, READ_BYTES, (off_t)x->end);
        if (n <= 0)
            break;
        size_t whole = take_window (t, x, window, (size_t)n);
        x->end += whole;
        if (whole)
            continue;
        if ((size_t)n < READ_BYTES || ! take_long_line (t, x, window))
            break;
    }
    struct stat st;
    x->torn = fstat (x->fd, &st) == 0 && (uint64_t)st.st_size > x->end
                  ? (uint64_t)st.st_size - x->end
                  : 0;
    if (x->offsets)
        x->offsets[x->len] = x->end;
}

/* --- which are held --- */

static bool
is_same_file (const struct indexed *x, const struct stat *st)
{
    return x->dev == st->st_dev && x->ino == st->st_ino && (uint64_t)st->st_size >= x->end;
}

/* Under the lock. NULL: it cannot be read. */
static struct indexed *
indexed_of (struct ui_traces *t, const char *path, struct mur_error **err)
{
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat (fd, &st) < 0 || ! S_ISREG (st.st_mode)) {
        mur_fail_errno (err, fd < 0 && errno == ENOENT ? E_IO_001 : E_IO_003, "cannot read %s",
                        path);
        return NULL;
    }
    struct indexed *place = &t->held[0];
    for (size_t i = 0; i < HELD_TRACES; i++) {
        if (str_eq (t->held[i].path, path)) {
            place = &t->held[i];
            break;
        }
        if (t->held[i].used_ms < place->used_ms)
            place = &t->held[i];
    }
    if (! str_eq (place->path, path) || ! is_same_file (place, &st)) {
        indexed_clear (place);
        place->path = x_strdup (path);
        place->dev = st.st_dev;
        place->ino = st.st_ino;
        place->fd = steal_fd (&fd);
    }
    place->used_ms = clock_monotonic_ms ();
    read_on (t, place);
    return place;
}

/* --- rows --- */

json_t *
ui_trace_shortened (const json_t *value, size_t text_limit, size_t list_limit)
{
    if (json_is_string (value)) {
        const char *text = json_string_value (value);
        size_t len = json_string_length (value), cut = utf8_cut (text, len, text_limit);
        json_t *whole = json_stringn (text, cut);
        if (cut == len || ! whole)
            return whole;
        json_t *with_mark = json_sprintf ("%s…", json_string_value (whole));
        json_decref (whole);
        return with_mark;
    }
    size_t i = 0;
    const char *key;
    json_t *item;
    if (json_is_array (value)) {
        json_t *list = json_array ();
        for (; i < json_array_size (value) && i < list_limit; i++)
            json_array_append_new (
                list, ui_trace_shortened (json_array_get (value, i), text_limit, list_limit));
        return list;
    }
    if (! json_is_object (value))
        return json_incref ((json_t *)value);
    json_t *object = json_object ();
    json_object_foreach ((json_t *)value, key, item)
    {
        if (i++ == list_limit * 2)
            break;
        json_object_set_new (object, key, ui_trace_shortened (item, text_limit, list_limit));
    }
    return object;
}

/* The bytes of a line; NULL: they could not be read. Owned. */
static char *
line_at (const struct indexed *x, size_t n, size_t limit, size_t *len)
{
    uint64_t begin = n < x->len ? x->offsets[n] : x->end;
    uint64_t whole = n < x->len ? x->offsets[n + 1] - begin - 1 : x->torn;
    *len = whole < limit ? (size_t)whole : limit;
    char *line = x_malloc (*len + 1);
    ssize_t got = pread (x->fd, line, *len, (off_t)begin);
    *len = got > 0 ? (size_t)got : 0;
    line[*len] = '\0';
    return line;
}

/* What is no line of a trace is shown as the text it is. */
static json_t *
row_at (const struct indexed *x, size_t n)
{
    size_t len;
    _cleanup_free_ char *line = line_at (x, n, ROW_LINE_MAX, &len);
    _cleanup_json_ json_t *event = json_loadb (line, len, 0, NULL);
    json_t *row = json_object ();
    json_set_u64 (row, "n", n);
    bool is_torn = n >= x->len;
    if (json_is_object (event) && ! is_torn && x->kinds[n] != KIND_BROKEN) {
        json_object_set_new (row, "event", ui_trace_shortened (event, TEXT_SHOWN, ITEMS_SHOWN));
        if (x->kinds[n] == KIND_UNKNOWN)
            json_set_string (row, "mark", "unknown");
        return row;
    }
    bool is_long = ! is_torn && x->kinds[n] != KIND_BROKEN && len == ROW_LINE_MAX;
    json_set_string_n (row, "text", line, utf8_cut (line, len, TEXT_SHOWN));
    json_set_string (row, "mark", is_torn ? "torn" : is_long ? "long" : "malformed");
    if (! is_torn && x->kinds[n] < KIND_UNKNOWN)
        json_set_string (row, "type", trace_event_info ((enum trace_event_type)x->kinds[n])->name);
    return row;
}

/* Which types are wanted; what is no line of a trace has none, and is shown when all are. */
static void
choose_kinds (struct ui_traces *t, const char *kinds, bool wanted[256])
{
    for (size_t i = 0; i < 256; i++)
        wanted[i] = ! kinds;
    while (kinds && *kinds) {
        size_t len = strcspn (kinds, ",");
        if (len && len < sizeof t->names[0].name)
            wanted[kind_of_name (t, kinds, len)] = true;
        kinds += len + (kinds[len] == ',');
    }
    wanted[KIND_UNKNOWN] = ! kinds || wanted[KIND_UNKNOWN];
}

static json_t *
rows_of (struct ui_traces *t, const struct indexed *x, const struct ui_rows_query *query)
{
    bool wanted[256];
    choose_kinds (t, query->kinds, wanted);
    size_t total = 0, limit = query->limit < MOST_ROWS ? query->limit : MOST_ROWS;
    size_t lines = x->len + (x->torn ? 1 : 0);
    for (size_t n = 0; n < lines; n++)
        total += wanted[n < x->len ? x->kinds[n] : KIND_BROKEN];
    size_t from = query->is_tail ? (total > limit ? total - limit : 0) : query->from, seen = 0;
    json_t *rows = json_array ();
    for (size_t n = 0; n < lines && json_array_size (rows) < limit; n++)
        if (wanted[n < x->len ? x->kinds[n] : KIND_BROKEN] && seen++ >= from)
            json_array_append_new (rows, row_at (x, n));
    json_t *answer = json_object ();
    json_set_u64 (answer, "total", total);
    json_set_u64 (answer, "from", from);
    json_object_set_new (answer, "rows", rows);
    return answer;
}

json_t *
ui_traces_rows (struct ui_traces *t, const char *path, const struct ui_rows_query *query,
                struct mur_error **err)
{
    pthread_mutex_lock (&t->lock);
    const struct indexed *x = indexed_of (t, path, err);
    json_t *answer = x ? rows_of (t, x, query) : NULL;
    pthread_mutex_unlock (&t->lock);
    return answer;
}

char *
ui_traces_line (struct ui_traces *t, const char *path, size_t n, size_t limit, size_t *len,
                struct mur_error **err)
{
    char *line = NULL;
    pthread_mutex_lock (&t->lock);
    const struct indexed *x = indexed_of (t, path, err);
    if (x && n < x->len + (x->torn ? 1 : 0))
        line = line_at (x, n, limit, len);
    else if (x)
        mur_fail (err, E_IO_001, "%s has no line %zu", path, n + 1);
    pthread_mutex_unlock (&t->lock);
    return line;
}
