/* SPDX-License-Identifier: Apache-2.0 */
#include "base/diag.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fdio.h"
#include "base/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    int fallback_fd;
    bool out_is_closed; /* EPIPE seen by out_write */
    int out_errno;      /* first other failure of out_write */
    int line_errno;     /* the same of a line on stdout that is no report */
    size_t lost;        /* records that could not be kept */
    char first_lost[512];
    struct buf *aside; /* where report output goes in place of stdout; NULL: nowhere else */
} sink = { .lock = PTHREAD_MUTEX_INITIALIZER, .fallback_fd = -1 };

static const char *const prefixes[] = {
    [DIAG_PLAIN] = "",
    [DIAG_RUNTIME] = "[capsule-runtime] ",
    [DIAG_MANIFEST] = "[murmur-artifact] ",
    [DIAG_DOCTOR] = "[mur doctor] ",
};

void
diag_init (void)
{
    signal (SIGPIPE, SIG_IGN);
    signal (SIGXFSZ, SIG_IGN); /* beyond `ulimit -f` a write fails, and that is told */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl (fd, F_GETFD) < 0 && open ("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd)
            _exit (1);
}

void
diag_set_fallback (int fd)
{
    pthread_mutex_lock (&sink.lock);
    sink.fallback_fd = fd;
    pthread_mutex_unlock (&sink.lock);
}

bool
diag_wants_colour (int fd)
{
    const char *no_color = getenv ("NO_COLOR");
    return isatty (fd) && ! (no_color && *no_color);
}

/* Under the lock. */
static void
note_failure (int fd, int error)
{
    if (fd == STDOUT_FILENO && error != EPIPE && ! sink.line_errno)
        sink.line_errno = error;
}

/* Our signs are for terminals that have them. */
static bool
write_shown (int fd, const char *data, size_t len)
{
    if (! locale_lacks_utf8 () || ! isatty (fd))
        return fd_write_all (fd, data, len);
    _cleanup_buf_ struct buf plain = { 0 };
    buf_append_ascii_signs (&plain, data, len);
    return fd_write_all (fd, plain.data, plain.len);
}

/* <plain>: what goes to the fallback when the stream refuses; NULL: nothing does. */
static void
emit_as (int fd, const struct buf *shown, const struct buf *plain)
{
    pthread_mutex_lock (&sink.lock);
    bool is_written = write_shown (fd, shown->data, shown->len);
    if (! is_written)
        note_failure (fd, errno);
    if (! is_written && plain && sink.fallback_fd >= 0)
        (void)fd_write_all (sink.fallback_fd, plain->data, plain->len);
    pthread_mutex_unlock (&sink.lock);
}

/* Names and texts of manifests, packages and models stand in these lines. */
static void
make_printable (struct buf *line, enum printable_style style)
{
    struct buf safe = { 0 };
    buf_append_printable (&safe, line->data, line->len, style);
    buf_free (line);
    *line = safe;
}

/* Where a line of stderr begins with a word that says what kind it is, and that word's colour. */
static const struct {
    const char *word;
    const char *ink;
} heads[] = {
    { "error[", "\033[1;31m" },
    { "warning", "\033[33m" },
    { "  hint:", "\033[36m" },
    { "note:", "\033[2m" },
};

/* The length of the head at the start of <line>, behind a prefix of ours; 0 when there is none. */
static size_t
head_len (const char *line, const char **ink)
{
    size_t prefix = line[0] == '[' ? strcspn (line, "]\n") + 2 : 0;
    const char *start = prefix < strlen (line) ? line + prefix : line;
    for (size_t i = 0; i < ARRAY_LEN (heads); i++)
        if (str_starts (start, heads[i].word)) {
            *ink = heads[i].ink;
            return (size_t)(start - line) + strcspn (start, ":\n");
        }
    return 0;
}

/* Lines for a person: on a terminal their heads are coloured. */
static void
emit_stderr (const struct buf *text)
{
    if (! diag_wants_colour (STDERR_FILENO)) {
        emit_as (STDERR_FILENO, text, text);
        return;
    }
    _cleanup_buf_ struct buf shown = { 0 };
    for (const char *line = text->data; *line;) {
        size_t len = strcspn (line, "\n");
        const char *ink = "";
        size_t head = head_len (line, &ink);
        if (head)
            buf_printf (&shown, "%s%.*s\033[0m", ink, (int)head, line);
        buf_append (&shown, line + head, len - head);
        line += len;
        if (*line) {
            buf_putc (&shown, '\n');
            line++;
        }
    }
    emit_as (STDERR_FILENO, &shown, text);
}

/* Whether a line would be taken for one that this program says, or for a report's. */
static bool
reads_as_ours (const char *line)
{
    static const char *const others[] = { "hint:", "error:", "status:", "session:", "murmur:" };
    const char *ink;
    line += strspn (line, " \t");
    for (size_t i = 0; i < ARRAY_LEN (others); i++)
        if (str_starts (line, others[i]))
            return true;
    return head_len (line, &ink) > 0;
}

void
diag_append_message (struct buf *out, const char *text)
{
    for (const char *end; (end = strchr (text, '\n')); text = end + 1) {
        buf_append (out, text, (size_t)(end - text));
        bool is_plain = ! end[1] || end[1] == '\n' || str_starts (end + 1, "  ");
        buf_puts (out, reads_as_ours (end + 1) ? "\n    | " : is_plain ? "\n" : "\n    ");
    }
    buf_puts (out, text);
}

static void
append_formatted (struct buf *out, const char *fmt, va_list ap)
{
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    diag_append_message (out, text);
}

static void
emit_line (int fd, const char *prefix, const char *fmt, va_list ap)
{
    _cleanup_buf_ struct buf line = { 0 };
    buf_puts (&line, prefix);
    if (*prefix)
        append_formatted (&line, fmt, ap);
    else
        buf_vprintf (&line, fmt, ap);
    buf_putc (&line, '\n');
    make_printable (&line, fd == STDOUT_FILENO ? PRINTABLE_JSON : PRINTABLE_HEX);
    if (fd == STDERR_FILENO)
        emit_stderr (&line);
    else
        emit_as (fd, &line, &line);
}

void
diag_warn (enum diag_source source, enum diag_code code, const char *fmt, ...)
{
    _cleanup_buf_ struct buf line = { 0 };
    buf_printf (&line, "%swarning[%s]: ", prefixes[source], diag_code_name (code));
    va_list ap;
    va_start (ap, fmt);
    append_formatted (&line, fmt, ap);
    va_end (ap);
    buf_printf (&line, " (mur explain %s)\n", diag_code_name (code));
    make_printable (&line, PRINTABLE_HEX);
    emit_stderr (&line);
}

void
diag_lost (const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    pthread_mutex_lock (&sink.lock);
    if (! sink.lost++)
        memcpy (sink.first_lost, text, sizeof (text));
    pthread_mutex_unlock (&sink.lock);
    diag_plain_warning ("%s", text);
}

size_t
diag_lost_count (const char **first)
{
    pthread_mutex_lock (&sink.lock);
    size_t lost = sink.lost;
    if (first)
        *first = sink.first_lost; /* written once */
    pthread_mutex_unlock (&sink.lock);
    return lost;
}

void
diag_note (const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    emit_line (STDERR_FILENO, "note: ", fmt, ap);
    va_end (ap);
}

void
diag_plain_warning (const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    emit_line (STDERR_FILENO, "warning: ", fmt, ap);
    va_end (ap);
}

void
diag_error (const struct mur_error *e)
{
    _cleanup_buf_ struct buf line = { 0 };
    buf_printf (&line, "error[%s]: ", diag_code_name (e->code));
    diag_append_message (&line, e->message);
    if (e->hint) {
        buf_puts (&line, "\n  hint: ");
        diag_append_message (&line, e->hint);
    }
    buf_putc (&line, '\n');
    make_printable (&line, PRINTABLE_HEX);
    emit_stderr (&line);
}

void
diag_progress (const char *fmt, ...)
{
    if (! isatty (STDERR_FILENO))
        return;
    va_list ap;
    va_start (ap, fmt);
    emit_line (STDERR_FILENO, "note: ", fmt, ap);
    va_end (ap);
}

void
diag_stderr_line (const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    emit_line (STDERR_FILENO, "", fmt, ap);
    va_end (ap);
}

void
diag_stdout_line (const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    emit_line (STDOUT_FILENO, "", fmt, ap);
    va_end (ap);
}

void
diag_secret_line (const char *line)
{
    _cleanup_buf_ struct buf whole = { 0 };
    buf_printf (&whole, "%s\n", line);
    emit_as (STDOUT_FILENO, &whole, NULL);
    explicit_bzero (whole.data, whole.len);
}

void
out_write (const char *data, size_t len)
{
    _cleanup_buf_ struct buf safe = { 0 };
    buf_append_printable (&safe, data, len, PRINTABLE_JSON);
    out_raw (safe.data, safe.len);
}

void
out_raw (const char *data, size_t len)
{
    pthread_mutex_lock (&sink.lock);
    if (sink.aside) {
        buf_append (sink.aside, data, len);
    } else if (! sink.out_is_closed && ! sink.out_errno &&
               ! write_shown (STDOUT_FILENO, data, len)) {
        if (errno == EPIPE)
            sink.out_is_closed = true;
        else
            sink.out_errno = errno;
    }
    pthread_mutex_unlock (&sink.lock);
}

void
out_set_aside (struct buf *into)
{
    pthread_mutex_lock (&sink.lock);
    sink.aside = into;
    pthread_mutex_unlock (&sink.lock);
}

void
out_puts (const char *s)
{
    out_write (s, strlen (s));
}

void
out_printf (const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    out_puts (text);
}

bool
out_is_refused (void)
{
    pthread_mutex_lock (&sink.lock);
    bool is_refused = sink.out_is_closed || sink.out_errno;
    pthread_mutex_unlock (&sink.lock);
    return is_refused;
}

bool
out_finish (struct mur_error **err)
{
    if (! sink.out_errno && ! sink.line_errno)
        return true;
    errno = sink.out_errno ? sink.out_errno : sink.line_errno;
    return mur_fail_errno (err, E_IO_003, "cannot write to standard output");
}
