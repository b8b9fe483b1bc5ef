/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/line_editor.h"

#include "base/alloc.h"
#include "base/dl_table.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define HISTORY_LINES 500
#define PASTE_LIMIT   ((size_t)16 << 20)
#define SHORT_PASTE   200 /* bytes; one of a line goes in as if it was typed */
#define ESCAPE_MS     50  /* the rest of a sequence comes at once */

#define PASTE_ON    "\x1b[?2004h"
#define PASTE_OFF   "\x1b[?2004l"
#define PASTE_BEGIN "\x1b[200~"
#define PASTE_END   "\x1b[201~"

static struct edit_api {
    EditLine *(*el_init) (const char *, FILE *, FILE *, FILE *);
    void (*el_end) (EditLine *);
    void (*el_resize) (EditLine *);
    int (*el_set) (EditLine *, int, ...);
    int (*el_get) (EditLine *, int, ...);
    const char *(*el_gets) (EditLine *, int *);
    History *(*history_init) (void);
    void (*history_end) (History *);
    int (*history) (History *, HistEvent *, int, ...);
} api;

static const struct dl_symbol symbols[] = {
#define SYMBOL(member)                                                                             \
    {                                                                                              \
#member, offsetof(struct edit_api, member)                                                 \
    }
    SYMBOL (el_init),      SYMBOL (el_end),      SYMBOL (el_resize),
    SYMBOL (el_set),       SYMBOL (el_get),      SYMBOL (el_gets),
    SYMBOL (history_init), SYMBOL (history_end), SYMBOL (history),
#undef SYMBOL
};

struct line_editor {
    EditLine *el;
    History *history;
    char *history_path; /* NULL: none is kept */
    int signals_fd;
    const char *prompt;
    bool is_interrupted;
    struct termios before;
    bool is_terminal; /* its mode is <before> again in the end */
    struct buf in;    /* read and not handed to the library; what stands before <at> was */
    size_t at;
    struct strv pastes; /* by number of their marks */
    unsigned columns, rows;
};

/* --- input --- */

/* Whether the terminal has another size than when this was asked last. */
static bool
is_resized (struct line_editor *e)
{
    struct winsize size = { 0 };
    (void)ioctl (STDOUT_FILENO, TIOCGWINSZ, &size);
    bool is_other = size.ws_col != e->columns || size.ws_row != e->rows;
    e->columns = size.ws_col;
    e->rows = size.ws_row;
    return is_other;
}

/* A signal came that is nobody's here. Where it was the end of a stop, the shell has had the
 * terminal meanwhile: pastes are marked no more, and the line is gone. A new size is the library's
 * affair. */
static void
back_again (struct line_editor *e)
{
    static const char anew[] = PASTE_ON "\r\x1b[J";
    if (is_resized (e))
        return;
    (void)! write (STDOUT_FILENO, anew, sizeof anew - 1);
    api.el_set (e->el, EL_REFRESH);
}

/* Waits for more bytes. False at the end, or when a signal came. */
static bool
read_more (struct line_editor *e, int wait_ms)
{
    struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                            { .fd = e->signals_fd, .events = POLLIN } };
    int ready;
    while ((ready = poll (fds, ARRAY_LEN (fds), wait_ms)) < 0) {
        if (errno != EINTR)
            return false;
        back_again (e);
    }
    e->is_interrupted = fds[1].revents != 0;
    if (e->is_interrupted || ! ready)
        return false;
    if (e->at == e->in.len)
        buf_truncate (&e->in, e->at = 0);
    char piece[65536];
    ssize_t len = read (STDIN_FILENO, piece, sizeof piece);
    if (len > 0)
        buf_append (&e->in, piece, (size_t)len);
    return len > 0;
}

static size_t
waiting (const struct line_editor *e)
{
    return e->in.len - e->at;
}

static bool
begins (const struct line_editor *e, const char *text, size_t len)
{
    size_t have = waiting (e) < len ? waiting (e) : len;
    return strncmp (e->in.data + e->at, text, have) == 0;
}

