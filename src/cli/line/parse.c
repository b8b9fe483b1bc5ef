/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line/parse.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/version.h"
#include "cli/line/args_internal.h"
#include "cli/line/help.h"
#include "manifest/text/suggest.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- how wide help may be --- */

/* The terminal's columns, within what can be read; a pipe gets the full width. */
static size_t
help_width (int fd)
{
    struct winsize size = { 0 };
    if (ioctl (fd, TIOCGWINSZ, &size) != 0 || ! size.ws_col)
        return CLI_HELP_WIDTH;
    size_t columns = (size_t)size.ws_col - 1;
    return columns < CLI_HELP_NARROWEST ? CLI_HELP_NARROWEST
           : columns > CLI_HELP_WIDTH   ? CLI_HELP_WIDTH
                                        : columns;
}

/* --- usage errors --- */

/* Prints the error, the hint when there is one, and where help is. Takes both strings. */
static enum cli_outcome
usage_error (const char *topic, const struct cli_command *command, char *message, char *hint)
{
    _cleanup_buf_ struct buf text = { 0 };
    buf_puts (&text, "error: ");
    diag_append_message (&text, message);
    buf_putc (&text, '\n');
    if (hint)
        buf_printf (&text, "  hint: %s\n", hint);
    if (command) {
        _cleanup_free_ char *usage = cli_usage_line (command);
        buf_printf (&text, "\nusage: %s\n", usage);
    }
    buf_printf (&text, "%sFor more: mur %s%s--help", command ? "" : "\n", topic, *topic ? " " : "");
    diag_stderr_line ("%s", text.data);
    free (message);
    free (hint);
    return CLI_USAGE_ERROR;
}

static enum cli_outcome
command_error (const struct cli_command *command, char *message, char *hint)
{
    return usage_error (command->name, command, message, hint);
}

static char *
did_you_mean (const struct suggestion *s)
{
    return s->word ? x_asprintf ("did you mean '%s'?", s->word) : NULL;
}

/* "-t" is near every option that begins with a t. */
static void
offer_letter (struct suggestion *near, const char *typed, const char *name)
{
    if (typed[0] == '-' && typed[1] && ! typed[2] && name[2] == typed[1] && ! near->word)
        near->word = name;
}

static enum cli_outcome
unknown_option (const struct cli_command *command, const char *typed)
{
    struct suggestion near = { 0 };
    for (const struct cli_option *o = command->options; o->name; o++)
        if (! o->is_hidden) {
            suggestion_offer (&near, typed, o->name);
            offer_letter (&near, typed, o->name);
        }
    char *hint = did_you_mean (&near);
    if (str_eq (typed, "--registry") && command->registry_hint) {
        free (hint);
        hint = x_strdup (command->registry_hint);
    }
    return command_error (command, x_asprintf ("unknown option '%s'", typed), hint);
}

/* --- one option --- */

/* argv as it is consumed. */
struct line {
    const struct cli_table *table;
    char *const *argv;
    int argc;
    int at;
};

static bool
in_list (const char *list, const char *word, char separator)
{
    size_t len = strlen (word);
    for (const char *at = list; at && *at;) {
        const char *end = strchrnul (at, separator);
        if ((size_t)(end - at) == len && strncmp (at, word, len) == 0)
            return true;
        at = *end ? end + 1 : end;
    }
    return false;
}

static bool
parse_number (const char *text, uint64_t *value)
{
    if (! isdigit ((unsigned char)text[0]))
        return false;
    char *end;
    errno = 0;
    *value = strtoull (text, &end, 10);
    return ! *end && ! errno;
}

/* Checks a value against the option's row. NULL when it is fine, else what is wrong (owned). */
static char *
value_problem (const struct cli_option *o, const char *value, uint64_t *number)
{
    if (o->choices && ! in_list (o->choices, value, '|'))
        return x_asprintf ("'%s' is no value of %s (%s)", value, o->name, o->choices);
    if (! o->is_number)
        return NULL;
    bool is_number = parse_number (value, number);
    if (is_number && (! o->max || (*number >= o->min && *number <= o->max)))
        return NULL;
    if (o->max && o->max != UINT64_MAX)
        return x_asprintf ("'%s' is no value of %s (a whole number, %lu to %lu)", value, o->name,
                           (unsigned long)o->min, (unsigned long)o->max);
    return x_asprintf ("'%s' is no value of %s (a whole number%s)", value, o->name,
                       o->min ? " above 0" : "");
}

