/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur completions SHELL`: what completes a line of mur in that shell, made of the command table,
 * so that it never knows another option than the program. The scripts ask nothing of mur: a key
 * press starts no process of ours.
 */
#include "base/buf.h"
#include "base/diag.h"
#include "cli/health/commands.h"
#include "cli/line/args.h"

#include "base/alloc.h"
#include "manifest/text/suggest.h"

#include <string.h>

/* A text between single quotes of the shells; <escape> stands for one inside it. */
static void
put_quoted (struct buf *out, const char *text, const char *escape)
{
    buf_putc (out, '\'');
    for (const char *c = text ? text : ""; *c; c++)
        if (*c == '\'')
            buf_puts (out, escape);
        else
            buf_putc (out, *c);
    buf_putc (out, '\'');
}

static const char quote_of_sh[] = "'\\''", quote_of_fish[] = "\\'";

/* The part of a command's name below its group; NULL when it is not of this group ("": those of
 * none). */
static const char *
member_of (const struct cli_command *c, const char *group)
{
    size_t len = strlen (group);
    if (! len)
        return strchr (c->name, ' ') ? NULL : c->name;
    return strncmp (c->name, group, len) == 0 && c->name[len] == ' ' ? c->name + len + 1 : NULL;
}

/* One word that may follow: its name and what it is for. */
typedef void put_word_fn (struct buf *out, const char *word, const char *summary);

static void
put_members (struct buf *out, const struct cli_table *table, const char *group, put_word_fn *put)
{
    for (size_t i = 0; i < table->command_count; i++) {
        const char *member = member_of (&table->commands[i], group);
        if (member)
            put (out, member, table->commands[i].summary);
    }
    for (const struct cli_group *g = table->groups; ! *group && g->name; g++)
        if (! cli_find_command (table, g->name))
            put (out, g->name, g->summary);
    if (! *group) {
        put (out, "help", "Show help for a command");
        put (out, "--help", "Show help");
        put (out, "--version", "Show the version");
    }
}

static void
put_options (struct buf *out, const struct cli_command *c, put_word_fn *put)
{
    for (const struct cli_option *o = c->options; o->name; o++)
        if (! o->is_hidden)
            put (out, o->name, o->help);
    put (out, "--help", "Show help");
}

/* --- bash and zsh: functions that answer by the words of the line so far --- */

static void
put_bash_word (struct buf *out, const char *word, const char *summary)
{
    (void)summary;
    buf_printf (out, " %s", word);
}

static void
put_zsh_word (struct buf *out, const char *word, const char *summary)
{
    _cleanup_free_ char *entry = x_asprintf ("%s:%s", word, summary ? summary : "");
    buf_puts (out, "\n        ");
    put_quoted (out, entry, quote_of_sh);
}

static void
put_case (struct buf *out, const char *name)
{
    buf_puts (out, "    (");
    put_quoted (out, name, quote_of_sh);
    buf_puts (out, ") reply=(");
}

/* Sets `reply`, fails for what is no group or no command. */
static void
put_lists (struct buf *out, const struct cli_table *table, put_word_fn *put)
{
    buf_puts (out, "_mur_members () {\n    case $1 in\n");
    put_case (out, "");
    put_members (out, table, "", put);
    buf_puts (out, ") ;;\n");
    for (const struct cli_group *g = table->groups; g->name; g++) {
        put_case (out, g->name);
        put_members (out, table, g->name, put);
        buf_puts (out, ") ;;\n");
    }
    buf_puts (out, "    (*) return 1 ;;\n    esac\n}\n_mur_options () {\n    case $1 in\n");
    for (size_t i = 0; i < table->command_count; i++) {
        put_case (out, table->commands[i].name);
        put_options (out, &table->commands[i], put);
        buf_puts (out, ") ;;\n");
    }
    buf_puts (out, "    (*) return 1 ;;\n    esac\n}\n");
}

/* What an option takes: `reply` of its choices, or status 1 for a value of any kind and 2 for
 * none. */
static void
put_values (struct buf *out, const struct cli_table *table)
{
    buf_puts (out, "_mur_values () {\n    reply=()\n    case \"$1 $2\" in\n");
    for (size_t i = 0; i < table->command_count; i++)
        for (const struct cli_option *o = table->commands[i].options; o->name; o++) {
            if (o->is_hidden || o->kind == CLI_FLAG)
                continue;
            buf_printf (out, "    ('%s %s') ", table->commands[i].name, o->name);
            if (! o->choices) {
                buf_puts (out, "return 1 ;;\n");
                continue;
            }
            buf_puts (out, "reply=(");
            for (const char *c = o->choices; *c; c++)
                buf_putc (out, *c == '|' ? ' ' : *c);
            buf_puts (out, ") ;;\n");
        }
    buf_puts (out, "    (*) return 2 ;;\n    esac\n}\n");
}

static const char bash_end[] =
    "_mur () {\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local command='' reply i\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        local longer=\"${command:+$command }${COMP_WORDS[i]}\"\n"
    "        _mur_members \"$longer\" || _mur_options \"$longer\" || break\n"
    "        command=$longer\n"
    "    done\n"
    "    COMPREPLY=()\n"
    "    _mur_values \"$command\" \"$before\"\n"
    "    case $? in\n"
    "    (1) compopt -o default; return ;;\n"
    "    (2) _mur_members \"$command\" || { [[ $current == -* ]] && _mur_options \"$command\"; } ||\n"
    "        { compopt -o default; return; } ;;\n"
    "    esac\n"
    "    COMPREPLY=($(compgen -W \"${reply[*]}\" -- \"$current\"))\n"
    "}\n"
    "complete -F _mur mur\n";

static const char zsh_end[] =
    "_mur () {\n"
    "    local command='' word longer\n"
    "    local -a reply\n"
    "    for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
    "        longer=\"${command:+$command }$word\"\n"
    "        _mur_members \"$longer\" || _mur_options \"$longer\" || break\n"
    "        command=$longer\n"
    "    done\n"
    "    _mur_values \"$command\" \"${words[CURRENT-1]}\"\n"
    "    case $? in\n"
    "    (0) compadd -a reply; return ;;\n"
    "    (1) _files; return ;;\n"
    "    esac\n"
    "    if [[ ${words[CURRENT]} == -* ]] && _mur_options \"$command\"; then\n"
    "        _describe -o option reply\n"
    "    elif _mur_members \"$command\"; then\n"
    "        _describe command reply\n"
    "    else\n"
    "        _files\n"
    "    fi\n"
    "}\n"
    "if [[ $funcstack[1] == _mur ]]; then _mur \"$@\"; else compdef _mur mur; fi\n";

static void
put_bash (struct buf *out, const struct cli_table *table)
{
    buf_puts (out, "# Completes mur in bash. Made by: mur completions bash\n");
    put_lists (out, table, put_bash_word);
    put_values (out, table);
    buf_puts (out, bash_end);
}

static void
put_zsh (struct buf *out, const struct cli_table *table)
{
    buf_puts (out, "#compdef mur\n# Completes mur in zsh. Made by: mur completions zsh\n");
    put_lists (out, table, put_zsh_word);
    put_values (out, table);
    buf_puts (out, zsh_end);
}

/* --- fish: a line for each word --- */

static void
put_fish_line (struct buf *out, const char *when, const char *flags, const char *word,
               const char *summary)
{
    buf_printf (out, "complete -c mur -n \"%s\" %s", when, flags);
    put_quoted (out, word, quote_of_fish);
    buf_puts (out, " -d ");
    put_quoted (out, summary, quote_of_fish);
    buf_putc (out, '\n');
}

static void
put_fish_options (struct buf *out, const struct cli_command *c)
{
    _cleanup_free_ char *when = x_asprintf ("__mur_is '%s'", c->name);
    for (const struct cli_option *o = c->options; o->name; o++) {
        _cleanup_buf_ struct buf flags = { 0 };
        if (o->is_hidden)
            continue;
        if (o->letter)
            buf_printf (&flags, "-s %c ", o->letter);
        if (o->choices) {
            buf_puts (&flags, "-xa '");
            for (const char *at = o->choices; *at; at++)
                buf_putc (&flags, *at == '|' ? ' ' : *at);
            buf_puts (&flags, "' ");
        } else if (o->kind == CLI_VALUE) {
            buf_puts (&flags, "-r ");
        }
        buf_puts (&flags, "-l ");
        put_fish_line (out, when, flags.data, o->name + 2, o->help);
    }
    put_fish_line (out, when, "-l ", "help", "Show help");
}

/* True for `__mur_is COMMAND` while the line is one of that command. */
static const char fish_begin[] =
    "# Completes mur in fish. Made by: mur completions fish\n"
    "function __mur_is\n"
    "    set -l line (commandline -opc)\n"
    "    set -e line[1]\n"
    "    set -l wanted (string split ' ' -- $argv[1])\n"
    "    set -l last (count $wanted)\n"
    "    test (count $line) -ge $last; and test \"$line[1..$last]\" = \"$argv[1]\"\n"
    "end\n"
    "function __mur_wants_member\n"
    "    set -l line (commandline -opc)\n"
    "    set -e line[1]\n"
    "    test \"$line\" = \"$argv[1]\"\n"
    "end\n";

static void
put_fish (struct buf *out, const struct cli_table *table)
{
    buf_puts (out, fish_begin);
    for (size_t i = 0; i < table->command_count; i++) {
        const struct cli_command *c = &table->commands[i];
        const char *space = strchr (c->name, ' ');
        _cleanup_free_ char *group = space ? x_strndup (c->name, (size_t)(space - c->name)) : NULL;
        _cleanup_free_ char *when = x_asprintf ("__mur_wants_member '%s'", group ? group : "");
        put_fish_line (out, when, "-f -a ", space ? space + 1 : c->name, c->summary);
        put_fish_options (out, c);
    }
    for (const struct cli_group *g = table->groups; g->name; g++)
        if (! cli_find_command (table, g->name))
            put_fish_line (out, "__mur_wants_member ''", "-f -a ", g->name, g->summary);
}

/* --- the command --- */

static const struct {
    const char *name;
    void (*put) (struct buf *out, const struct cli_table *table);
} shells[] = { { "bash", put_bash }, { "zsh", put_zsh }, { "fish", put_fish } };

int
cmd_completions (const struct cli_args *args, struct mur_error **err)
{
    const char *name = cli_positional (args, "SHELL");
    _cleanup_buf_ struct buf out = { 0 };
    for (size_t i = 0; i < ARRAY_LEN (shells); i++)
        if (strcmp (name, shells[i].name) == 0)
            shells[i].put (&out, cli_table_of (args));
    if (! out.len) {
        mur_fail (err, E_IO_003, "there are no completions for %s", name);
        struct suggestion near = { NULL, 0 };
        for (size_t i = 0; i < ARRAY_LEN (shells); i++)
            suggestion_offer (&near, name, shells[i].name);
        suggestion_hint (&near, "mur completions bash, zsh or fish", err);
        return CLI_FAILED;
    }
    out_raw (out.data, out.len);
    return CLI_OK;
}
