/* SPDX-License-Identifier: Apache-2.0
 *
 * Each file is read into a struct config of its own by one table-less pass over its tree, then the
 * project's is laid over the global one, key by key with the rule of spec/cli.md 8: "project wins"
 * holds for harmless keys only.
 */
#include "manifest/settings/config_internal.h"
#include "manifest/settings/launcher_keys.h"
#include "manifest/settings/secrets_dir.h"
#include "manifest/text/yaml_tree.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "home/paths.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const char *const floors[] = {
    [CONFIG_FLOOR_UNSET] = "unset",
    [CONFIG_FLOOR_ADVISORY] = "advisory",
    [CONFIG_FLOOR_SCOPED] = "scoped",
    [CONFIG_FLOOR_SEALED] = "sealed",
};

/* Parses "advisory", "scoped" or "sealed". */
static bool
config_floor_parse (const char *text, enum config_floor *floor)
{
    for (int i = CONFIG_FLOOR_ADVISORY; i <= CONFIG_FLOOR_SEALED; i++)
        if (str_eq (text, floors[i])) {
            *floor = (enum config_floor)i;
            return true;
        }
    return false;
}

/* --- one file --- */

/* A file being read: its path for messages. */
struct source_file {
    const char *path;
    bool is_project;
};

static bool
refuse (const struct source_file *f, const struct yaml_node *at, const char *what,
        struct mur_error **err)
{
    return mur_fail (err, E_IO_003, "%s:%u:%u: %s", f->path, at->line, at->column, what);
}

/* A block that may be missing or null. False when it is anything but a map. */
static bool
block (const struct source_file *f, const struct yaml_node *root, const char *key,
       const struct yaml_node **out, struct mur_error **err)
{
    const struct yaml_node *node = yaml_get (root, key);
    *out = node && node->kind == YAML_MAP ? node : NULL;
    if (! node || node->kind == YAML_MAP || node->kind == YAML_NULL)
        return true;
    _cleanup_free_ char *what = x_asprintf ("%s must be a block of keys", key);
    return refuse (f, node, what, err);
}

/* A scalar as text, "" when absent. */
static bool
text_value (const struct source_file *f, const struct yaml_node *map, const char *key, char **out,
            struct mur_error **err)
{
    const struct yaml_node *node = yaml_get (map, key);
    if (node && ! yaml_is_scalar (node)) {
        _cleanup_free_ char *what = x_asprintf ("%s must be a single value", key);
        return refuse (f, node, what, err);
    }
    const char *text = node ? yaml_text (node) : NULL;
    *out = x_strdup (text ? text : "");
    return true;
}

static bool
read_source (const struct source_file *f, const struct yaml_node *item, struct config_source *s,
             struct mur_error **err)
{
    static const char *const removed[] = { "name", "type", "url" };
    if (item->kind != YAML_MAP)
        return refuse (f, item, "an entry of registry.sources must be a block of keys", err);
    s->file = x_strdup (f->path);
    for (size_t i = 0; i < ARRAY_LEN (removed) && ! s->removed_key; i++)
        if (yaml_get (item, removed[i]))
            s->removed_key = x_strdup (removed[i]);
    _cleanup_free_ char *token = NULL;
    if (! text_value (f, item, "repo", &s->repo, err) ||
        ! text_value (f, item, "oci", &s->oci, err) ||
        ! text_value (f, item, "scope", &s->scope, err) ||
        ! text_value (f, item, "token", &token, err))
        return false;
    s->token = *token ? steal_ptr (&token) : NULL;
    return true;
}

/* A list of texts below a block; <what> says so when it is another thing. */
static bool
text_list (const struct source_file *f, const struct yaml_node *list, const char *what,
           struct strv *out, struct mur_error **err)
{
    if (! list || list->kind == YAML_NULL)
        return true;
    if (list->kind != YAML_LIST)
        return refuse (f, list, what, err);
    for (size_t i = 0; i < list->len; i++) {
        const char *text = yaml_text (list->items[i]);
        if (! text)
            return refuse (f, list->items[i], what, err);
        if (! strv_contains (out, text))
            strv_push (out, text);
    }
    return true;
}

static bool
read_registry (const struct source_file *f, const struct yaml_node *root, struct config *c,
               struct mur_error **err)
{
    const struct yaml_node *registry;
    if (! block (f, root, "registry", &registry, err) ||
        ! text_value (f, registry, "index_url", &c->index_url, err))
        return false;
    if (registry && yaml_get (registry, "default"))
        c->default_file = x_strdup (f->path);
    if (registry &&
        ! text_list (f, yaml_get (registry, "plain_http"),
                     "registry.plain_http must be a list of hosts", &c->plain_http, err))
        return false;
    const struct yaml_node *list = registry ? yaml_get (registry, "sources") : NULL;
    if (! list || list->kind == YAML_NULL)
        return true;
    if (list->kind != YAML_LIST)
        return refuse (f, list, "registry.sources must be a list", err);
    c->sources = x_new_array (struct config_source, list->len ? list->len : 1);
    for (size_t i = 0; i < list->len; i++)
        if (! read_source (f, list->items[i], &c->sources[c->source_count++], err))
            return false;
    return true;
}

