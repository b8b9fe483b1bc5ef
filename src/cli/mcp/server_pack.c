/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mcp/server_pack.h"

#include "artifact/names/name.h"
#include "artifact/names/version.h"
#include "artifact/package/build.h"
#include "artifact/package/tree.h"
#include "artifact/store/store.h"
#include "artifact/store/store_write.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/json_write.h"
#include "base/tokens.h"
#include "cli/mcp/known_failures.h"
#include "fs/root.h"
#include "manifest/settings/config.h"
#include "manifest/text/grammar.h"
#include "manifest/text/yaml.h"
#include "manifest/text/yaml_write.h"
#include "mcp/definitions.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACEHOLDER    "placeholder"
#define TREE_BYTES_MAX ((uint64_t)1 << 29)

/* --- how it is started --- */

void
split_list (const char *text, struct strv *out)
{
    _cleanup_free_ char *copy = x_strdup (text ? text : "");
    char *rest = copy;
    for (char *item; (item = strsep (&rest, ","));)
        if (*item)
            strv_push (out, item);
}

/* The key of one far away, as a session looks it up: the configuration first. */
static bool
read_key (struct server_start *s, const char *name, const struct config *config,
          struct mur_error **err)
{
    const char *variable = name ? getenv (name) : NULL;
    if (! name)
        return true;
    s->key_name = x_strdup (name);
    s->key = config_credential_copy (config, name);
    if (! s->key && variable && *variable)
        s->key = secret_new (variable, strlen (variable));
    if (! s->key) {
        mur_fail (err, E_MCP_009, "--key-env %s: neither credentials.%s nor a variable %s is set",
                  name, name, name);
        return mur_hint (err, "mur config set -g credentials.%s <key>, or export it", name);
    }
    s->request.key = s->key;
    return true;
}

bool
server_start_read (struct server_start *s, const struct cli_args *args, struct mur_error **err)
{
    const char *scope = cli_value (args, "--scope");
    _cleanup_config_ struct config *config = config_load (err);
    if (! config)
        return false;
    *s = (struct server_start){ 0 };
    split_list (cli_value (args, "--network"), &s->hosts);
    s->network = (struct str_list){ (const char **)s->hosts.items, s->hosts.len, s->hosts.len > 0 };
    split_list (cli_value (args, "--program"), &s->programs);
    if (! read_key (s, cli_value (args, "--key-env"), config, err))
        return false;
    s->request.startup_ms = cli_number (args, "--startup-secs") * 1000;
    s->request.may_be_unconfined = config->is_unconfined;
    s->request.cgroup_is_optional = config->cgroup_is_optional;
    if (! scope)
        return true;
    s->work = realpath (scope, NULL);
    struct stat st;
    return (s->work && stat (s->work, &st) == 0 && S_ISDIR (st.st_mode)) ||
           mur_fail_errno (err, E_IO_001, "--scope: no folder %s", scope);
}

static void
settle (struct server_start *s, const char *name, const struct mcp_pinned *pinned, const char *tree)
{
    s->request.name = name;
    s->request.pinned = pinned;
    s->request.tree = tree;
    s->request.args = (const char *const *)s->args.items;
    s->request.env = (const char *const *)s->env.items;
    s->request.work = s->work;
    s->request.network = s->network;
    s->request.programs =
        (struct str_list){ (const char **)s->programs.items, s->programs.len, s->programs.len > 0 };
}

void
server_start_as_pinned (struct server_start *s, const char *name, const struct mcp_pinned *pinned,
                        const char *tree)
{
    size_t i;
    json_t *value;
    const char *key;
    if (pinned->key_header && ! s->key_header)
        s->key_header = x_strdup (pinned->key_header);
    json_array_foreach (pinned->args, i, value) strv_push (&s->args, json_string_value (value));
    json_object_foreach ((json_t *)(uintptr_t)pinned->env, key, value)
        strv_printf (&s->env, "%s=%s", key, json_string_value (value));
    settle (s, name, pinned, tree);
}

void
server_start_clear (struct server_start *s)
{
    strv_free (&s->hosts);
    strv_free (&s->programs);
    strv_free (&s->args);
    strv_free (&s->env);
    secret_free (s->key);
    free (s->key_name);
    free (s->key_header);
    free (s->work);
}

/* --- what a person sees --- */

static void
print_line_of (const char *text)
{
    _cleanup_free_ char *shown = mcp_text_shown (text);
    size_t len = strcspn (shown, "\r\n");
    out_printf ("      %.*s%s\n", (int)utf8_cut (shown, len, 100), shown,
                shown[len] || len > 100 ? "…" : "");
}

static uint64_t
tokens_of (const json_t *tool)
{
    _cleanup_free_ char *text = json_text (tool, JSON_TEXT_SORTED);
    return tokens_count (text, strlen (text));
}

