/* SPDX-License-Identifier: Apache-2.0
 *
 * The two configuration files: what wins, what is ignored, and what a rewrite keeps.
 */
#include "tests/unit/testing.h"

#include "fs/paths.h"
#include "fs/root.h"
#include "manifest/settings/config.h"
#include "manifest/settings/config_write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static char home[64];
static char project[96];

static int
new_home (void **state)
{
    (void)state;
    strcpy (home, "/tmp/test_config.XXXXXX");
    assert_non_null (mkdtemp (home));
    snprintf (project, sizeof (project), "%s/project", home);
    setenv ("HOME", home, 1);
    umask (022);
    assert_int_equal (mkdir (project, 0755), 0);
    assert_int_equal (chdir (project), 0);
    return 0;
}

static int
drop_home (void **state)
{
    (void)state;
    assert_int_equal (chdir ("/"), 0);
    _cleanup_close_ int tmp = open ("/tmp", O_RDONLY | O_DIRECTORY);
    assert_succeeds (fs_remove_tree_at (tmp, strrchr (home, '/') + 1, &err));
    return 0;
}

static void
write_config (const char *below, const char *text)
{
    _cleanup_free_ char *dir = x_asprintf ("%s/.murmur", below);
    _cleanup_free_ char *path = x_asprintf ("%s/config.yaml", dir);
    (void)mkdir (dir, 0700);
    _cleanup_fclose_ FILE *f = fopen (path, "w");
    assert_non_null (f);
    fputs (text, f);
}

static void
files (const char *global, const char *of_project)
{
    write_config (home, global);
    write_config (project, of_project);
}

static struct config *
load (void)
{
    struct config *c = NULL;
    assert_succeeds ((c = config_load (&err)));
    return c;
}

/* What was printed on stderr since capture_begin. */
static char captured[4096];
static int saved_stderr, capture_fd;

static void
capture_begin (void)
{
    int fds[2];
    assert_int_equal (pipe (fds), 0);
    saved_stderr = dup (2);
    dup2 (fds[1], 2);
    close (fds[1]);
    capture_fd = fds[0];
    assert_int_equal (fcntl (capture_fd, F_SETFL, O_NONBLOCK), 0);
}

static void
capture_end (void)
{
    dup2 (saved_stderr, 2);
    close (saved_stderr);
    ssize_t len = read (capture_fd, captured, sizeof (captured) - 1);
    captured[len > 0 ? len : 0] = '\0';
    close (capture_fd);
}

/* --- merging --- */

static void
test_missing_files_are_empty (void **state)
{
    (void)state;
    _cleanup_config_ struct config *c = load ();
    assert_string_equal (c->index_url, "");
    assert_string_equal (c->model, "");
    assert_null (c->api_key);
    assert_int_equal (c->containment, CONFIG_FLOOR_UNSET);
    assert_int_equal (c->machine_tokens_per_day, 0);
    assert_false (c->cgroup_is_optional);
}

static void
test_the_strongest_containment_wins (void **state)
{
    (void)state;
    static const struct {
        const char *global, *project;
        enum config_floor expected;
    } cases[] = {
        { "containment: sealed\n", "containment: advisory\n", CONFIG_FLOOR_SEALED },
        { "containment: advisory\n", "containment: scoped\n", CONFIG_FLOOR_SCOPED },
        { "", "containment: scoped\n", CONFIG_FLOOR_SCOPED },
        { "containment: scoped\n", "", CONFIG_FLOOR_SCOPED },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        files (cases[i].global, cases[i].project);
        _cleanup_config_ struct config *c = load ();
        assert_int_equal (c->containment, cases[i].expected);
    }
}

static void
test_the_lowest_spend_ceiling_wins (void **state)
{
    (void)state;
    static const struct {
        const char *global, *project;
        uint64_t expected;
    } cases[] = {
        { "spend: {machine_tokens_per_day: 100}\n", "spend: {machine_tokens_per_day: 200}\n", 100 },
        { "spend: {machine_tokens_per_day: 100}\n", "spend: {machine_tokens_per_day: 50}\n", 50 },
        { "", "spend: {machine_tokens_per_day: 50}\n", 50 },
        { "spend: {machine_tokens_per_day: 100}\n", "", 100 },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        files (cases[i].global, cases[i].project);
        _cleanup_config_ struct config *c = load ();
        assert_int_equal (c->machine_tokens_per_day, cases[i].expected);
    }
}