static struct secret *
secret_of (const char *text)
{
    return secret_new (text, strlen (text));
}

static bool
read_inference (const struct source_file *f, const struct yaml_node *root, struct config *c,
                struct mur_error **err)
{
    const struct yaml_node *inference;
    if (! block (f, root, "inference", &inference, err) ||
        ! text_value (f, inference, "provider", &c->provider, err) ||
        ! text_value (f, inference, "model", &c->model, err) ||
        ! text_value (f, inference, "endpoint", &c->endpoint, err))
        return false;
    char *key = NULL;
    if (! text_value (f, inference, "api_key", &key, err))
        return false;
    c->api_key = *key ? secret_of (key) : NULL;
    secret_wipe (key, strlen (key));
    free (key);
    return true;
}

static bool
read_credentials (const struct source_file *f, const struct yaml_node *root, struct config *c,
                  struct mur_error **err)
{
    const struct yaml_node *map;
    if (! block (f, root, "credentials", &map, err))
        return false;
    c->credentials = x_new_array (struct config_credential, map && map->len ? map->len : 1);
    for (size_t i = 0; map && i < map->len; i++) {
        const struct yaml_node *value = map->pairs[i].value;
        const char *name = yaml_text (map->pairs[i].key);
        if (! name || ! yaml_is_scalar (value))
            return refuse (f, value, "an entry of credentials must be a name and a value", err);
        if (! yaml_text (value))
            continue;
        c->credentials[c->credential_count++] =
            (struct config_credential){ x_strdup (name), secret_of (yaml_text (value)) };
    }
    return true;
}

static bool
read_beta (const struct source_file *f, const struct yaml_node *root, struct config *c,
           struct mur_error **err)
{
    const struct yaml_node *beta;
    if (! block (f, root, "beta", &beta, err))
        return false;
    return text_list (f, beta ? yaml_get (beta, "enabled") : NULL,
                      "beta.enabled must be a list of names", &c->beta, err);
}

static bool
read_observability (const struct source_file *f, const struct yaml_node *root, struct config *c,
                    struct mur_error **err)
{
    const struct yaml_node *observability = NULL, *locked;
    if (! block (f, root, "observability", &observability, err))
        return false;
    locked = observability ? yaml_get (observability, "locked") : NULL;
    c->observability_is_set = locked != NULL;
    if (locked && ! yaml_as_bool (locked, &c->is_observability_locked))
        return refuse (f, locked, "observability.locked must be true or false", err);
    return true;
}

static bool
read_limits (const struct source_file *f, const struct yaml_node *root, struct config *c,
             struct mur_error **err)
{
    const struct yaml_node *spend, *resources;
    const struct yaml_node *floor = yaml_get (root, "containment");
    if (floor && floor->kind != YAML_NULL &&
        (! yaml_text (floor) || ! config_floor_parse (yaml_text (floor), &c->containment)))
        return refuse (f, floor, "containment must be advisory, scoped or sealed", err);
    if (! block (f, root, "spend", &spend, err) || ! block (f, root, "resources", &resources, err))
        return false;
    const struct yaml_node *tokens = spend ? yaml_get (spend, "machine_tokens_per_day") : NULL;
    if (tokens && tokens->kind != YAML_NULL &&
        (! yaml_as_u64 (tokens, &c->machine_tokens_per_day) || c->machine_tokens_per_day == 0))
        return refuse (f, tokens, "spend.machine_tokens_per_day must be a whole number above 0",
                       err);
    const struct yaml_node *cgroup = resources ? yaml_get (resources, "cgroup") : NULL;
    const char *word = cgroup ? yaml_text (cgroup) : NULL;
    if (word && ! str_eq (word, "required") && ! str_eq (word, "optional"))
        return refuse (f, cgroup, "resources.cgroup must be required or optional", err);
    c->cgroup_is_optional = str_eq (word, "optional");
    c->cgroup_is_set = word != NULL;
    const struct yaml_node *unconfined = yaml_get (root, "unconfined");
    c->unconfined_is_set = unconfined != NULL;
    if (unconfined && ! yaml_as_bool (unconfined, &c->is_unconfined))
        return refuse (f, unconfined, "unconfined must be true or false", err);
    return read_observability (f, root, c, err);
}