/* "did you mean ...?" for a word that is none of "a|b|c". Owned, or NULL. */
static char *
near_choice (const char *choices, const char *typed)
{
    _cleanup_strv_ struct strv words = { 0 };
    struct suggestion near = { 0 };
    for (const char *at = choices; at && *at;) {
        const char *end = strchrnul (at, '|');
        strv_take (&words, x_strndup (at, (size_t)(end - at)));
        at = *end ? end + 1 : end;
    }
    for (size_t i = 0; i < words.len; i++)
        suggestion_offer (&near, typed, words.items[i]);
    return did_you_mean (&near);
}

/* Takes an option whose name was read; <inline_value> is what stood after '=' or a letter, or NULL.
 */
static enum cli_outcome
take_option (struct cli_args *args, size_t index, const char *inline_value, struct line *line)
{
    const struct cli_option *o = &args->command->options[index];
    const char *value = inline_value;
    if (args->is_given[index])
        return command_error (args->command, x_asprintf ("%s was given twice", o->name), NULL);
    if (o->kind == CLI_FLAG && value)
        return command_error (args->command, x_asprintf ("%s takes no value", o->name), NULL);
    if (o->kind != CLI_FLAG && ! value) {
        const char *next = line->at < line->argc ? line->argv[line->at] : NULL;
        bool is_usable = next && (next[0] != '-' || ! next[1]);
        if (! is_usable && o->kind == CLI_VALUE)
            return command_error (
                args->command,
                x_asprintf ("%s needs a value: %s %s", o->name, o->name, o->value_name),
                next ? x_asprintf ("a value that begins with '-' is written %s=%s", o->name, next)
                     : NULL);
        value = is_usable ? next : o->none_value;
        line->at += is_usable;
    }
    char *problem = value ? value_problem (o, value, &args->numbers[index]) : NULL;
    if (problem)
        return command_error (args->command, problem, near_choice (o->choices, value));
    args->is_given[index] = true;
    args->values[index] = value;
    return CLI_RUN;
}

static enum cli_outcome
show_help (const struct cli_table *table, const char *topic)
{
    _cleanup_buf_ struct buf text = { 0 };
    cli_help (table, topic, help_width (STDOUT_FILENO), &text);
    out_write (text.data, text.len);
    return CLI_SHOWN;
}

static enum cli_outcome
take_long (struct cli_args *args, const char *word, struct line *line)
{
    const char *equals = strchr (word, '=');
    _cleanup_free_ char *name =
        equals ? x_strndup (word, (size_t)(equals - word)) : x_strdup (word);
    if (str_eq (word, "--help"))
        return show_help (args->table, args->command->name);
    for (size_t i = 0; args->command->options[i].name; i++)
        if (str_eq (args->command->options[i].name, name))
            return take_option (args, i, equals ? equals + 1 : NULL, line);
    return unknown_option (args->command, name);
}

/* "-v", "-gv", "-oFILE", "-o=FILE", "-o FILE". */
static enum cli_outcome
take_letters (struct cli_args *args, const char *word, struct line *line)
{
    for (const char *at = word + 1; *at; at++) {
        if (*at == 'h')
            return show_help (args->table, args->command->name);
        const struct cli_option *options = args->command->options;
        size_t i = 0;
        while (options[i].name && options[i].letter != *at)
            i++;
        if (! options[i].name) {
            const char unknown[] = { '-', *at, '\0' };
            return unknown_option (args->command, unknown);
        }
        const char *rest = at[1] ? at + 1 + (at[1] == '=') : NULL;
        bool takes_rest = options[i].kind != CLI_FLAG;
        enum cli_outcome outcome = take_option (args, i, takes_rest ? rest : NULL, line);
        if (outcome != CLI_RUN || takes_rest)
            return outcome;
    }
    return CLI_RUN;
}

/* --- relations --- */

static bool
stands (const struct cli_args *args, const char *name)
{
    return name[0] == '-' ? cli_has (args, name) : cli_positional (args, name) != NULL;
}

/* Calls <found> for the first word of a list for which <stands> is <wanted>. Returns that word
 * (owned) or NULL. */
