/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line/help.h"

#include "base/alloc.h"

#include <string.h>

#define COLUMN        30 /* where the explanations of options begin */
#define NARROW        60 /* below this width an explanation stands under its name */
#define NARROW_COLUMN 10

/* What is written, and how wide it may be. */
struct page {
    struct buf *out;
    size_t width;
};

/* The order of `mur --help`: what a person does most comes first. A name is a command or a group.
 */
static const struct {
    const char *title;
    const char *names;
} chapters[] = {
    { "Run", "run chat send answer ps top ui watch cancel stop token control mcp" },
    { "Look back", "trace replay conversation eval" },
    { "Make and share",
      "new build publish install image deploy list search index precompile sign verify trust" },
    { "This installation", "doctor config beta version self explain completions help" },
};

/* Appends <text> wrapped to the page, the first line at the present column, further lines indented.
 */
static void
wrapped (const struct page *p, const char *text, size_t column, size_t indent)
{
    struct buf *out = p->out;
    const char *at = text;
    while (*at) {
        size_t len = strcspn (at, " \n");
        if (column > indent && column + len > p->width) {
            while (out->len && out->data[out->len - 1] == ' ')
                buf_truncate (out, out->len - 1);
            buf_printf (out, "\n%*s", (int)indent, "");
            column = indent;
        }
        buf_append (out, at, len);
        column += len;
        at += len;
        if (*at == ' ') {
            at++;
            if (*at && column < p->width) {
                buf_putc (out, ' ');
                column++;
            }
        } else if (*at == '\n') {
            at++;
            buf_printf (out, "\n%*s", (int)indent, "");
            column = indent;
        }
    }
}

/* One row: a name in a column, its explanation beside it, or below it when the name is long. */
static void
row (const struct page *p, const char *name, const char *text, size_t column)
{
    struct buf *out = p->out;
    if (p->width < NARROW)
        column = NARROW_COLUMN;
    buf_printf (out, "  %s", name);
    size_t used = strlen (name) + 2;
    if (used + 2 > column)
        buf_printf (out, "\n%*s", (int)column, "");
    else
        buf_printf (out, "%*s", (int)(column - used), "");
    wrapped (p, text, column, column);
    buf_putc (out, '\n');
}

static bool
has_visible_options (const struct cli_command *c)
{
    for (const struct cli_option *o = c->options; o->name; o++)
        if (! o->is_hidden)
            return true;
    return false;
}

char *
cli_usage_line (const struct cli_command *c)
{
    struct buf out = { 0 };
    buf_printf (&out, "mur %s", c->name);
    if (has_visible_options (c))
        buf_puts (&out, " [OPTIONS]");
    for (const struct cli_option *o = c->options; o->name; o++)
        if (o->is_required)
            buf_printf (&out, " %s %s", o->name, o->value_name);
    for (const struct cli_positional *p = c->positionals; p->name; p++)
        buf_printf (&out, p->is_required ? " <%s>%s" : " [%s]%s", p->name,
                    p->is_repeated ? "..." : "");
    return buf_steal (&out);
}

static void
option_row (const struct page *p, const struct cli_option *o)
{
    _cleanup_buf_ struct buf name = { 0 };
    _cleanup_buf_ struct buf text = { 0 };
    if (o->letter)
        buf_printf (&name, "-%c, ", o->letter);
    else
        buf_puts (&name, "    ");
    buf_puts (&name, o->name);
    if (o->value_name)
        buf_printf (&name, " %s", o->value_name);
    buf_puts (&text, o->help);
    if (o->choices) {
        buf_puts (&text, " (");
        for (const char *at = o->choices; *at; at++)
            buf_puts (&text, *at == '|' ? ", " : (const char[]){ *at, '\0' });
        buf_puts (&text, ")");
    }
    if (o->fallback)
        buf_printf (&text, " (default: %s)", o->fallback);
    row (p, name.data, text.data, COLUMN);
}

static void
indented_lines (struct buf *out, const char *text)
{
    for (const char *at = text; *at;) {
        const char *end = strchrnul (at, '\n');
        buf_printf (out, "  %.*s\n", (int)(end - at), at);
        at = *end ? end + 1 : end;
    }
}

