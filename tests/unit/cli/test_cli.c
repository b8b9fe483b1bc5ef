/* SPDX-License-Identifier: Apache-2.0
 *
 * The command table, the parser, help and the table of diagnostics: what each row promises, and
 * that the tables agree.
 */
#include "tests/unit/testing.h"

#include "base/version.h"
#include "cli/line/help.h"
#include "cli/line/parse.h"
#include "cli/table.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>

/* --- running the parser --- */

/* Parses a line, its words separated by blanks, "''" an empty word; what it prints on either stream
 * is kept in captured. */
static char captured_out[65536], captured_err[65536];

static void
redirect (int fd, int *saved, int pipe_fds[2])
{
    assert_int_equal (pipe (pipe_fds), 0);
    assert_true (fcntl (pipe_fds[1], F_SETPIPE_SZ, 1 << 18) > 0);
    *saved = dup (fd);
    dup2 (pipe_fds[1], fd);
    close (pipe_fds[1]);
}

static void
restore (int fd, int saved, int read_fd, char out[65536])
{
    dup2 (saved, fd);
    close (saved);
    ssize_t len = read (read_fd, out, 65535);
    out[len > 0 ? len : 0] = '\0';
    close (read_fd);
}

static enum cli_outcome
parse (const char *line, struct cli_args **args)
{
    static char text[1024];
    static char *argv[64];
    int argc = 0;
    snprintf (text, sizeof (text), "%s", line);
    char *rest = text;
    for (char *word; (word = strsep (&rest, " "));)
        argv[argc++] = str_eq (word, "''") ? (char *)"" : word;
    int out_saved, err_saved, out_pipe[2], err_pipe[2];
    redirect (1, &out_saved, out_pipe);
    redirect (2, &err_saved, err_pipe);
    enum cli_outcome outcome = cli_parse (&cli_table, argc, argv, args);
    restore (1, out_saved, out_pipe[0], captured_out);
    restore (2, err_saved, err_pipe[0], captured_err);
    return outcome;
}

static struct cli_args *
accepted (const char *line)
{
    struct cli_args *args = NULL;
    if (parse (line, &args) != CLI_RUN)
        fail_msg ("%s: %s", line, captured_err);
    assert_non_null (args);
    return args;
}

/* The line is a usage error whose text holds <part>; stdout stays empty. */
static void
refused (const char *line, const char *part)
{
    struct cli_args *args = NULL;
    if (parse (line, &args) != CLI_USAGE_ERROR)
        fail_msg ("%s was accepted", line);
    assert_null (args);
    assert_string_equal (captured_out, "");
    if (! strstr (captured_err, part))
        fail_msg ("%s: \"%s\" is not in: %s", line, part, captured_err);
}

/* --- accepted lines --- */

static void
test_values_stand_apart_or_behind_an_equals_sign (void **state)
{
    (void)state;
    static const char *const lines[] = { "mur run --task hi --deadline 5",
                                         "mur run --task=hi --deadline=5" };
    for (size_t i = 0; i < ARRAY_LEN (lines); i++) {
        struct cli_args *args = accepted (lines[i]);
        assert_string_equal (cli_value (args, "--task"), "hi");
        assert_int_equal (cli_number (args, "--deadline"), 5);
        assert_string_equal (cli_value (args, "--bind"), "127.0.0.1");
        assert_false (cli_has (args, "--bind"));
        assert_null (cli_value (args, "--workdir"));
        cli_args_free (args);
    }
}

static void
test_letters_join_and_carry_values (void **state)
{
    (void)state;
    static const char *const lines[] = { "mur build -o out.zip src", "mur build -oout.zip src",
                                         "mur build -o=out.zip src",
                                         "mur build src --output out.zip" };
    for (size_t i = 0; i < ARRAY_LEN (lines); i++) {
        struct cli_args *args = accepted (lines[i]);
        assert_string_equal (cli_value (args, "--output"), "out.zip");
        assert_string_equal (cli_positional (args, "SOURCE"), "src");
        cli_args_free (args);
    }
}

