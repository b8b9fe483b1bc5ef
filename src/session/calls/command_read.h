/* SPDX-License-Identifier: Apache-2.0
 *
 * A command as far as it can be read without running it: which programs it starts with which
 * words, and where it writes. What cannot be read says so; it is never guessed.
 *
 * Always true: a script that starts a program in a way that is not read here (an expansion in its
 * place, a program that starts others, code of another language) is opaque.
 */
#pragma once

#include "base/buf.h"

#define COMMANDS_READ_MAX 256

/* One program and its words, nothing expanded. */
struct simple_command {
    struct strv words;  /* the program first */
    bool has_expansion; /* some word after the first is computed, or a pattern of files */
    bool is_after_cd;   /* relative paths mean another folder */
    bool starts_others; /* which programs it starts, and what they write, is not in its words */
    bool only_reads;    /* it changes no file but where its output is sent */
};

struct command_reading {
    struct simple_command *items;
    size_t len, cap;
    struct strv writes;    /* where output is redirected to */
    bool writes_elsewhere; /* and to files whose names are computed */
    bool has_cd;           /* relative paths mean another folder at some place */
    bool repeats;          /* some part of the script may run again after a later one */
    bool is_opaque;        /* the shell starts programs in ways that are not read here */
    const char *opaque_by; /* what is not read; static */
};

/* A script that <shell> is given. */
void command_read_script (const char *shell, const char *script, struct command_reading *out);
/* One program and its arguments as a call gives them: split into words, nothing expanded. False
 * when a quote is not closed: it will not be started. */
bool command_read_program (const char *name, const char *arguments, struct command_reading *out);
void command_reading_clear (struct command_reading *r);
#define _cleanup_command_reading_ _cleanup_ (command_reading_clear)
