/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/packages/new_options.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "cli/line/args.h"
#include "manifest/text/suggest.h"

#define HARNESS_WANTED "harness is followed by the program: claude-code or codex"

const struct cli_option cli_new_options[] = {
    { .name = "--roster",
      .kind = CLI_VALUE,
      .value_name = "<NAME>",
      .conflicts = "TEMPLATE",
      .help = "a formation of two capsules in a new folder of this name" },
    { .name = "--language",
      .kind = CLI_VALUE,
      .value_name = "<LANGUAGE>",
      .choices = "c|python|javascript|rust|go",
      .fallback = "c",
      .help = "of a tool, hook or driver: c, python, javascript, rust or go" },
    { .name = "--index",
      .kind = CLI_VALUE,
      .value_name = "<PATH|URL>",
      .requires = "--roster",
      .help = "the artifact index the driver is chosen from" },
    { 0 }
};

static const struct {
    const char *name;
    bool has_languages;
} templates[] = {
    { "script", false }, { "agent", false }, { "agent-tool", false }, { "tool", true },
    { "hook", true },    { "driver", true }, { "coder", false },      { "mcp-server", false },
};

static char *
unknown_template (const char *typed)
{
    struct suggestion near = { NULL, 0 };
    _cleanup_buf_ struct buf all = { 0 };
    for (size_t i = 0; i < ARRAY_LEN (templates); i++) {
        suggestion_offer (&near, typed, templates[i].name);
        buf_printf (&all, "%s ", templates[i].name);
    }
    suggestion_offer (&near, typed, "harness");
    buf_puts (&all, "harness");
    return near.word ? x_asprintf ("there is no template '%s', did you mean '%s'? (%s)", typed,
                                   near.word, all.data)
                     : x_asprintf ("there is no template '%s': %s", typed, all.data);
}

char *
cli_new_check (const struct cli_args *args)
{
    const char *template = cli_positional (args, "TEMPLATE");
    const char *folder = cli_positional (args, "FOLDER");
    if (folder && ! str_eq (template, "harness"))
        return x_asprintf ("unexpected argument '%s'", folder);
    if (cli_has (args, "--roster"))
        return NULL;
    if (! template)
        return x_strdup (
            "--roster <NAME>, or a template and a name, is needed: mur new agent hello");
    if (str_eq (template, "harness")) {
        const char *program = cli_positional (args, "NAME");
        struct suggestion near = { NULL, 0 };
        if (str_eq (program, "claude-code") || str_eq (program, "codex"))
            return NULL;
        suggestion_offer (&near, program ? program : "", "claude-code");
        suggestion_offer (&near, program ? program : "", "codex");
        return near.word ? x_asprintf (HARNESS_WANTED "; did you mean %s?", near.word)
                         : x_strdup (HARNESS_WANTED);
    }
    for (size_t i = 0; i < ARRAY_LEN (templates); i++) {
        if (! str_eq (template, templates[i].name))
            continue;
        if (cli_has (args, "--language") && ! templates[i].has_languages)
            return x_asprintf ("--language is for tool, hook and driver; %s has but one form",
                               template);
        return cli_positional (args, "NAME")
                   ? NULL
                   : x_asprintf ("the new folder's name is missing: mur new %s hello", template);
    }
    return unknown_template (template);
}