static void
test_two_dashes_end_the_options (void **state)
{
    (void)state;
    struct cli_args *args = accepted ("mur search -- --limit");
    assert_string_equal (cli_positional (args, "QUERY"), "--limit");
    assert_false (cli_has (args, "--limit"));
    cli_args_free (args);
}

static void
test_an_optional_value_is_taken_unless_it_is_an_option (void **state)
{
    (void)state;
    struct cli_args *args = accepted ("mur run --resume --json");
    assert_string_equal (cli_value (args, "--resume"), "@1");
    cli_args_free (args);
    args = accepted ("mur run --resume @3 --json");
    assert_string_equal (cli_value (args, "--resume"), "@3");
    cli_args_free (args);
    args = accepted ("mur run --roster");
    assert_string_equal (cli_value (args, "--roster"), "roster.yaml");
    cli_args_free (args);
}

static void
test_an_empty_value_is_a_value (void **state)
{
    (void)state;
    struct cli_args *args = accepted ("mur run --system-prompt ''");
    assert_true (cli_has (args, "--system-prompt"));
    assert_string_equal (cli_value (args, "--system-prompt"), "");
    cli_args_free (args);
}

static void
test_a_repeated_positional_takes_the_rest (void **state)
{
    (void)state;
    size_t count;
    struct cli_args *args = accepted ("mur precompile a.mur.zip --json b.mur.zip c.mur.zip");
    const char *const *zips = cli_positionals (args, "ZIP", &count);
    assert_int_equal (count, 3);
    assert_string_equal (zips[2], "c.mur.zip");
    cli_args_free (args);
}

static void
test_hidden_options_are_parsed_and_not_shown (void **state)
{
    (void)state;
    struct cli_args *args = accepted ("mur run --json --readiness-tokens");
    assert_true (cli_has (args, "--readiness-tokens"));
    cli_args_free (args);
    _cleanup_buf_ struct buf help = { 0 };
    assert_true (cli_help (&cli_table, "run", CLI_HELP_WIDTH, &help));
    assert_null (strstr (help.data, "--readiness-tokens"));
    assert_non_null (strstr (help.data, "--spawn-grant-stdin"));
}

/* --- usage errors --- */

static void
test_usage_errors (void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *part;
    } cases[] = {
        { "mur", "usage: mur <COMMAND>" },
        { "mur frobnicate", "unknown command 'frobnicate'" },
        { "mur instal", "did you mean 'install'?" },
        { "mur trace", "usage: mur trace <COMMAND>" },
        { "mur trace shwo", "did you mean 'show'?" },
        { "mur --task hi", "unknown option '--task'" },
        { "mur run --version", "unknown option '--version'" },
        { "mur run --taks hi", "did you mean '--task'?" },
        { "mur run -x", "unknown option '-x'" },
        { "mur run extra", "unexpected argument 'extra'" },
        { "mur run --task", "--task needs a value" },
        { "mur run --task -x", "--task=-x" },
        { "mur run --json=yes", "--json takes no value" },
        { "mur run --json --json", "given twice" },
        { "mur run --deadline 0", "1 to 315360000" },
        { "mur run --deadline 315360001", "1 to 315360000" },
        { "mur run --deadline soon", "'soon' is no value of --deadline" },
        { "mur run --deadline=-1", "'-1' is no value of --deadline" },
        { "mur run --capsule-version 1", "--capsule-version needs --capsule" },
        { "mur run --capsule a/b --capsule-version 1 --manifest m.yaml", "--manifest" },
        { "mur run --resume-mode compact", "--resume-mode needs --resume" },
        { "mur run --resume --resume-mode half", "'half' is no value of --resume-mode" },
        { "mur run --forget-session", "--forget-session needs --context" },
        { "mur run --readiness-tokens", "--readiness-tokens needs --json" },
        { "mur run --store-root x --capsule a/b --capsule-version 1", "--workdir" },
        { "mur run --workdir-identity 1:2", "--workdir-identity needs --workdir" },
        { "mur run --capsule-sha256 ab", "--capsule-sha256 needs --capsule" },
        { "mur run --roster --workdir x", "--roster cannot be used with --workdir" },
        { "mur ps --verbose --json", "--verbose cannot be used with --json" },
        { "mur watch @1 --url localhost:1", "--url cannot be used with SESSION" },
        { "mur cancel tsk_x", "a session and a task are needed" },
        { "mur cancel --url localhost:1", "task" },
        { "mur cancel --url localhost:1 @1 tsk_x", "only the task" },
        { "mur stop", "<SESSION> is missing" },
        { "mur list --all -g", "--all cannot be used with --global" },
        { "mur index dist --repo a/b", "--release <TAG> is missing" },
        { "mur conversation truncate ctx", "--keep <N> is missing" },
        { "mur eval run --repeat 0", "'0' is no value of --repeat" },
        { "mur new", "--roster <NAME>" },
        { "mur new agent", "the new folder's name is missing" },
        { "mur new robot r2", "there is no template 'robot'" },
        { "mur new --roster x agent y", "--roster cannot be used with TEMPLATE" },
        { "mur deploy ls", "deploy" },
        { "mur explain A B", "unexpected argument 'B'" },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++)
        refused (cases[i].line, cases[i].part);
}