static void
test_secrets_and_the_cgroup_rule_are_the_global_files_alone (void **state)
{
    (void)state;
    files ("inference: {api_key: global-key}\ncredentials: {A: from-global}\n",
           "inference: {api_key: sk-project, model: m}\ncredentials: {A: x, B: y}\n"
           "resources: {cgroup: optional}\n");
    capture_begin ();
    _cleanup_config_ struct config *c = load ();
    capture_end ();
    assert_string_equal (secret_reveal (c->api_key), "global-key");
    assert_string_equal (secret_reveal (config_credential (c, "A")), "from-global");
    assert_null (config_credential (c, "B"));
    assert_false (c->cgroup_is_optional);
    assert_string_equal (c->model, "m");
    assert_non_null (strstr (captured, "project/.murmur/config.yaml: inference.api_key"));
    assert_non_null (strstr (captured, "ignored: A, B"));
    assert_non_null (strstr (captured, "resources.cgroup"));
    assert_null (strstr (captured, "sk-project"));
}

static void
test_in_the_home_directory_the_global_file_is_no_project_file (void **state)
{
    (void)state;
    write_config (home, "credentials: {A: v}\nresources: {cgroup: optional}\n");
    assert_int_equal (chdir (home), 0);
    capture_begin ();
    _cleanup_config_ struct config *c = load ();
    capture_end ();
    assert_string_equal (captured, "");
    assert_string_equal (secret_reveal (config_credential (c, "A")), "v");
    assert_true (c->cgroup_is_optional);
}

static void
test_sources_are_joined_by_scope_and_unusable_ones_kept (void **state)
{
    (void)state;
    files ("registry: {sources: [{repo: ana/tools, token: T}, {repo: bob/x}, {name: old}]}\n",
           "registry: {sources: [{repo: ana/other}, {repo: carol/y}], index_url: http://i}\n");
    _cleanup_config_ struct config *c = load ();
    assert_int_equal (c->source_count, 4);
    assert_string_equal (c->sources[0].repo, "ana/other");
    assert_null (c->sources[0].token);
    assert_string_equal (c->sources[1].repo, "bob/x");
    assert_string_equal (c->sources[2].repo, "");
    assert_string_equal (c->sources[2].removed_key, "name");
    assert_string_equal (c->sources[3].repo, "carol/y");
    assert_string_equal (c->index_url, "http://i");
}