/* Line ends as ours; nothing else that moves a cursor. */
static char *
plain_paste (const char *text, size_t len)
{
    struct buf out = { 0 };
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_half = c == '\r' && i + 1 < len && text[i + 1] == '\n';
        if (c == '\r' && ! is_half)
            buf_putc (&out, '\n');
        else if (c >= 0x20 ? c != 0x7f : c == '\n' || c == '\t')
            buf_putc (&out, (char)c);
    }
    return out.data ? buf_steal (&out) : x_strdup ("");
}

/* Takes a paste that begins at the input's place, and puts in what stands for it. */
static void
take_paste (struct line_editor *e)
{
    size_t from = e->at + strlen (PASTE_BEGIN);
    char *end;
    while (! (end = memmem (e->in.data + from, e->in.len - from, PASTE_END, strlen (PASTE_END))) &&
           e->in.len - from < PASTE_LIMIT && read_more (e, -1))
        ;
    size_t len = end ? (size_t)(end - e->in.data) - from : e->in.len - from;
    _cleanup_free_ char *text = plain_paste (e->in.data + from, len);
    struct buf rest = { 0 };
    if (strlen (text) <= SHORT_PASTE && ! strchr (text, '\n')) {
        buf_puts (&rest, text);
    } else {
        strv_push (&e->pastes, text);
        buf_printf (&rest, "[paste %zu: %zu bytes]", e->pastes.len, strlen (text));
    }
    if (end)
        buf_append (&rest, end + strlen (PASTE_END), e->in.len - from - len - strlen (PASTE_END));
    buf_free (&e->in);
    e->in = rest;
    e->at = 0;
}

/* One character of UTF-8; what is none counts as itself. */
static wchar_t
take_character (struct line_editor *e)
{
    unsigned char first = (unsigned char)e->in.data[e->at];
    size_t len = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    while (waiting (e) < len && read_more (e, ESCAPE_MS))
        ;
    wchar_t value = len == 1 ? first : first & (0x7f >> len);
    for (size_t i = 1; i < len && i < waiting (e); i++)
        value = value << 6 | ((unsigned char)e->in.data[e->at + i] & 0x3f);
    e->at += len < waiting (e) ? len : waiting (e);
    return first >= 0x80 && len == 1 ? 0xfffd : value;
}

static int
get_character (EditLine *el, wchar_t *out)
{
    struct line_editor *e = NULL;
    api.el_get (el, EL_CLIENTDATA, &e);
    for (;;) {
        if (! waiting (e) && ! read_more (e, -1))
            return e->is_interrupted ? -1 : 0;
        size_t len = strlen (PASTE_BEGIN);
        while (begins (e, PASTE_BEGIN, len) && waiting (e) < len && read_more (e, ESCAPE_MS))
            ;
        if (! begins (e, PASTE_BEGIN, len) || waiting (e) < len)
            break;
        take_paste (e);
    }
    *out = take_character (e);
    return 1;
}

static char *
get_prompt (EditLine *el)
{
    struct line_editor *e = NULL;
    api.el_get (el, EL_CLIENTDATA, &e);
    return (char *)(uintptr_t)e->prompt;
}

/* --- history --- */

static void
open_history (struct line_editor *e, const char *path)
{
    HistEvent event;
    e->history = api.history_init ();
    if (! e->history)
        return;
    api.history (e->history, &event, H_SETSIZE, HISTORY_LINES);
    api.history (e->history, &event, H_SETUNIQUE, 1);
    if (path)
        e->history_path = x_strdup (path);
    if (path)
        api.history (e->history, &event, H_LOAD, path);
    api.el_set (e->el, EL_HIST, api.history, e->history);
}

/* A line that begins with a blank is not kept. */
static void
keep (struct line_editor *e, const char *line)
{
    HistEvent event;
    if (! e->history || ! *line || *line == ' ')
        return;
    api.history (e->history, &event, H_ENTER, line);
    if (! e->history_path)
        return;
    mode_t before = umask (0077);
    api.history (e->history, &event, H_SAVE, e->history_path);
    umask (before);
}

/* --- the terminal --- */

/* Ctrl-D typed while no line is edited waits as what was typed; as the terminal's mark of an end it
 * would mean nothing any more when the editor comes to it. The library leaves it a mark each time.
 */