static void
test_an_unknown_registry_option_says_where_the_command_looks (void **state)
{
    (void)state;
    static const char *const lines[] = { "mur install --registry x", "mur publish --registry x",
                                         "mur search --registry x", "mur new --registry x" };
    for (size_t i = 0; i < ARRAY_LEN (lines); i++) {
        refused (lines[i], "unknown option '--registry'\n  hint: mur ");
        assert_null (strstr (strstr (captured_err, "hint:") + 1, "hint:"));
    }
    refused ("mur list --registry x", "unknown option '--registry'");
    assert_null (strstr (captured_err, "hint:"));
}

/* --- help --- */

static void
test_help_goes_to_stdout_and_help_says_the_same (void **state)
{
    (void)state;
    struct cli_args *args;
    char first[sizeof (captured_out)];
    assert_int_equal (parse ("mur trace show --help", &args), CLI_SHOWN);
    assert_string_equal (captured_err, "");
    strcpy (first, captured_out);
    static const char *const same[] = { "mur help trace show", "mur trace help show",
                                        "mur trace show -h", "mur trace show --workdir x --help" };
    for (size_t i = 0; i < ARRAY_LEN (same); i++) {
        assert_int_equal (parse (same[i], &args), CLI_SHOWN);
        assert_string_equal (captured_out, first);
    }
    assert_int_equal (parse ("mur --version", &args), CLI_SHOWN);
    assert_string_equal (captured_out, "murmur-cli " MUR_VERSION "\n");
    assert_int_equal (parse ("mur help frobnicate", &args), CLI_USAGE_ERROR);
}

/* Every line of a help text fits a terminal and has no blank at its end. */
static void
assert_lines_are_tidy (const char *topic, const char *text)
{
    for (const char *at = text; *at;) {
        const char *end = strchrnul (at, '\n');
        if (end - at > 110 || (end > at && end[-1] == ' '))
            fail_msg ("help of %s: \"%.*s\"", topic, (int)(end - at), at);
        at = *end ? end + 1 : end;
    }
}

static void
test_every_command_has_tidy_help_with_all_its_options (void **state)
{
    (void)state;
    for (size_t i = 0; i < cli_table.command_count; i++) {
        const struct cli_command *c = &cli_table.commands[i];
        _cleanup_buf_ struct buf help = { 0 };
        assert_true (cli_help (&cli_table, c->name, CLI_HELP_WIDTH, &help));
        assert_lines_are_tidy (c->name, help.data);
        assert_non_null (strstr (help.data, "Exit status:\n  0 for success, 1 for any error"));
        for (const struct cli_option *o = c->options; o->name; o++)
            if (! o->is_hidden && ! strstr (help.data, o->name))
                fail_msg ("help of %s lacks %s", c->name, o->name);
        for (const struct cli_positional *p = c->positionals; p->name; p++)
            if (! strstr (help.data, p->name))
                fail_msg ("help of %s lacks %s", c->name, p->name);
    }
}