static void
test_a_source_token_is_a_reference_a_variable_or_itself (void **state)
{
    (void)state;
    setenv ("SOME_TOKEN", "value", 1);
    unsetenv ("NO_TOKEN");
    static const struct {
        const char *token, *expected;
    } cases[] = {
        { "${SOME_TOKEN}", "value" }, { "SOME_TOKEN", "value" }, { "${NO_TOKEN}", NULL },
        { "NO_TOKEN", "NO_TOKEN" },   { "ghp_abc", "ghp_abc" },  { NULL, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct config_source source = { .token = (char *)cases[i].token };
        _cleanup_secret_ struct secret *s = config_source_token (&source);
        if (cases[i].expected)
            assert_string_equal (secret_reveal (s), cases[i].expected);
        else
            assert_null (s);
    }
}

static void
test_unusable_files_are_refused_by_name (void **state)
{
    (void)state;
    static const char *const texts[] = {
        "spend: {machine_tokens_per_day: 0}\n",
        "spend: {machine_tokens_per_day: many}\n",
        "containment: strong\n",
        "registry: [1]\n",
        "registry: {sources: 5}\n",
        "credentials: {A: [1]}\n",
        "beta: {enabled: yes}\n",
        "a: [\n",
        "- 1\n",
        "inference: {model: {a: 1}}\n",
        "resources: {cgroup: maybe}\n",
    };
    for (size_t i = 0; i < ARRAY_LEN (texts); i++) {
        files ("", texts[i]);
        struct mur_error *caught = NULL;
        if (config_load (&caught))
            fail_msg ("accepted: %s", texts[i]);
        assert_int_equal (caught->code, E_IO_003);
        assert_non_null (strstr (caught->message, "project/.murmur/config.yaml"));
        mur_error_free (caught);
    }
}

/* --- writing --- */

static char *
text_of (const char *below)
{
    _cleanup_free_ char *path = x_asprintf ("%s/.murmur/config.yaml", below);
    struct buf text = { 0 };
    assert_succeeds (fs_read_path (path, 1 << 20, &text, &err));
    return buf_steal (&text);
}

static void
set (const char *key, const char *value, bool is_global)
{
    char *written = NULL;
    assert_succeeds (config_set (key, value, is_global, &written, &err));
    free (written);
}

static void
test_a_rewrite_keeps_known_keys_and_drops_the_rest (void **state)
{
    (void)state;
    write_config (project, "# a comment\nunknown: 1\ncontainment: scoped\n"
                           "registry: {index_url: old, sources: [{repo: ana/t}]}\n"
                           "spend: {machine_tokens_per_day: 7}\nbeta: {enabled: [x]}\n");
    set ("inference.model", "m: 1 # odd", false);
    set ("registry.index_url", "http://new", false);
    _cleanup_free_ char *text = text_of (project);
    assert_null (strstr (text, "unknown"));
    assert_null (strstr (text, "comment"));
    _cleanup_config_ struct config *c = load ();
    assert_string_equal (c->model, "m: 1 # odd");
    assert_string_equal (c->index_url, "http://new");
    assert_int_equal (c->source_count, 1);
    assert_int_equal (c->containment, CONFIG_FLOOR_SCOPED);
    assert_int_equal (c->machine_tokens_per_day, 7);
    assert_true (strv_contains (&c->beta, "x"));
}

static void
test_the_global_file_is_private_and_replaced_by_rename (void **state)
{
    (void)state;
    set ("credentials.KEY_1", "first", true);
    struct stat before, after;
    _cleanup_free_ char *path = x_asprintf ("%s/.murmur/config.yaml", home);
    assert_int_equal (stat (path, &before), 0);
    assert_int_equal (before.st_mode & 07777, 0600);
    chmod (path, 0644);
    _cleanup_close_ int held = open (path, O_RDONLY); /* keeps the inode from being used again */
    set ("credentials.KEY_2", "second", true);
    set ("credentials.KEY_1", "third", true);
    assert_int_equal (stat (path, &after), 0);
    assert_int_equal (after.st_mode & 07777, 0600);
    assert_int_not_equal (after.st_ino, before.st_ino);
    _cleanup_config_ struct config *c = load ();
    assert_string_equal (secret_reveal (config_credential (c, "KEY_1")), "third");
    assert_string_equal (secret_reveal (config_credential (c, "KEY_2")), "second");
}

static void
test_unsupported_keys_create_nothing (void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool is_global;
    } cases[] = {
        { "nope", false },          { "nope", true },          { "registry.sources", true },
        { "credentials.X", false }, { "credentials.x", true }, { "credentials.1X", true },
        { "credentials.", true },   { "containment", true },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        char *written = NULL;
        assert_fails (config_set (cases[i].key, "v", cases[i].is_global, &written, &err),
                      E_CFG_002);
    }
    _cleanup_free_ char *path = x_asprintf ("%s/.murmur", home);
    struct stat st;
    assert_int_equal (stat (path, &st), -1);
}

static void
test_beta_features_are_added_and_removed_once (void **state)
{
    (void)state;
    bool is_changed;
    assert_succeeds (config_set_beta ("a", true, &is_changed, &err));
    assert_true (is_changed);
    assert_succeeds (config_set_beta ("a", true, &is_changed, &err));
    assert_false (is_changed);
    assert_succeeds (config_set_beta ("b", true, &is_changed, &err));
    assert_succeeds (config_set_beta ("a", false, &is_changed, &err));
    assert_true (is_changed);
    _cleanup_config_ struct config *c = load ();
    assert_int_equal (c->beta.len, 1);
    assert_string_equal (c->beta.items[0], "b");
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, new_home, drop_home)

int
main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (test_missing_files_are_empty),
        TEST (test_the_strongest_containment_wins),
        TEST (test_the_lowest_spend_ceiling_wins),
        TEST (test_secrets_and_the_cgroup_rule_are_the_global_files_alone),
        TEST (test_in_the_home_directory_the_global_file_is_no_project_file),
        TEST (test_sources_are_joined_by_scope_and_unusable_ones_kept),
        TEST (test_a_source_token_is_a_reference_a_variable_or_itself),
        TEST (test_unusable_files_are_refused_by_name),
        TEST (test_a_rewrite_keeps_known_keys_and_drops_the_rest),
        TEST (test_the_global_file_is_private_and_replaced_by_rename),
        TEST (test_unsupported_keys_create_nothing),
        TEST (test_beta_features_are_added_and_removed_once),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