struct yaml_node *
config_file_tree (struct arena *arena, const char *path, struct mur_error **err)
{
    _cleanup_error_ struct mur_error *caught = NULL;
    struct yaml_node *root = yaml_read_file (arena, path, E_IO_003, &caught);
    if (! root && caught->code == E_IO_001)
        root = yaml_parse (arena, "", 0, path, E_IO_003, err);
    else if (! root) {
        caught->code = E_IO_003;
        mur_propagate (err, steal_ptr (&caught));
    } else if (root->kind == YAML_NULL)
        root = yaml_parse (arena, "", 0, path, E_IO_003, err);
    else if (root->kind != YAML_MAP) {
        mur_fail (err, E_IO_003, "%s: must be a block of keys", path);
        return NULL;
    }
    return root;
}

static struct config *
read_one (const char *path, bool is_project, struct mur_error **err)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct source_file f = { path, is_project };
    _cleanup_config_ struct config *c = x_new0 (struct config);
    const struct yaml_node *root = config_file_tree (arena, path, err);
    if (! root || ! config_trust_read (root, f.path, &c->trust, err) ||
        ! read_registry (&f, root, c, err) || ! read_inference (&f, root, c, err) ||
        ! read_credentials (&f, root, c, err) || ! read_beta (&f, root, c, err) ||
        ! read_limits (&f, root, c, err))
        return NULL;
    return steal_ptr (&c);
}

/* --- merging --- */

static void
free_source (struct config_source *s)
{
    free (s->repo);
    free (s->oci);
    free (s->scope);
    free (s->token);
    free (s->removed_key);
    free (s->file);
}

/* The scope a source serves: its own word for it, else what stands before the slash of a repository
 * and after the last one of a registry's place. Length 0 when it is unusable. */
static const char *
scope_of (const struct config_source *s, size_t *len)
{
    const char *slash = s->oci[0] ? strrchr (s->oci, '/') : strchr (s->repo, '/');
    if (s->scope[0] || s->oci[0]) {
        const char *scope = s->scope[0] ? s->scope : slash ? slash + 1 : "";
        *len = strlen (scope);
        return scope;
    }
    *len = slash ? (size_t)(slash - s->repo) : 0;
    return s->repo;
}

/* Takes one source of the project over, in place of the global one of the same scope. */
static void
merge_source (struct config *to, struct config_source *s)
{
    size_t len, other_len;
    const char *scope = scope_of (s, &len);
    for (size_t i = 0; len && i < to->source_count; i++) {
        struct config_source *other = &to->sources[i];
        const char *other_scope = scope_of (other, &other_len);
        if (other_len == len && strncmp (other_scope, scope, len) == 0 &&
            ! str_eq (other->file, s->file)) {
            free_source (other);
            *other = *s;
            *s = (struct config_source){ 0 };
            return;
        }
    }
    to->sources = x_reallocarray (to->sources, to->source_count + 1, sizeof (struct config_source));
    to->sources[to->source_count++] = *s;
    *s = (struct config_source){ 0 };
}

static void
merge_text (char **to, char **from)
{
    if (! **from)
        return;
    free (*to);
    *to = steal_ptr (from);
}

static bool
is_literal (const struct secret *s)
{
    return s && ! str_starts (secret_reveal (s), "${");
}

/* Secrets and the cgroup rule of a project are not taken: whoever wrote a project must not choose
 * them for its user. */
static void
warn_about_project (const struct config *project, const char *path)
{
    if (is_literal (project->api_key))
        diag_plain_warning ("%s: inference.api_key is only read from ~/.murmur/config.yaml; the "
                            "project's is ignored",
                            path);
    if (project->credential_count) {
        _cleanup_strv_ struct strv names = { 0 };
        for (size_t i = 0; i < project->credential_count; i++)
            strv_push (&names, project->credentials[i].name);
        _cleanup_free_ char *list = strv_join (&names, ", ");
        diag_plain_warning ("%s: credentials are only read from ~/.murmur/config.yaml; ignored: %s",
                            path, list);
    }
    if (project->observability_is_set)
        diag_plain_warning ("%s: observability.locked is only read from ~/.murmur/config.yaml; the "
                            "project's is ignored",
                            path);
    if (project->unconfined_is_set)
        diag_plain_warning (
            "%s: unconfined is only read from ~/.murmur/config.yaml; the project's is "
            "ignored",
            path);
    if (project->trust.count)
        diag_plain_warning ("%s: trust.require is only read from ~/.murmur/config.yaml; the "
                            "project's is ignored",
                            path);
    if (project->plain_http.len)
        diag_plain_warning ("%s: registry.plain_http is only read from ~/.murmur/config.yaml; the "
                            "project's is ignored",
                            path);
    if (project->cgroup_is_set)
        diag_plain_warning ("%s: resources.cgroup is only read from ~/.murmur/config.yaml; the "
                            "project's is ignored",
                            path);
}