static void
test_the_program_help_names_every_command_and_group (void **state)
{
    (void)state;
    _cleanup_buf_ struct buf help = { 0 };
    assert_true (cli_help (&cli_table, NULL, CLI_HELP_WIDTH, &help));
    assert_lines_are_tidy ("mur", help.data);
    for (size_t i = 0; i < cli_table.command_count; i++) {
        _cleanup_free_ char *first =
            x_strndup (cli_table.commands[i].name, strcspn (cli_table.commands[i].name, " "));
        _cleanup_free_ char *row = x_asprintf ("\n  %s ", first);
        if (! strstr (help.data, row))
            fail_msg ("mur --help lacks %s", first);
    }
}

/* --- the table --- */

/* Each word of a list names an option or positional of the command. */
static void
assert_list_names_members (const struct cli_command *c, const char *list)
{
    _cleanup_free_ char *text = x_strdup (list);
    char *rest = text;
    for (char *word; (word = strsep (&rest, " "));) {
        bool is_known = false;
        for (const struct cli_option *o = c->options; o->name; o++)
            is_known |= str_eq (o->name, word);
        for (const struct cli_positional *p = c->positionals; p->name; p++)
            is_known |= str_eq (p->name, word);
        if (! is_known)
            fail_msg ("mur %s: a rule names \"%s\", which it does not have", c->name, word);
    }
}

static void
test_the_rows_are_consistent (void **state)
{
    (void)state;
    for (size_t i = 0; i < cli_table.command_count; i++) {
        const struct cli_command *c = &cli_table.commands[i];
        assert_ptr_equal (cli_find_command (&cli_table, c->name), c); /* no name twice */
        assert_true (isupper ((unsigned char)c->summary[0]));
        const char *blank = strchr (c->name, ' ');
        _cleanup_free_ char *group = blank ? x_strndup (c->name, (size_t)(blank - c->name)) : NULL;
        if (group && ! cli_find_group (&cli_table, group))
            fail_msg ("mur %s is in no group", c->name);
        for (const struct cli_option *o = c->options; o->name; o++) {
            assert_true (str_starts (o->name, "--"));
            assert_true ((o->kind == CLI_FLAG) == (o->value_name == NULL));
            assert_true ((o->kind == CLI_VALUE_OR_NONE) == (o->none_value != NULL));
            assert_non_null (o->help);
            if (o->conflicts)
                assert_list_names_members (c, o->conflicts);
            if (o->requires)
                assert_list_names_members (c, o->requires);
        }
    }
}