void
server_print_tools (const json_t *tools)
{
    size_t i;
    json_t *tool;
    uint64_t all = 0;
    json_array_foreach (tools, i, tool)
    {
        const char *words = json_get_string (tool, "description");
        _cleanup_strv_ struct strv findings = { 0 };
        uint64_t tokens = tokens_of (tool);
        char hash[SHA256_HEX_LEN + 1];
        mcp_definition_hash (tool, hash);
        mcp_definition_findings (tool, tools, &findings);
        out_printf ("  %s  %llu tokens  %.12s\n", json_get_string (tool, "name"),
                    (unsigned long long)tokens, hash);
        if (words)
            print_line_of (words);
        for (size_t k = 0; k < findings.len; k++)
            out_printf ("      ! %s\n", findings.items[k]);
        all += tokens;
    }
    size_t count = json_array_size (tools);
    out_printf ("%zu tool%s, %llu tokens\n", count, count == 1 ? "" : "s", (unsigned long long)all);
}

static void
print_member (const char *mark, const json_t *value)
{
    _cleanup_free_ char *text = json_is_string (value) ? x_strdup (json_string_value (value))
                                : value                ? json_text (value, JSON_TEXT_SORTED)
                                                       : x_strdup ("(absent)");
    _cleanup_free_ char *shown = mcp_text_shown (text);
    out_printf ("    %s %s\n", mark, shown);
}

static size_t
print_change (const json_t *before, const json_t *now)
{
    const char *name = json_get_string (before, "name");
    const json_t *live = mcp_definition_find (now, name);
    const char *what = mcp_definition_change (before, now);
    if (! what)
        return 0;
    if (! live) {
        out_printf ("- %s\n", name);
        return 1;
    }
    out_printf ("~ %s\n", name);
    for (size_t i = 0; mcp_pinned_members[i]; i++) {
        const json_t *was = json_object_get (before, mcp_pinned_members[i]);
        const json_t *is = json_object_get (live, mcp_pinned_members[i]);
        if (! was != ! is || (was && ! json_equal (was, is))) {
            out_printf ("  %s\n", mcp_pinned_members[i]);
            print_member ("-", was);
            print_member ("+", is);
        }
    }
    return 1;
}

size_t
server_print_difference (const json_t *before, const json_t *now)
{
    size_t i, count = 0;
    json_t *tool;
    json_array_foreach (before, i, tool) count += print_change (tool, now);
    json_array_foreach (now, i,
                        tool) if (! mcp_definition_find (before, json_get_string (tool, "name")))
    {
        out_printf ("+ %s\n", json_get_string (tool, "name"));
        count++;
    }
    return count;
}

bool
server_is_agreed (const char *question)
{
    char answer[16] = "";
    if (! isatty (STDIN_FILENO) || ! isatty (STDERR_FILENO))
        return false;
    fprintf (stderr, "%s [y/N] ", question);
    if (! fgets (answer, sizeof answer, stdin))
        return false;
    return answer[0] == 'y' || answer[0] == 'Y';
}

/* --- the package --- */

struct packing {
    struct build_plan plan;
    uint64_t left;
    struct strv *notes;
};

static bool
add_file (struct packing *p, const FTSENT *e, const char *name, struct mur_error **err)
{
    _cleanup_buf_ struct buf data = { 0 };
    _cleanup_close_ int fd = open (e->fts_accpath, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || ! fd_read_all (fd, p->left, &data))
        return mur_fail_errno (err, E_IO_003, "cannot pack %s", e->fts_path);
    p->left -= data.len;
    size_t len = data.len;
    build_plan_add (&p->plan, x_asprintf (MCP_TREE_PREFIX "%s", name), buf_steal (&data), len);
    return true;
}

static int
by_name (const FTSENT **a, const FTSENT **b)
{
    return strcmp ((*a)->fts_name, (*b)->fts_name);
}

static bool
is_left_out (const char *name)
{
    return str_eq (name, ".git") || str_eq (name, ".env");
}

