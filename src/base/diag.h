/* SPDX-License-Identifier: Apache-2.0
 *
 * The diagnostics sink: every line for a person goes through here, so a closed or full stream never
 * kills a session.
 *
 * A line a stream refuses (EPIPE, ENOSPC) goes to the fallback descriptor, logs/bootstrap.log of
 * the session, unless it was printed with diag_secret_line. This is the only global mutable state.
 * Thread-safe.
 */
#pragma once

#include "base/error.h"

enum diag_source {
    DIAG_PLAIN,    /* no prefix */
    DIAG_RUNTIME,  /* "[capsule-runtime] " */
    DIAG_MANIFEST, /* "[murmur-artifact] " */
    DIAG_DOCTOR,   /* "[mur doctor] " */
};

/* warning[W-SEC-019]: <text> (mur explain W-SEC-019) on stderr. */
void diag_warn (enum diag_source source, enum diag_code code, const char *fmt, ...) _printf_ (3, 4);
/* "note: <text>" and "warning: <text>" without a code. */
void diag_note (const char *fmt, ...) _printf_ (1, 2);
void diag_plain_warning (const char *fmt, ...) _printf_ (1, 2);
/* A note for a person who waits: nothing when stderr is no terminal. */
void diag_progress (const char *fmt, ...) _printf_ (1, 2);
/* "error[CODE]: <message>" and the hint line. */
void diag_error (const struct mur_error *e);

/* A message as it stands in its line: where a name in it brought a newline, or it tells what
 * another program said, the next line is indented, and stands behind a bar where it reads as one of
 * ours. */
struct buf;
void diag_append_message (struct buf *out, const char *text);

/* One line on stderr / on stdout (a newline is added). stdout lines are written at once. */
void diag_stderr_line (const char *fmt, ...) _printf_ (1, 2);
void diag_stdout_line (const char *fmt, ...) _printf_ (1, 2);
/* A stdout line that carries a token: never copied to the fallback. */
void diag_secret_line (const char *line);

/* Report output of a command: text on stdout, in which control characters and direction marks are
 * shown (base/printable.h); JSON text keeps its value. EPIPE latches output closed and later bytes
 * are dropped silently; any other failure is remembered. */
void out_write (const char *data, size_t len);
void out_puts (const char *s);
/* The same, byte for byte: for what is the caller's own terminal sequences around safe text, or is
 * no text. */
void out_raw (const char *data, size_t len);
void out_printf (const char *fmt, ...) _printf_ (1, 2);
/* Report output goes into <into> from now on, for who decides later what of it is shown; NULL: to
 * stdout again. */
void out_set_aside (struct buf *into);
/* True once the reader of stdout has left, or a write to it failed. */
bool out_is_refused (void);
/* The remembered failure, of a report or a line, as E-IO-003 naming the OS error; true when there
 * was none. Called once, at the end of main. */
bool out_finish (struct mur_error **err);

/* A record that could not be kept: a plain warning, and it is counted. */
void diag_lost (const char *fmt, ...) _printf_ (1, 2);
/* How many were lost so far; *<first> (may be NULL) is what the first warning said, "" for none. */
size_t diag_lost_count (const char **first);

/* Where refused lines go from now on (borrowed descriptor, -1 for nowhere). */
void diag_set_fallback (int fd);
/* SIGPIPE ignored, descriptors 0-2 open (a stdout closed at the start counts as accepting
 * everything). First thing in main. */
void diag_init (void);
/* True when the stream is a terminal and NO_COLOR is unset. */
bool diag_wants_colour (int fd);
