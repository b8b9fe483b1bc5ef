/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines a person types at a terminal, edited with libedit: history, and pastes of any size.
 *
 * The library is loaded when it is first needed. A paste of several lines, or a long one, stands in
 * the line as one mark and is put back when the line is handed out.
 */
#pragma once

#include "cli/line/line_reader.h"

struct line_editor;

/* At standard input and output. <signals_fd>: readable, the line is given up. <history>: a file of
 * the user's alone, or NULL. NULL when the library is not installed or the terminal cannot move its
 * cursor. */
struct line_editor *line_editor_new (int signals_fd, const char *history);
void line_editor_free (struct line_editor *e);
/* Asks with <prompt> and hands out a line without its end. One that ends with a backslash goes on
 * in the next. */
enum line_end line_editor_next (struct line_editor *e, const char *prompt, struct buf *line);
