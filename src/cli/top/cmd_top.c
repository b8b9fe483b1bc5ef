/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur top`: every session of this host on one screen, with keys to look into one, answer it and
 * stop it. Without a terminal: the same rows once.
 *
 * Always true: the terminal is as it was when this ends or another command runs in it; nothing a
 * session says can move the cursor.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/line/line_reader.h"
#include "cli/line/own_command.h"
#include "cli/running/watch_text.h"
#include "cli/top/commands.h"
#include "cli/top/top_rows.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#define REFRESH_MS 1000
#define ROWS_ABOVE 2 /* the title and the heads */
#define ROWS_BELOW 3 /* the question and the keys */

struct top {
    struct top_rows rows;
    struct termios before;
    int signals_fd;
    bool has_colour, is_over;
    char selected[64]; /* a session id: it stays when rows move */
    unsigned width, height;
    uint64_t due_ms;  /* when the sessions are asked again */
    const char *note; /* static; of the last key */
};

/* --- the terminal --- */

static void
enter_screen (struct top *t)
{
    struct termios raw = t->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr (STDIN_FILENO, TCSANOW, &raw);
    static const char on[] = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
    out_raw (on, sizeof on - 1);
}

static void
leave_screen (struct top *t)
{
    static const char off[] = "\x1b[?25h\x1b[?1049l";
    out_raw (off, sizeof off - 1);
    tcsetattr (STDIN_FILENO, TCSANOW, &t->before);
}

static void
measure (struct top *t)
{
    struct winsize size = { 0 };
    bool is_known = ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    t->width = is_known ? size.ws_col : 80;
    t->height = is_known ? size.ws_row : 24;
}

/* --- drawing --- */

/* At most <columns> of a text on one line, safe for a terminal, filled up with blanks when <pads>.
 */
static void
put_cell (struct buf *out, const char *text, size_t columns, bool pads)
{
    size_t used = 0;
    for (const char *c = text; *c;) {
        size_t len = text_char_len (c);
        bool is_blank = *c == '\n' || *c == '\t' || *c == '\r', is_odd = text_is_control (c);
        size_t wide = is_blank || is_odd ? 1 : text_columns (c, len);
        if (used + wide > columns)
            break;
        if (is_blank)
            buf_putc (out, ' ');
        else if (is_odd)
            buf_puts (out, "·");
        else
            buf_append (out, c, len);
        used += wide;
        c += len;
    }
    for (; pads && used < columns; used++)
        buf_putc (out, ' ');
}

static void
end_line (struct buf *out)
{
    buf_puts (out, "\x1b[0m\x1b[K\r\n");
}

/* Wide terminals have room for what was used. */
static void
put_row (const struct top *t, struct buf *out, const struct top_row *r, bool is_selected)
{
    static const struct {
        const char *state, *ink;
    } inks[] = { { "asks", "\x1b[1;33m" }, { "works", "\x1b[32m" }, { "no answer", "\x1b[31m" } };
    if (is_selected)
        buf_puts (out, "\x1b[7m");
    for (size_t i = 0; t->has_colour && ! is_selected && i < ARRAY_LEN (inks); i++)
        if (str_eq (inks[i].state, r->state))
            buf_puts (out, inks[i].ink);
    size_t room = t->width > 1 ? t->width - 1 : 1, id = 8;
    const char *short_id =
        strlen (r->session_id) > id ? r->session_id + strlen (r->session_id) - id : r->session_id;
    put_cell (out, is_selected ? ">" : " ", 2, true);
    put_cell (out, short_id, id + 1, true);
    put_cell (out, r->state, 10, true);
    size_t fixed = id + 13, left = room > fixed ? room - fixed : 0;
    size_t up = left > 20 ? 10 : 0, name = left - up < 36 ? left - up : 36;
    put_cell (out, r->capsule, name, true);
    put_cell (out, r->uptime, up, true);
    put_cell (out, r->used ? r->used : "", left - name - up, false);
    end_line (out);
}

static size_t
selected_index (const struct top *t)
{
    for (size_t i = 0; i < t->rows.len; i++)
        if (str_eq (t->rows.items[i].session_id, t->selected))
            return i;
    return 0;
}

static const struct top_row *
selected_row (const struct top *t)
{
    return t->rows.len ? &t->rows.items[selected_index (t)] : NULL;
}

static void
put_below (const struct top *t, struct buf *out)
{
    const struct top_row *r = selected_row (t);
    _cleanup_free_ char *line = r && r->asks     ? x_asprintf ("asks: %s", r->asks)
                                : r && r->parent ? x_asprintf ("started by %s", r->parent)
                                                 : x_strdup (r && r->used ? r->used : "");
    put_cell (out, line, t->width - 1, false);
    end_line (out);
    put_cell (out, t->note ? t->note : "", t->width - 1, false);
    end_line (out);
    put_cell (out,
              "j k choose  t trace  w watch  a answer  s stop  q leave  space b page  g G ends",
              t->width - 1, false);
    buf_puts (out, "\x1b[0m\x1b[K");
}

/* Rows there is room for. */
static size_t
room_of (const struct top *t)
{
    return t->height > ROWS_ABOVE + ROWS_BELOW ? t->height - ROWS_ABOVE - ROWS_BELOW : 1;
}

static void
draw (struct top *t)
{
    _cleanup_buf_ struct buf out = { 0 };
    measure (t);
    size_t room = room_of (t), at = selected_index (t), from = at >= room ? at - room + 1 : 0;
    size_t asking = 0;
    for (size_t i = 0; i < t->rows.len; i++)
        asking += t->rows.items[i].asks != NULL;
    buf_puts (&out, "\x1b[H");
    _cleanup_free_ char *title =
        x_asprintf ("mur top: %zu session%s%s", t->rows.len, t->rows.len == 1 ? "" : "s",
                    asking ? ", somebody is asked" : "");
    put_cell (&out, title, t->width - 1, false);
    end_line (&out);
    put_cell (&out, t->rows.len ? "  SESSION  STATE     CAPSULE" : "  nothing runs", t->width - 1,
              false);
    end_line (&out);
    for (size_t i = 0; i < room; i++) {
        if (from + i < t->rows.len)
            put_row (t, &out, &t->rows.items[from + i], from + i == at);
        else
            end_line (&out);
    }
    put_below (t, &out);
    out_raw (out.data, out.len);
}

/* --- keys --- */

/* So many rows on, as far as there are any. */
static void
choose (struct top *t, long by)
{
    if (! t->rows.len)
        return;
    long at = (long)selected_index (t) + by, last = (long)t->rows.len - 1;
    at = at < 0 ? 0 : at > last ? last : at;
    snprintf (t->selected, sizeof t->selected, "%s", t->rows.items[at].session_id);
}

/* A line below the screen that was left. False: none was given. */
static bool
ask_line (const struct top *t, const char *prompt, struct buf *line)
{
    struct line_reader reader = { .fd = STDIN_FILENO, .signals_fd = t->signals_fd };
    out_puts (prompt);
    bool is_given = line_reader_next (&reader, line) == LINE_READ && line->len;
    line_reader_clear (&reader);
    return is_given;
}

static void
wait_for_enter (const struct top *t)
{
    _cleanup_buf_ struct buf line = { 0 };
    ask_line (t, "\nEnter goes back. ", &line);
}

static void
do_trace (struct top *t, const struct top_row *r)
{
    own_command_run (
        (const char *const[]){ "trace", "show", r->session_id, "--workdir", r->work_root, NULL });
    wait_for_enter (t);
}

static void
do_watch (struct top *t, const struct top_row *r)
{
    (void)t;
    own_command_run ((const char *const[]){ "watch", r->session_id, NULL });
}

static void
do_answer (struct top *t, const struct top_row *r)
{
    _cleanup_buf_ struct buf line = { 0 };
    if (! r->asks) {
        t->note = "It asks nothing.";
        return;
    }
    out_printf ("%s\n", r->asks);
    if (! ask_line (t, "answer> ", &line))
        return;
    own_command_run ((const char *const[]){ "answer", "--detach", r->session_id, line.data, NULL });
    wait_for_enter (t);
}

static void
do_stop (struct top *t, const struct top_row *r)
{
    _cleanup_buf_ struct buf line = { 0 };
    out_printf ("Stop %s (%s)? ", r->capsule, r->session_id);
    if (! ask_line (t, "y or n> ", &line) || (line.data[0] != 'y' && line.data[0] != 'Y')) {
        t->note = "It goes on.";
        return;
    }
    own_command_run ((const char *const[]){ "stop", r->session_id, NULL });
    wait_for_enter (t);
}

static const struct {
    char key;
    void (*run) (struct top *t, const struct top_row *r);
} row_keys[] = { { 't', do_trace }, { 'w', do_watch }, { 'a', do_answer }, { 's', do_stop } };

static const struct {
    char key;
    bool is_page;
    long by;
} moves[] = {
    { 'j', false, 1 }, { 'k', false, -1 },      { ' ', true, 1 },
    { 'b', true, -1 }, { 'g', false, -100000 }, { 'G', false, 100000 },
};

static void
on_key (struct top *t, char key)
{
    const struct top_row *r = selected_row (t);
    t->note = NULL;
    if (key == 'q' || key == 4)
        t->is_over = true;
    for (size_t i = 0; i < ARRAY_LEN (moves); i++)
        if (moves[i].key == key)
            choose (t, moves[i].is_page ? moves[i].by * (long)room_of (t) : moves[i].by);
    for (size_t i = 0; r && i < ARRAY_LEN (row_keys); i++)
        if (row_keys[i].key == key) {
            leave_screen (t);
            row_keys[i].run (t, r);
            enter_screen (t);
            t->due_ms = 0;
        }
}

/* The key that does what a sequence's last or only character means; 0: nothing. */
static char
key_of_sequence (char last)
{
    static const char *const pairs[] = { "Ak", "Bj", "5b", "6 ", "Hg", "FG", "1g", "4G" };
    for (size_t i = 0; i < ARRAY_LEN (pairs); i++)
        if (pairs[i][0] == last)
            return pairs[i][1];
    return 0;
}

/* Arrows and their like come as sequences; what else begins with an escape is no key. */
static void
take_keys (struct top *t)
{
    char keys[64];
    ssize_t len = read (STDIN_FILENO, keys, sizeof keys);
    if (len <= 0)
        t->is_over = len == 0 || errno != EINTR;
    for (ssize_t i = 0; i < len && ! t->is_over; i++) {
        bool is_sequence =
            keys[i] == '\x1b' && i + 2 < len && (keys[i + 1] == '[' || keys[i + 1] == 'O');
        if (is_sequence)
            i += 2;
        char key = is_sequence ? key_of_sequence (keys[i]) : keys[i];
        if (is_sequence && i + 1 < len && keys[i + 1] == '~')
            i++;
        if (key && key != '\x1b')
            on_key (t, key);
    }
}

/* --- the loop --- */

static bool
take_signals (struct top *t, struct mur_error **err)
{
    static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH };
    sigset_t set;
    sigemptyset (&set);
    for (size_t i = 0; i < ARRAY_LEN (wanted); i++)
        sigaddset (&set, wanted[i]);
    if (sigprocmask (SIG_BLOCK, &set, NULL) == 0)
        t->signals_fd = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return t->signals_fd >= 0 || mur_fail_errno (err, E_IO_003, "cannot take signals");
}

static bool
show (struct top *t, struct mur_error **err)
{
    bool is_ok = true;
    while (is_ok && ! t->is_over) {
        /* Asking every session takes a while where there are many: not for each key. */
        if (clock_monotonic_ms () >= t->due_ms) {
            is_ok = top_rows_read (&t->rows, err);
            t->due_ms = clock_monotonic_ms () + REFRESH_MS;
        }
        if (is_ok && ! t->selected[0] && t->rows.len)
            choose (t, 0);
        draw (t);
        uint64_t now = clock_monotonic_ms ();
        int wait_ms = t->due_ms > now ? (int)(t->due_ms - now) : 0;
        struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                                { .fd = t->signals_fd, .events = POLLIN } };
        if (poll (fds, ARRAY_LEN (fds), wait_ms) < 0 && errno != EINTR)
            break;
        struct signalfd_siginfo info;
        if (fds[1].revents && read (t->signals_fd, &info, sizeof info) == sizeof info)
            t->is_over = info.ssi_signo != SIGWINCH;
        if (fds[0].revents)
            take_keys (t);
    }
    return is_ok;
}

/* For a pipe: a line a session. */
static bool
print_once (struct top *t, struct mur_error **err)
{
    if (! top_rows_read (&t->rows, err))
        return false;
    if (! t->rows.len)
        diag_note ("no running capsules");
    for (size_t i = 0; i < t->rows.len; i++) {
        const struct top_row *r = &t->rows.items[i];
        out_printf ("%s\t%s\t%s\t%s\t%s\n", r->session_id, r->state, r->capsule, r->uptime,
                    r->used ? r->used : "");
    }
    return true;
}

int
cmd_top (const struct cli_args *args, struct mur_error **err)
{
    struct top t = { .signals_fd = -1, .has_colour = diag_wants_colour (STDOUT_FILENO) };
    const char *terminal = getenv ("TERM");
    bool is_live = isatty (STDIN_FILENO) && isatty (STDOUT_FILENO) && ! cli_has (args, "--once") &&
                   ! str_eq (terminal, "dumb") && tcgetattr (STDIN_FILENO, &t.before) == 0;
    bool is_ok = ! is_live || take_signals (&t, err);
    if (is_ok && is_live) {
        enter_screen (&t);
        is_ok = show (&t, err);
        leave_screen (&t);
    } else if (is_ok) {
        is_ok = print_once (&t, err);
    }
    if (t.signals_fd >= 0)
        close (t.signals_fd);
    top_rows_clear (&t.rows);
    return is_ok ? CLI_OK : CLI_FAILED;
}