static void
keep_end_as_key (void)
{
    struct termios mode;
    if (tcgetattr (STDIN_FILENO, &mode) != 0)
        return;
    mode.c_cc[VEOF] = _POSIX_VDISABLE;
    (void)tcsetattr (STDIN_FILENO, TCSANOW, &mode);
}

/* --- lines --- */

/* Appends a line with the pastes its marks stand for. */
static void
append_line (const struct line_editor *e, const char *line, struct buf *out)
{
    for (const char *at = line; *at;) {
        char *after;
        unsigned long number = strncmp (at, "[paste ", 7) == 0 ? strtoul (at + 7, &after, 10) : 0;
        const char *paste = number && number <= e->pastes.len ? e->pastes.items[number - 1] : NULL;
        _cleanup_free_ char *mark =
            paste ? x_asprintf ("[paste %lu: %zu bytes]", number, strlen (paste)) : NULL;
        if (mark && strncmp (at, mark, strlen (mark)) == 0) {
            buf_puts (out, paste);
            at += strlen (mark);
        } else {
            buf_putc (out, *at++);
        }
    }
}

enum line_end
line_editor_next (struct line_editor *e, const char *prompt, struct buf *line)
{
    static const char begin[] = PASTE_ON, end[] = PASTE_OFF;
    enum line_end how = LINE_READ;
    for (bool goes_on = true; goes_on;) {
        e->prompt = line->len ? "... " : prompt;
        api.el_resize (e->el);
        (void)is_resized (e);
        (void)! write (STDOUT_FILENO, begin, sizeof begin - 1);
        int len = 0;
        const char *got = api.el_gets (e->el, &len);
        keep_end_as_key ();
        (void)! write (STDOUT_FILENO, end, sizeof end - 1);
        if (! got || len <= 0) {
            how = e->is_interrupted ? LINE_INTERRUPTED : line->len ? LINE_READ : LINE_OVER;
            break;
        }
        _cleanup_free_ char *text = x_strdup (got);
        text[strcspn (text, "\n")] = '\0';
        /* A mark means nothing to another conversation. */
        if (! strstr (text, "[paste "))
            keep (e, text);
        size_t used = strlen (text);
        goes_on = used && text[used - 1] == '\\';
        if (goes_on)
            text[used - 1] = '\0';
        append_line (e, text, line);
        if (goes_on)
            buf_putc (line, '\n');
    }
    return how;
}

struct line_editor *
line_editor_new (int signals_fd, const char *history)
{
    static const char *const files[] = { "libedit.so.2", NULL };
    const char *terminal = getenv ("TERM");
    if (! terminal || ! *terminal || str_eq (terminal, "dumb") ||
        dl_table_load (files, symbols, ARRAY_LEN (symbols), &api) != DL_LOADED)
        return NULL;
    if (! setlocale (LC_CTYPE, "") || MB_CUR_MAX == 1)
        (void)setlocale (LC_CTYPE, "C.UTF-8");
    struct line_editor *e = x_new0 (struct line_editor);
    e->signals_fd = signals_fd;
    e->is_terminal = tcgetattr (STDIN_FILENO, &e->before) == 0;
    e->el = api.el_init ("mur", stdin, stdout, stderr);
    if (! e->el) {
        free (e);
        return NULL;
    }
    api.el_set (e->el, EL_CLIENTDATA, e);
    api.el_set (e->el, EL_EDITOR, "emacs");
    api.el_set (e->el, EL_SIGNAL, 1);
    api.el_set (e->el, EL_PROMPT, get_prompt);
    api.el_set (e->el, EL_GETCFN, get_character);
    open_history (e, history);
    return e;
}

void
line_editor_free (struct line_editor *e)
{
    if (! e)
        return;
    if (e->history)
        api.history_end (e->history);
    api.el_end (e->el);
    if (e->is_terminal)
        (void)tcsetattr (STDIN_FILENO, TCSADRAIN, &e->before);
    buf_free (&e->in);
    strv_free (&e->pastes);
    free (e->history_path);
    free (e);
}