/* spec/cli.md 12, whole: the options help lists, in any order. */
static void
test_the_table_is_the_chapters (void **state)
{
    (void)state;
    static const struct {
        const char *command;
        const char *options;
    } chapter[] = {
        { "list", "--global --all --contract" },
        { "new", "--roster --language --index" },
        { "search", "--index --limit" },
        { "index", "--repo --release --merge --output" },
        { "version", "--json" },
        { "self", "--json" },
        { "doctor", "--verbose --bind --learn" },
        { "build", "--output --skill --version --summary" },
        { "publish", "--platform" },
        { "install", "--global --all-platforms --no-precompile --update --resolve" },
        { "precompile", "--workdir --json" },
        { "sign", "--key" },
        { "verify", "" },
        { "trust keygen", "" },
        { "trust add", "" },
        { "trust remove", "" },
        { "trust list", "" },
        { "run",
          "--public-url --records-store --secrets-dir --manifest --capsule --capsule-version --roster --spawn-grant-stdin --task "
          "--system-prompt --model --max-session-tokens "
          "--deadline --context --resume --resume-mode --forget-session "
          "--lifecycle-task-acceptance "
          "--lifecycle-after-task --workdir --json --verbose --bind --port --fleet-token --no-env-file --containment --unconfined "
          "--explain-scope --print --quiet" },
        { "conversation ls", "--record --message --json" },
        { "conversation show", "--record --full --json" },
        { "conversation rm", "--record" },
        { "conversation truncate", "--keep --record" },
        { "replay", "--workdir --with-manifest --with-model --with-artifact "
                    "--with-system-prompt --model --tools --from --each-turn --deep --can "
                    "--export-eval --minimise --check --max-runs --work --until --task "
                    "--keep-going --json" },
        { "trace pack", "--output --redact --workdir" },
        { "trace show", "--workdir --body --turn --fleet --kubeconfig --namespace --tree" },
        { "trace steps", "--verbose --workdir --fleet --kubeconfig --namespace" },
        { "trace diff", "--workdir --steps --json" },
        { "trace report", "--last --since --workdir" },
        { "trace export", "--otlp --content --workdir --fleet --kubeconfig --namespace" },
        { "trace list", "--workdir --json" },
        { "trace fetch", "--tree --workdir --secrets-dir" },
        { "trace rm", "--workdir --json" },
        { "eval show", "--workdir --json" },
        { "eval diff", "--workdir --run --json" },
        { "eval run", "--model --dataset --variant --repeat" },
        { "mcp add",
          "--name --version --env --key-header --bin --with --allow-scripts --accept --scope --network --program --key-env --startup-secs" },
        { "mcp list", "--json" },
        { "mcp show", "--json" },
        { "mcp diff", "--scope --network --program --key-env --startup-secs" },
        { "mcp update",
          "--source --bin --with --allow-scripts --accept --scope --network --program --key-env --startup-secs" },
        { "mcp call", "--input --yes --scope --network --program --key-env --startup-secs" },
        { "mcp login",
          "--scope --issuer --client-id --client-secret-env --port --timeout --no-browser" },
        { "mcp logout", "" },
        { "mcp connect", "--write" },
        { "mcp serve", "--workdir --containment --no-env-file" },
        { "chat", "--with --model --context --workdir --no-env-file" },
        { "watch", "--url --wait --fleet --kubeconfig --namespace" },
        { "cancel", "--url --fleet --kubeconfig --namespace" },
        { "send", "--context --detach --url --fleet --kubeconfig --namespace" },
        { "answer", "--task --detach --url --fleet --kubeconfig --namespace" },
        { "deploy render",
          "--to --manifest --roster --placement --image --capsule-image --layout --capsule --namespace --queue --door --public-url --roost-url --records-store --records-role --ca --seccomp-profile --deadline --task --out" },
        { "deploy check",
          "--to --manifest --roster --placement --image --capsule-image --layout --capsule --namespace --queue --door --public-url --roost-url --records-store --records-role --ca --seccomp-profile --deadline --task --kubeconfig" },
        { "deploy apply",
          "--to --manifest --roster --placement --image --capsule-image --layout --capsule --namespace --queue --door --public-url --roost-url --records-store --records-role --ca --seccomp-profile --deadline --task --kubeconfig --replace" },
        { "deploy profile", "--operator --namespace" },
        { "deploy referee",
          "--image --namespace --roost-url --placement --max-depth --max-concurrent --max-live-capsules --queue --queue-timeout --records-store --records-role --ca --seccomp-profile --out" },
        { "image build", "--output --roster --base" },
        { "image push", "" },
        { "image pull", "--output --platform" },
        { "control show", "--json" },
        { "control set", "" },
        { "control secret", "" },
        { "control forget", "" },
        { "ps", "--verbose --json --fleet --kubeconfig --namespace" },
        { "top", "--once" },
        { "ui",
          "--port --workdir --read-only --open --allow-host --token-file --fleet --kubeconfig --namespace --json" },
        { "token", "--credential" },
        { "stop", "--timeout --fleet --kubeconfig --namespace" },
        { "beta list", "" },
        { "beta enable", "" },
        { "beta disable", "" },
        { "config set", "--global" },
        { "config get", "" },
        { "config list", "" },
        { "config unset", "--global" },
        { "config path", "" },
    };
    assert_int_equal (cli_table.command_count,
                      ARRAY_LEN (chapter) + 2); /* and explain, completions: ours */
    for (size_t i = 0; i < ARRAY_LEN (chapter); i++) {
        const struct cli_command *c = cli_find_command (&cli_table, chapter[i].command);
        if (! c)
            fail_msg ("there is no mur %s", chapter[i].command);
        size_t expected = 0, found = 0;
        _cleanup_free_ char *text = x_strdup (chapter[i].options);
        char *rest = text;
        for (char *word; *chapter[i].options && (word = strsep (&rest, " "));) {
            assert_list_names_members (c, word);
            expected++;
        }
        for (const struct cli_option *o = c->options; o->name; o++)
            found += ! o->is_hidden;
        if (expected != found)
            fail_msg ("mur %s has %zu visible options, not %zu", c->name, found, expected);
    }
}

