/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the manual page mur(1), or with a word that of its commands, mur-run(1), from the command
 * table and the table of diagnostics, on standard output, while murmur is built.
 */
#include "base/alloc.h"
#include "base/version.h"
#include "cli/line/help.h"
#include "cli/pages/roff.h"
#include "cli/table.h"

#include <string.h>

static void
put_option (struct buf *out, const struct cli_option *o)
{
    buf_puts (out, ".TP\n\\fB");
    if (o->letter)
        buf_printf (out, "\\-%c\\fR, \\fB", o->letter);
    roff_put (out, o->name);
    buf_puts (out, "\\fR");
    if (o->value_name) {
        buf_puts (out, " \\fI");
        roff_put (out, o->value_name);
        buf_puts (out, "\\fR");
    }
    buf_putc (out, '\n');
    roff_put (out, o->help);
    if (o->fallback) {
        buf_puts (out, " (default: ");
        roff_put (out, o->fallback);
        buf_puts (out, ")");
    }
    buf_putc (out, '\n');
}

static void
put_command (struct buf *out, const struct cli_command *c)
{
    _cleanup_free_ char *usage = cli_usage_line (c);
    roff_line (out, "SS", usage);
    roff_put (out, c->summary);
    buf_puts (out, ".\n");
    if (c->details) {
        roff_put (out, c->details);
        buf_putc (out, '\n');
    }
    if (! c->run)
        buf_puts (out, "Not in this version yet.\n");
    for (const struct cli_positional *p = c->positionals; p->name; p++) {
        buf_puts (out, ".TP\n\\fI");
        roff_put (out, p->name);
        buf_puts (out, "\\fR\n");
        roff_put (out, p->help);
        buf_putc (out, '\n');
    }
    for (const struct cli_option *o = c->options; o->name; o++)
        if (! o->is_hidden)
            put_option (out, o);
    if (c->exits) {
        buf_puts (out, ".PP\nExit status: ");
        roff_put (out, c->exits);
        buf_putc (out, '\n');
    }
    if (c->example) {
        buf_puts (out, ".PP\n.nf\n");
        roff_put (out, c->example);
        buf_puts (out, "\n.fi\n");
    }
}

static void
put_diagnostics (struct buf *out)
{
    buf_puts (out, ".SH DIAGNOSTICS\nErrors end a command with status 1; warnings never change it. "
                   "\\fBmur explain\\fR says of each code what to do.\n");
    for (int i = 0; i < DIAG_COUNT; i++) {
        buf_puts (out, ".TP\n.B ");
        roff_put (out, diag_code_name ((enum diag_code)i));
        buf_putc (out, '\n');
        roff_put (out, diag_code_meaning ((enum diag_code)i));
        buf_putc (out, '\n');
    }
}

static void
put_environment (struct buf *out)
{
    static const struct {
        const char *name, *what;
    } variables[] = {
        { "HOME", "holds .murmur: configuration, records, installed artifacts" },
        { "PATH", "where programs that a manifest allows are found" },
        { "NO_COLOR", "set: nothing is coloured" },
        { "MURMUR_DOOR_TOKEN", "the token of a door that is named by its address (--url)" },
        { "GITHUB_TOKEN", "shown to GitHub when artifacts are looked for or fetched" },
        { "OLLAMA_HOST", "where mur chat looks for Ollama" },
        { "MURMUR_ROOST_URL", "the referee of spawned capsules, mur-roost" },
    };
    buf_puts (out, ".SH ENVIRONMENT\nKeys of providers are named by the manifest: ${NAME} there is "
                   "read from the environment or from .env.\n");
    for (size_t i = 0; i < ARRAY_LEN (variables); i++) {
        buf_puts (out, ".TP\n.B ");
        roff_put (out, variables[i].name);
        buf_putc (out, '\n');
        roff_put (out, variables[i].what);
        buf_putc (out, '\n');
    }
}

