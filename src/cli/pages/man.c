/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the manual page mur(1) from the command table and the table of diagnostics, on standard
 * output, while murmur is built.
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

int
main (void)
{
    _cleanup_buf_ struct buf out = { 0 };
    buf_puts (&out, ".TH MUR 1 \"\" \"murmur " MUR_VERSION "\"\n"
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
        put_command (&out, &cli_table.commands[i]);
    buf_puts (
        &out,
        ".SH EXIT STATUS\n"
        "0 for success, 1 for any error with a code, 2 for a command line that cannot be read.\n"
        ".SH FILES\n"
        ".TP\n.I ~/.murmur/config.yaml\nconfiguration and credentials\n"
        ".TP\n.I .murmur/config.yaml\nconfiguration of the project in the current directory\n"
        ".TP\n.I ~/.murmur/records\nwhat sessions left behind\n"
        ".TP\n.I murmur.lock\nthe artifacts a project runs, by digest\n");
    put_diagnostics (&out);
    buf_puts (&out, ".SH SEE ALSO\n.BR murmur.yaml (5),\n.BR mur-roost (1)\n");
    fwrite (out.data, 1, out.len, stdout);
    return fflush (stdout) == 0 ? 0 : 1;
}