static bool
add_tree (struct packing *p, const char *tree, struct mur_error **err)
{
    char *const roots[] = { (char *)(uintptr_t)tree, NULL };
    FTS *walk = fts_open (roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    size_t links = 0;
    bool is_good = walk || mur_fail_errno (err, E_IO_003, "cannot read %s", tree);
    for (FTSENT *e; is_good && (e = fts_read (walk));) {
        if (e->fts_level > 0 && is_left_out (e->fts_name))
            fts_set (walk, e, FTS_SKIP);
        else if (e->fts_info == FTS_F)
            is_good = add_file (p, e, e->fts_path + strlen (tree) + 1, err);
        else
            links += e->fts_info == FTS_SL || e->fts_info == FTS_SLNONE;
    }
    if (walk)
        fts_close (walk);
    if (links)
        strv_printf (p->notes, links == 1 ? "%zu link is left out" : "%zu links are left out",
                     links);
    return is_good;
}

static json_t *
texts_of (const struct strv *v)
{
    json_t *list = json_array ();
    for (size_t i = 0; i < v->len; i++)
        json_array_append_new (list, json_string_lossy (v->items[i], strlen (v->items[i])));
    return list;
}

static json_t *
pinned_json (const struct pack_request *q)
{
    const struct server_source *s = q->source;
    if (s->url)
        return json_pack ("{s:i, s:s, s:s, s:s*, s:s, s:[]}", "format", 1, "source", s->source,
                          "url", s->url, "key_header", q->start->key_header, "revision",
                          MCP_NEWEST_LEGACY, "tools");
    json_t *o =
        json_pack ("{s:i, s:s, s:s, s:s, s:s}", "format", 1, "source", s->source, "interpreter",
                   s->interpreter, "entry", s->entry, "revision", MCP_NEWEST_LEGACY);
    json_t *env = json_object (); /* a key is looked at with, and never packed */
    for (size_t i = 0; i < q->start->env.len; i++) {
        const char *equals = strchr (q->start->env.items[i], '=');
        _cleanup_free_ char *name =
            x_strndup (q->start->env.items[i], (size_t)(equals - q->start->env.items[i]));
        json_set_string (env, name,
                         env_name_is_credential_shaped (name) ? PLACEHOLDER : equals + 1);
    }
    json_object_set_new (o, "flags", texts_of (&q->source->flags));
    json_object_set_new (o, "args", texts_of (&q->start->args));
    json_object_set_new (o, "env", env);
    json_object_set_new (o, "tools", json_array ());
    return o;
}

static bool
check_tools (const json_t *tools, const char *name, struct mur_error **err)
{
    size_t i;
    json_t *tool, *last = NULL;
    json_array_foreach (tools, i, tool)
    {
        _cleanup_free_ char *fault = mcp_definition_fault (tool);
        if (fault)
            return mur_fail (err, E_MCP_005, "server %s: %s", name, fault);
        if (last && str_eq (json_get_string (last, "name"), json_get_string (tool, "name")))
            return mur_fail (err, E_MCP_007, "server %s has two tools called %s", name,
                             json_get_string (tool, "name"));
        last = tool;
    }
    return true;
}

/* What it says of itself, started once. */
static bool
review (const struct pack_request *q, const char *name, json_t *whole, struct mur_error **err)
{
    _cleanup_mcp_pinned_ struct mcp_pinned pinned = { 0 };
    _cleanup_free_ char *text = json_text (whole, JSON_TEXT_ORDERED);
    if (! mcp_pinned_read (&pinned, text, strlen (text), MCP_PINNED_FILE, err))
        return false;
    settle (q->start, name, &pinned, q->source->tree);
    q->start->request.is_unknown = true;
    _cleanup_ (review_closep) struct review *r = review_open (&q->start->request, err);
    json_t *tools = r ? review_tools (r, err) : NULL;
    if (! tools) {
        for (size_t i = 0; i < q->source->notes.len; i++)
            diag_plain_warning ("%s", q->source->notes.items[i]);
        if (err && *err && (*err)->code == E_MCP_009 && q->source->url)
            mur_hint (err,
                      "mur mcp login %s first, or give its key: --key-env NAME of the variable "
                      "that holds it",
                      q->source->url);
        explain_look (err, q->source, q->start);
        return mur_context (err, "%s could not be looked at", q->source->source);
    }
    for (size_t i = 0; i < review_unsendable (r)->len; i++)
        diag_plain_warning ("%s is left out: its x-mcp-header annotations are invalid",
                            review_unsendable (r)->items[i]);
    _cleanup_json_ json_t *said = review_said (r);
    json_object_set_new (whole, "tools", tools);
    json_object_update (whole, said);
    return check_tools (tools, name, err);
}

static char *
manifest_text (const char *name, const char *version, const json_t *whole)
{
    struct yaml_writer w;
    const char *title = json_get_string (json_object_get (whole, "server"), "name");
    _cleanup_free_ char *words =
        x_asprintf ("%zu tools of the MCP server %s",
                    json_array_size (json_object_get (whole, "tools")), title ? title : name);
    _cleanup_free_ char *shown = mcp_text_shown (words);
    yaml_writer_init (&w);
    yaml_add_text (&w, "name", name);
    yaml_add_text (&w, "version", version);
    yaml_add_text (&w, "runtime", "mcp");
    yaml_add_text (&w, "execution", "static");
    yaml_add_text (&w, "description", shown);
    yaml_open_map (&w, "upstream_auth"); /* of the gateway, when its entry has one */
    const char *header = json_get_string (whole, "key_header");
    yaml_add_text (&w, "header", header ? header : "Authorization");
    yaml_add_text (&w, "value", header ? "{key}" : "Bearer {key}");
    yaml_close (&w);
    return yaml_writer_finish (&w);
}

static bool
write_package (const struct pack_request *q, const char *name, const char *version,
               const json_t *whole, struct strv *notes, char **path, struct mur_error **err)
{
    struct packing p = { .left = TREE_BYTES_MAX, .notes = notes };
    char *manifest = manifest_text (name, version, whole);
    char *pinned = json_pretty (whole, JSON_TEXT_ORDERED);
    const struct build_result result = { 0 };
    *path = x_asprintf ("%s/%s-%s.mur.zip", q->source->dir, name, version);
    build_plan_add (&p.plan, x_strdup ("murmur.yaml"), manifest, strlen (manifest));
    build_plan_add (&p.plan, x_strdup (MCP_PINNED_FILE), pinned, strlen (pinned));
    bool is_good = (q->source->url || add_tree (&p, q->source->tree, err)) &&
                   build_plan_write (&p.plan, *path, &result, err);
    build_plan_clear (&p.plan);
    return is_good;
}

static bool
store_package (const char *path, const char *full_name, const char *version, bool is_far_away,
               struct mur_error **err)
{
    _cleanup_package_ struct package *p = package_from_file (path, err);
    _cleanup_stores_ struct stores *stores = p ? stores_new (NULL, err) : NULL;
    if (! stores || ! package_open_zip (p, err))
        return false;
    const struct store_write w = { .name = full_name,
                                   .version = version,
                                   .overwrite = STORE_PUBLISH };
    if (! store_put (&stores->at[STORE_GLOBAL], p, &w, NULL, err))
        return mur_hint (err, "give it another --version, or remove that one from the store");
    if (is_far_away)
        return true;
    _cleanup_free_ char *tree = package_tree_of (p, MCP_TREE_PREFIX, err);
    return tree != NULL;
}

/* --- the whole --- */

static bool
hides_something (const json_t *tools)
{
    _cleanup_strv_ struct strv findings = { 0 };
    size_t i;
    json_t *tool;
    json_array_foreach (tools, i, tool) mcp_definition_findings (tool, tools, &findings);
    for (i = 0; i < findings.len; i++)
        if (strstr (findings.items[i], "hidden characters"))
            return true;
    return false;
}

/* What was found is shown; what nobody can see, and what changed, is asked about. */
static bool
is_accepted (const struct pack_request *q, const json_t *tools, struct mur_error **err)
{
    if (! q->before) {
        server_print_tools (tools);
        if (q->is_accepted || ! hides_something (tools))
            return true;
        if (server_is_agreed ("Some texts hold characters nobody sees. Add it?"))
            return true;
        mur_fail (err, E_MCP_003, "%s: texts of its tools hold hidden characters",
                  q->source->source);
        return mur_hint (err, "look at them above; --accept adds it all the same, with those "
                              "characters shown as U+FFFD to the model");
    }
    if (! server_print_difference (q->before, tools)) {
        out_printf ("its tools are the same\n");
        return true;
    }
    if (q->is_accepted || server_is_agreed ("Accept these changes?"))
        return true;
    mur_fail (err, E_MCP_003, "the changes of %s were not accepted", q->source->source);
    return mur_hint (err, "--accept takes them without a question");
}

bool
server_pack (const struct pack_request *q, char **name, char **stored_version,
             struct mur_error **err)
{
    const char *short_name = q->name ? q->name : q->source->name;
    const char *version = q->version ? q->version : q->source->version;
    _cleanup_free_ char *bare = x_asprintf ("mcp-%s", short_name), *path = NULL;
    _cleanup_free_ char *full = x_asprintf (SCOPE_LOCAL "/%s", bare);
    _cleanup_json_ json_t *whole = pinned_json (q);
    _cleanup_strv_ struct strv notes = { 0 };
    if (! build_check_name (bare, err) || ! version_check_segment (version, err) ||
        ! review (q, short_name, whole, err) ||
        ! is_accepted (q, json_object_get (whole, "tools"), err) ||
        ! write_package (q, bare, version, whole, &notes, &path, err) ||
        ! store_package (path, full, version, q->source->url != NULL, err))
        return false;
    for (size_t i = 0; i < q->source->notes.len; i++)
        diag_note ("%s", q->source->notes.items[i]);
    for (size_t i = 0; i < notes.len; i++)
        diag_note ("%s", notes.items[i]);
    *name = steal_ptr (&full);
    *stored_version = x_strdup (version);
    return true;
}
