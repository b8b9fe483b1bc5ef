/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line as data: every command, its positionals and options (spec/cli.md 12), and what a
 * parsed line looks like.
 *
 * cli/table.c holds the table, cli/line/parse.c reads argv against it, cli/line/help.c prints it,
 * cli/line/man.c writes the manual page from it, cli/cmd_*.c do the work. A command function prints
 * its answer with out_* (base/diag.h), fails through err and returns the exit status; main prints
 * the error.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1, /* any error[CODE] */
    CLI_USAGE = 2,
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
};

/* One parsed line. Option and positional names are those of the table; asking for one that is not
 * there is a bug (abort). */
bool cli_has (const struct cli_args *args, const char *option);
/* The value, the fallback, or NULL. For CLI_VALUE_OR_NONE given bare: none_value. Borrowed from
 * argv or the table. */
const char *cli_value (const struct cli_args *args, const char *option);
/* The value of a number option that was given or has a fallback. */
uint64_t cli_number (const struct cli_args *args, const char *option);
/* The first value of a positional, or NULL. */
const char *cli_positional (const struct cli_args *args, const char *name);
/* All values of a repeated positional. Borrowed, not NULL-terminated. */
const char *const *cli_positionals (const struct cli_args *args, const char *name, size_t *count);
const struct cli_command *cli_command_of (const struct cli_args *args);

/* --- the table --- */

extern const struct cli_command cli_commands[];
extern const size_t cli_command_count;
/* "trace", "eval", ...: their members are the commands named "<group> <member>". Ends with a NULL
 * name. */
struct cli_group {
    const char *name;
    const char *summary;
};
extern const struct cli_group cli_groups[];

const struct cli_command *cli_find_command (const char *name);
const struct cli_group *cli_find_group (const char *name);

/* --- parsing and help --- */

enum cli_outcome {
    CLI_RUN,        /* *args is filled */
    CLI_SHOWN,      /* help or version went to stdout */
    CLI_USAGE_ERROR /* the message went to stderr; exit 2 */
};

/* Reads argv (argv[0] is the program). *args is owned and freed with cli_args_free; it borrows from
 * argv. */
enum cli_outcome cli_parse (int argc, char *const *argv, struct cli_args **args);
void cli_args_free (struct cli_args *args);
DEFINE_CLEANUP (struct cli_args, cli_args_free)

/* Help of the whole program (topic NULL), a group or a command, appended to out. False when there
 * is no such topic. */
bool cli_help (const char *topic, struct buf *out);
/* The one-line usage of a command: "mur trace show [OPTIONS] [SESSION]". Owned. */
char *cli_usage_line (const struct cli_command *c);

/* --- the commands, cli/cmd_*.c --- */

/* Each stands in the file of its name. A command this version does not have is NULL in the table.
 */
cli_run_fn cmd_run, cmd_ps, cmd_watch, cmd_cancel, cmd_stop, cmd_token;
cli_run_fn cmd_control_show, cmd_control_set; /* cmd_control.c */
cli_run_fn cmd_control_secret, cmd_control_forget;
cli_run_fn cmd_build, cmd_publish, cmd_precompile, cmd_install, cmd_list, cmd_search, cmd_index;
cli_run_fn cmd_new, cmd_doctor, cmd_version;
cli_run_fn cmd_explain;                                       /* cmd_info.c */
cli_run_fn cmd_config_set, cmd_beta_list, cmd_beta_set;       /* cmd_config.c */
cli_run_fn cmd_trace_show, cmd_trace_list, cmd_trace_rm;      /* cmd_trace.c */
cli_run_fn cmd_trace_steps, cmd_trace_diff, cmd_trace_report; /* cmd_trace_compare.c */
cli_run_fn cmd_eval_show, cmd_eval_diff;                      /* cmd_eval.c */
cli_run_fn cmd_eval_run;
cli_run_fn cmd_conversation_ls, cmd_conversation_show; /* cmd_conversation.c */
cli_run_fn cmd_conversation_rm, cmd_conversation_truncate;
