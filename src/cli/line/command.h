/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line as data: what a command, its positionals and its options are (spec/cli.md 12),
 * and the table they stand in.
 *
 * Parser, help, manual page and a test are made from that one table, which comes in from the top. A
 * command function prints its answer with out_* (base/diag.h), fails through err and returns the
 * exit status; main prints the error.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1, /* any error[CODE] */
    CLI_USAGE = 2,
    CLI_INTERRUPTED = 130, /* what was asked for was given up with Ctrl-C */
    CLI_STOPPED = 143,     /* a service manager's SIGTERM ended it */
};

enum cli_kind {
    CLI_FLAG,          /* present or not */
    CLI_VALUE,         /* takes a value */
    CLI_VALUE_OR_NONE, /* takes the next argument unless that begins with '-' */
};

struct cli_option {
    const char *name; /* "--json" */
    char letter;      /* 'v' for -v, or 0 */
    enum cli_kind kind;
    const char *value_name; /* "<PATH>" in help, NULL for a flag */
    const char *fallback;   /* value when absent, or NULL */
    const char *none_value; /* CLI_VALUE_OR_NONE: value when given bare */
    const char *choices;    /* "full|compact": anything else is a usage error; or NULL */
    uint64_t min, max;      /* a whole number in this range when max != 0 */
    const char *conflicts;  /* "--manifest --roster SESSION": may not stand beside these (a
                               positional by its name) */
    const char *requires;   /* "--capsule --capsule-version": must all stand beside it */
    bool is_hidden;         /* launchers' flags: accepted, not in help */
    bool is_required;
    bool is_number; /* a whole number of 64 bits (min and max apply when max != 0) */
    const char *help;
};

struct cli_positional {
    const char *name; /* "SESSION" */
    bool is_required;
    bool is_repeated; /* takes the rest */
    const char *help;
};

struct cli_args;
/* Does the work. Returns the exit status; with *err set main prints it and exits 1. */
typedef int cli_run_fn (const struct cli_args *args, struct mur_error **err);

struct cli_command {
    const char *name;    /* "trace show" */
    const char *summary; /* one line, for lists */
    const char *details; /* a paragraph or two for its own help and the manual page, or NULL */
    const char *example; /* lines, each beginning with the command, or NULL */
    const struct cli_positional *positionals; /* ends with a NULL name */
    const struct cli_option *options;         /* ends with a NULL name */
    cli_run_fn *run;                          /* NULL: known, not built into this version */
    /* A rule the table cannot say (argument counts of `cancel`). Returns NULL, or the usage error's
     * text (owned). */
    char *(*check) (const struct cli_args *args);
    const char *registry_hint; /* the one hint line after an unknown --registry, or NULL */
    const char *stray_option;  /* "--task": what an argument too many was meant for, or NULL */
    const char *exits; /* what its exit status says beside what every command's says, or NULL */
};

/* What the exit status of every command says. */
#define CLI_EVERY_EXIT                                                                             \
    "0 for success, 1 for any error with a code, 2 for a command line that cannot be read, 130 "   \
    "where a task was given up with Ctrl-C."

/* "trace", "eval", ...: their members are the commands named "<group> <member>". Ends with a NULL
 * name. */
struct cli_group {
    const char *name;
    const char *summary;
};

/* A word people type because other programs have it. Ends with a NULL word. */
struct cli_habit {
    const char *typed; /* "logs" */
    const char *meant; /* "watch" */
    bool is_alias;     /* it is taken for that; else the hint says so */
};

struct cli_table {
    const struct cli_command *commands;
    size_t command_count;
    const struct cli_group *groups; /* ends with a NULL name */
    const struct cli_habit *habits;
};

/* NULL: there is none of that name. */
const struct cli_command *cli_find_command (const struct cli_table *table, const char *name);
const struct cli_group *cli_find_group (const struct cli_table *table, const char *name);