static char *
first_of (const struct cli_args *args, const char *list, bool wanted)
{
    for (const char *at = list; at && *at;) {
        const char *end = strchrnul (at, ' ');
        char *word = x_strndup (at, (size_t)(end - at));
        if (stands (args, word) == wanted)
            return word;
        free (word);
        at = *end ? end + 1 : end;
    }
    return NULL;
}

static enum cli_outcome
check_relations (const struct cli_args *args)
{
    const struct cli_command *c = args->command;
    for (size_t i = 0; c->options[i].name; i++) {
        const struct cli_option *o = &c->options[i];
        if (o->is_required && ! args->is_given[i])
            return command_error (c, x_asprintf ("%s %s is missing", o->name, o->value_name), NULL);
        if (! args->is_given[i])
            continue;
        _cleanup_free_ char *rival = first_of (args, o->conflicts, true);
        if (rival)
            return command_error (c, x_asprintf ("%s cannot be used with %s", o->name, rival),
                                  NULL);
        _cleanup_free_ char *missing = first_of (args, o->requires, false);
        if (missing)
            return command_error (c, x_asprintf ("%s needs %s as well", o->name, missing), NULL);
    }
    for (size_t i = 0; c->positionals[i].name; i++)
        if (c->positionals[i].is_required && i >= args->word_count)
            return command_error (c, x_asprintf ("<%s> is missing", c->positionals[i].name), NULL);
    char *problem = c->check ? c->check (args) : NULL;
    return problem ? command_error (c, problem, NULL) : CLI_RUN;
}

static bool
has_option (const struct cli_command *c, const char *name)
{
    const struct cli_option *o = c->options;
    while (o->name && ! str_eq (o->name, name))
        o++;
    return o->name != NULL;
}

/* What a word too many was meant for: a folder or a manifest, or what people give without its
 * option. Owned, or NULL. */
static char *
meant_by_stray (const struct cli_command *c, const char *word)
{
    struct stat st;
    bool is_folder = stat (word, &st) == 0 && S_ISDIR (st.st_mode);
    if (has_option (c, "--manifest") && (is_folder || str_ends (word, ".yaml")))
        return x_asprintf ("a capsule is named by its manifest: --manifest %s%s", word,
                           ! is_folder            ? ""
                           : str_ends (word, "/") ? "murmur.yaml"
                                                  : "/murmur.yaml");
    return c->stray_option ? x_asprintf ("did you mean %s \"%s\"?", c->stray_option, word) : NULL;
}

static enum cli_outcome
take_word (struct cli_args *args, const char *word)
{
    const struct cli_positional *p = args->command->positionals;
    size_t count = 0;
    while (p[count].name)
        count++;
    bool is_full = args->word_count >= count && ! (count && p[count - 1].is_repeated);
    if (is_full)
        return command_error (args->command, x_asprintf ("unexpected argument '%s'", word),
                              meant_by_stray (args->command, word));
    args->words = x_reallocarray (args->words, args->word_count + 1, sizeof (*args->words));
    args->words[args->word_count++] = word;
    return CLI_RUN;
}

static enum cli_outcome
parse_command (const struct cli_command *command, struct line *line, struct cli_args **out)
{
    _cleanup_ (cli_args_freep) struct cli_args *args = x_new0 (struct cli_args);
    args->table = line->table;
    args->command = command;
    bool only_words = false;
    while (line->at < line->argc) {
        const char *word = line->argv[line->at++];
        enum cli_outcome outcome;
        if (! only_words && str_eq (word, "--")) {
            only_words = true;
            continue;
        }
        if (only_words || word[0] != '-' || ! word[1])
            outcome = take_word (args, word);
        else if (word[1] == '-')
            outcome = take_long (args, word, line);
        else
            outcome = take_letters (args, word, line);
        if (outcome != CLI_RUN)
            return outcome;
    }
    enum cli_outcome outcome = check_relations (args);
    if (outcome == CLI_RUN)
        *out = steal_ptr (&args);
    return outcome;
}

/* --- finding the command --- */

/* What is typed out of a habit; NULL: none. */
static const struct cli_habit *
habit_of (const struct cli_table *table, const char *typed)
{
    for (const struct cli_habit *h = table->habits; h->typed; h++)
        if (strcmp (h->typed, typed) == 0)
            return h;
    return NULL;
}