static void
merge (struct config *c, struct config *project)
{
    merge_text (&c->index_url, &project->index_url);
    merge_text (&c->provider, &project->provider);
    merge_text (&c->model, &project->model);
    merge_text (&c->endpoint, &project->endpoint);
    if (! c->default_file)
        c->default_file = steal_ptr (&project->default_file);
    for (size_t i = 0; i < project->source_count; i++)
        merge_source (c, &project->sources[i]);
    for (size_t i = 0; i < project->beta.len; i++)
        if (! strv_contains (&c->beta, project->beta.items[i]))
            strv_push (&c->beta, project->beta.items[i]);
    if (project->containment > c->containment)
        c->containment = project->containment;
    uint64_t tokens = project->machine_tokens_per_day;
    if (tokens && (! c->machine_tokens_per_day || tokens < c->machine_tokens_per_day))
        c->machine_tokens_per_day = tokens;
}

struct config *
config_none (void)
{
    struct config *c = x_new0 (struct config);
    char **const texts[] = { &c->global_path, &c->index_url, &c->provider, &c->model,
                             &c->endpoint };
    for (size_t i = 0; i < ARRAY_LEN (texts); i++)
        *texts[i] = x_strdup ("");
    return c;
}

struct config *
config_load_global (struct mur_error **err)
{
    _cleanup_free_ char *path = home_path_below ("config.yaml", err);
    struct config *c = path ? read_one (path, false, err) : NULL;
    if (c)
        c->global_path = steal_ptr (&path);
    return c;
}

/* In the home directory itself both names mean one file. */
static bool
is_same_file (const char *a, const char *b)
{
    struct stat first, second;
    return str_eq (a, b) || (stat (a, &first) == 0 && stat (b, &second) == 0 &&
                             first.st_dev == second.st_dev && first.st_ino == second.st_ino);
}

char *
config_project_path (struct mur_error **err)
{
    _cleanup_free_ char *cwd = getcwd (NULL, 0);
    if (! cwd)
        return mur_fail_errno (err, E_IO_003, "cannot name the current directory"), NULL;
    return x_asprintf ("%s/.murmur/config.yaml", str_eq (cwd, "/") ? "" : cwd);
}

struct config *
config_load (struct mur_error **err)
{
    _cleanup_config_ struct config *c = config_load_global (err);
    if (! c)
        return NULL;
    c->project_path = config_project_path (err);
    if (! c->project_path)
        return NULL;
    if (is_same_file (c->global_path, c->project_path))
        return steal_ptr (&c);
    _cleanup_config_ struct config *project = read_one (c->project_path, true, err);
    if (! project)
        return NULL;
    warn_about_project (project, c->project_path);
    merge (c, project);
    return steal_ptr (&c);
}

void
config_free (struct config *c)
{
    if (! c)
        return;
    char *texts[] = { c->global_path, c->project_path, c->index_url, c->default_file,
                      c->provider,    c->model,        c->endpoint };
    for (size_t i = 0; i < ARRAY_LEN (texts); i++)
        free (texts[i]);
    for (size_t i = 0; i < c->source_count; i++)
        free_source (&c->sources[i]);
    for (size_t i = 0; i < c->credential_count; i++) {
        free (c->credentials[i].name);
        secret_free (c->credentials[i].value);
    }
    free (c->sources);
    free (c->credentials);
    secret_free (c->api_key);
    strv_free (&c->beta);
    strv_free (&c->plain_http);
    config_trust_clear (&c->trust);
    free (c);
}

const struct secret *
config_credential (const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->credential_count; i++)
        if (str_eq (c->credentials[i].name, name))
            return c->credentials[i].value;
    return NULL;
}

struct secret *
config_credential_copy (const void *config, const char *name)
{
    struct secret *handed_over = launcher_keys_ask (name);
    if (! handed_over)
        handed_over = secrets_dir_ask (name);
    if (handed_over)
        return handed_over;
    const struct secret *value = config_credential (config, name);
    return value ? secret_copy (value) : NULL;
}

struct secret *
config_source_token (const struct config_source *s)
{
    if (! s->token)
        return NULL;
    size_t len = strlen (s->token);
    bool is_reference = str_starts (s->token, "${") && s->token[len - 1] == '}';
    _cleanup_free_ char *name =
        is_reference ? x_strndup (s->token + 2, len - 3) : x_strdup (s->token);
    const char *value = getenv (name);
    if (value && *value)
        return secret_new (value, strlen (value));
    return is_reference ? NULL : secret_new (s->token, len);
}