static void
exit_status (const struct page *p, const char *own)
{
    _cleanup_free_ char *text = own ? x_asprintf ("%s %s", CLI_EVERY_EXIT, own) : NULL;
    buf_puts (p->out, "\nExit status:\n  ");
    wrapped (p, text ? text : CLI_EVERY_EXIT, 2, 2);
    buf_putc (p->out, '\n');
}

static void
command_help (const struct cli_command *c, const struct page *p)
{
    struct buf *out = p->out;
    wrapped (p, c->summary, 0, 0);
    buf_puts (out, "\n\n");
    _cleanup_free_ char *usage = cli_usage_line (c);
    buf_printf (out, "usage: %s\n", usage);
    if (c->details) {
        buf_putc (out, '\n');
        wrapped (p, c->details, 0, 0);
        buf_putc (out, '\n');
    }
    if (! c->run)
        buf_puts (out, "\nThis version of mur does not have this command yet.\n");
    if (c->positionals->name) {
        buf_puts (out, "\nArguments:\n");
        for (const struct cli_positional *at = c->positionals; at->name; at++) {
            _cleanup_free_ char *name = x_asprintf (at->is_required ? "<%s>" : "[%s]", at->name);
            row (p, name, at->help, COLUMN);
        }
    }
    buf_puts (out, "\nOptions:\n");
    for (const struct cli_option *o = c->options; o->name; o++)
        if (! o->is_hidden)
            option_row (p, o);
    row (p, "-h, --help", "print this", COLUMN);
    exit_status (p, c->exits);
    if (c->example) {
        buf_puts (out, "\nExamples:\n");
        indented_lines (out, c->example);
    }
}

static void
group_help (const struct cli_table *table, const struct cli_group *g, const struct page *p)
{
    struct buf *out = p->out;
    wrapped (p, g->summary, 0, 0);
    buf_printf (out, "\n\nusage: mur %s <COMMAND>\n\nCommands:\n", g->name);
    size_t skip = strlen (g->name) + 1;
    for (size_t i = 0; i < table->command_count; i++)
        if (str_starts (table->commands[i].name, g->name) &&
            table->commands[i].name[skip - 1] == ' ')
            row (p, table->commands[i].name + skip, table->commands[i].summary, 16);
    row (p, "help", "Show the help of one of them", 16);
    buf_puts (out, "\nOptions:\n");
    row (p, "-h, --help", "print this", COLUMN);
}

static const char *
summary_of (const struct cli_table *table, const char *name)
{
    const struct cli_group *g = cli_find_group (table, name);
    const struct cli_command *c = cli_find_command (table, name);
    return g ? g->summary : c ? c->summary : "Show the help of a command";
}

static void
program_help (const struct cli_table *table, const struct page *p)
{
    struct buf *out = p->out;
    buf_puts (out, "Runs packaged AI agents in isolation.\n\nusage: mur <COMMAND>\n");
    for (size_t i = 0; i < ARRAY_LEN (chapters); i++) {
        buf_printf (out, "\n%s:\n", chapters[i].title);
        _cleanup_free_ char *names = x_strdup (chapters[i].names);
        char *rest = names;
        for (char *name; (name = strsep (&rest, " "));)
            row (p, name, summary_of (table, name), 16);
    }
    buf_puts (out, "\nOptions:\n");
    row (p, "-h, --help", "print this; `mur <COMMAND> --help` for one command", 18);
    row (p, "-V, --version", "print the version", 18);
    exit_status (p, NULL);
    buf_puts (out, "\nExamples:\n");
    indented_lines (out, "mur new agent hello && cd hello\n"
                         "mur run --task \"say hello\"\n"
                         "mur trace show");
}

bool
cli_help (const struct cli_table *table, const char *topic, size_t width, struct buf *out)
{
    const struct page p = { out, width };
    const struct cli_command *c = topic ? cli_find_command (table, topic) : NULL;
    const struct cli_group *g = topic ? cli_find_group (table, topic) : NULL;
    if (c)
        command_help (c, &p);
    else if (g)
        group_help (table, g, &p);
    else if (! topic)
        program_help (table, &p);
    return c || g || ! topic;
}