static const struct cli_command *
find_command (const struct cli_table *table, const char *name)
{
    const struct cli_command *command = cli_find_command (table, name);
    const struct cli_habit *habit = command ? NULL : habit_of (table, name);
    return habit && habit->is_alias ? cli_find_command (table, habit->meant) : command;
}

static enum cli_outcome
unknown_command (const struct cli_table *table, const char *group, const char *typed)
{
    struct suggestion near = { 0 };
    size_t skip = *group ? strlen (group) + 1 : 0;
    for (size_t i = 0; i < table->command_count; i++) {
        const char *name = table->commands[i].name;
        bool is_member = *group && str_starts (name, group) && name[skip - 1] == ' ';
        if (*group ? is_member : ! strchr (name, ' '))
            suggestion_offer (&near, typed, name + skip);
    }
    for (const struct cli_group *g = table->groups; ! *group && g->name; g++)
        suggestion_offer (&near, typed, g->name);
    if (typed[0] == '-') {
        struct suggestion option = { NULL, 0 };
        suggestion_offer (&option, typed, "--help");
        if (! *group)
            suggestion_offer (&option, typed, "--version");
        if (! *group && str_eq (typed, "-v"))
            option.word = "--version";
        return usage_error (group, NULL, x_asprintf ("unknown option '%s'", typed),
                            did_you_mean (&option));
    }
    const struct cli_habit *habit = *group ? NULL : habit_of (table, typed);
    if (habit)
        near.word = habit->meant;
    return usage_error (group, NULL,
                        x_asprintf ("unknown command '%s%s%s'", group, *group ? " " : "", typed),
                        did_you_mean (&near));
}

/* `mur help trace show`, `mur trace help show`: help of the joined words. */
static enum cli_outcome
help_of (const char *group, struct line *line)
{
    _cleanup_buf_ struct buf topic = { 0 };
    buf_puts (&topic, group);
    while (line->at < line->argc) {
        const char *word = line->argv[line->at++];
        if (str_eq (word, "--help") || str_eq (word, "-h"))
            continue;
        if (topic.len)
            buf_putc (&topic, ' ');
        buf_puts (&topic, word);
    }
    if (topic.len == 0 || str_eq (topic.data, "help"))
        return show_help (line->table, NULL);
    if (cli_find_command (line->table, topic.data) || cli_find_group (line->table, topic.data))
        return show_help (line->table, topic.data);
    return unknown_command (line->table, "", topic.data);
}

static enum cli_outcome
bare (const struct cli_table *table, const char *topic)
{
    _cleanup_buf_ struct buf text = { 0 };
    cli_help (table, topic, help_width (STDERR_FILENO), &text);
    buf_truncate (&text, text.len - 1); /* the line writer adds its own end */
    diag_stderr_line ("%s", text.data);
    return CLI_USAGE_ERROR;
}

static enum cli_outcome
parse_group (const struct cli_group *group, struct line *line, struct cli_args **out)
{
    if (line->at >= line->argc)
        return bare (line->table, group->name);
    const char *word = line->argv[line->at++];
    if (str_eq (word, "-h") || str_eq (word, "--help"))
        return show_help (line->table, group->name);
    if (str_eq (word, "help"))
        return help_of (group->name, line);
    _cleanup_free_ char *name = x_asprintf ("%s %s", group->name, word);
    const struct cli_command *command = find_command (line->table, name);
    return command ? parse_command (command, line, out)
                   : unknown_command (line->table, group->name, word);
}

enum cli_outcome
cli_parse (const struct cli_table *table, int argc, char *const *argv, struct cli_args **args)
{
    struct line line = { table, argv, argc, 1 };
    *args = NULL;
    if (argc < 2)
        return bare (table, NULL);
    const char *word = argv[line.at++];
    if (str_eq (word, "-h") || str_eq (word, "--help"))
        return show_help (table, NULL);
    if (str_eq (word, "-V") || str_eq (word, "--version")) {
        out_puts ("murmur-cli " MUR_VERSION "\n");
        return CLI_SHOWN;
    }
    if (str_eq (word, "help"))
        return help_of ("", &line);
    const struct cli_group *group = cli_find_group (table, word);
    if (group)
        return parse_group (group, &line, args);
    const struct cli_command *command = strchr (word, ' ') ? NULL : find_command (table, word);
    return command ? parse_command (command, &line, args) : unknown_command (table, "", word);
}