static void
test_the_version_is_the_builds (void **state)
{
    (void)state;
    const char *version = getenv ("MUR_PROJECT_VERSION");
    if (! version)
        skip ();
    assert_string_equal (version, MUR_VERSION);
}

/* --- diagnostics --- */

/* "E-CAP-003" for the row E_CAP_003. */
static void
assert_name_is_identifier (const char *identifier, const char *name)
{
    _cleanup_free_ char *expected = x_strdup (identifier);
    for (char *c = expected; *c; c++)
        *c = *c == '_' ? '-' : *c;
    assert_string_equal (name, expected);
}

static bool
is_sentence (const char *text)
{
    size_t len = strlen (text);
    return len > 20 && ! islower ((unsigned char)text[0]) && text[len - 1] == '.';
}

static void
test_every_code_has_a_meaning_and_a_remedy (void **state)
{
    (void)state;
    static const struct {
        const char *identifier;
        const char *name;
        const char *meaning;
        const char *remedy;
    } rows[] = {
#define DIAG(id, code, meaning, remedy) { #id, code, meaning, remedy },
#include "base/diag_codes.def"
#undef DIAG
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        assert_name_is_identifier (rows[i].identifier, rows[i].name);
        if (! is_sentence (rows[i].meaning) || ! is_sentence (rows[i].remedy))
            fail_msg ("%s: \"%s\" \"%s\"", rows[i].name, rows[i].meaning, rows[i].remedy);
        enum diag_code code;
        assert_true (diag_code_find (rows[i].name, &code));
        assert_int_equal (code, i); /* no name twice */
        for (size_t j = 0; j < i; j++)
            if (str_eq (rows[i].meaning, rows[j].meaning))
                fail_msg ("%s and %s mean the same", rows[i].name, rows[j].name);
    }
}

/* Codes the specification leaves unassigned for good stay so. */
static void
test_retired_codes_stay_retired (void **state)
{
    (void)state;
    static const char *const retired[] = {
        "E-RUN-031", "W-RUN-005", "W-RUN-006",    "W-SEC-020",
        "W-SEC-022", "W-SEC-026", "E-DEPLOY-002", "E-DEPLOY-005"
    };
    enum diag_code code;
    for (size_t i = 0; i < ARRAY_LEN (retired); i++)
        assert_false (diag_code_find (retired[i], &code));
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_values_stand_apart_or_behind_an_equals_sign),
        cmocka_unit_test (test_letters_join_and_carry_values),
        cmocka_unit_test (test_two_dashes_end_the_options),
        cmocka_unit_test (test_an_optional_value_is_taken_unless_it_is_an_option),
        cmocka_unit_test (test_an_empty_value_is_a_value),
        cmocka_unit_test (test_a_repeated_positional_takes_the_rest),
        cmocka_unit_test (test_hidden_options_are_parsed_and_not_shown),
        cmocka_unit_test (test_usage_errors),
        cmocka_unit_test (test_an_unknown_registry_option_says_where_the_command_looks),
        cmocka_unit_test (test_help_goes_to_stdout_and_help_says_the_same),
        cmocka_unit_test (test_every_command_has_tidy_help_with_all_its_options),
        cmocka_unit_test (test_the_program_help_names_every_command_and_group),
        cmocka_unit_test (test_the_rows_are_consistent),
        cmocka_unit_test (test_the_table_is_the_chapters),
        cmocka_unit_test (test_the_version_is_the_builds),
        cmocka_unit_test (test_every_code_has_a_meaning_and_a_remedy),
        cmocka_unit_test (test_retired_codes_stay_retired),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