static void
put_statuses (struct buf *out)
{
    buf_puts (out, ".SH EXIT STATUS\n");
    roff_put (out, CLI_EVERY_EXIT);
    buf_putc (out, '\n');
}

/* "run" is a command, "trace" the first word of several. */
static bool
begins_with (const char *name, const char *word)
{
    size_t len = strlen (word);
    return strncmp (name, word, len) == 0 && (! name[len] || name[len] == ' ');
}

/* Each first word once, in the order of the table. */
static bool
is_first_of_word (size_t at)
{
    const char *name = cli_table.commands[at].name;
    _cleanup_free_ char *word = x_strndup (name, strcspn (name, " "));
    for (size_t i = 0; i < at; i++)
        if (begins_with (cli_table.commands[i].name, word))
            return false;
    return true;
}

static bool
put_word_page (struct buf *out, const char *word)
{
    const struct cli_group *group = cli_find_group (&cli_table, word);
    const struct cli_command *command = cli_find_command (&cli_table, word);
    const char *summary = group ? group->summary : command ? command->summary : NULL;
    if (! summary)
        return false;
    buf_printf (out, ".TH \"MUR\\-%s\" 1 \"\" \"murmur " MUR_VERSION "\"\n.SH NAME\nmur\\-%s \\- ",
                word, word);
    roff_put (out, summary);
    buf_puts (out, "\n.SH COMMANDS\n");
    for (size_t i = 0; i < cli_table.command_count; i++)
        if (begins_with (cli_table.commands[i].name, word))
            put_command (out, &cli_table.commands[i]);
    put_statuses (out);
    buf_puts (out, ".SH SEE ALSO\n.BR mur (1),\n.BR murmur.yaml (5)\n");
    return true;
}

static void
put_see_also (struct buf *out)
{
    buf_puts (out, ".SH SEE ALSO\n");
    for (size_t i = 0; i < cli_table.command_count; i++) {
        const char *name = cli_table.commands[i].name;
        if (is_first_of_word (i))
            buf_printf (out, ".BR mur\\-%.*s (1),\n", (int)strcspn (name, " "), name);
    }
    buf_puts (out, ".BR murmur.yaml (5),\n.BR mur-roost (1)\n");
}

static void
put_whole_page (struct buf *out)
{
    buf_puts (out, ".TH MUR 1 \"\" \"murmur " MUR_VERSION "\"\n"
                   ".SH NAME\nmur \\- run packaged AI agents in isolation\n"
                   ".SH SYNOPSIS\n\\fBmur\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n"
                   ".SH DESCRIPTION\n"
                   "A capsule is a manifest, murmur.yaml, with the WebAssembly parts it names. "
                   "mur gives it exactly "
                   "what the manifest grants, records what it did below ~/.murmur/records, and "
                   "serves it at an "
                   "HTTP address.\n"
                   ".SH COMMANDS\n");
    for (size_t i = 0; i < cli_table.command_count; i++)
        put_command (out, &cli_table.commands[i]);
    put_statuses (out);
    buf_puts (out,
              ".SH FILES\n"
              ".TP\n.I ~/.murmur/config.yaml\nconfiguration and credentials\n"
              ".TP\n.I .murmur/config.yaml\nconfiguration of the project in the current directory\n"
              ".TP\n.I ~/.murmur/records\nwhat sessions left behind\n"
              ".TP\n.I murmur.lock\nthe artifacts a project runs, by digest\n");
    put_environment (out);
    put_diagnostics (out);
    put_see_also (out);
}

int
main (int argc, char **argv)
{
    _cleanup_buf_ struct buf out = { 0 };
    if (argc < 2)
        put_whole_page (&out);
    else if (! put_word_page (&out, argv[1]))
        return 1;
    fwrite (out.data, 1, out.len, stdout);
    return fflush (stdout) == 0 ? 0 : 1;
}
