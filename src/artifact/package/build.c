/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning, checking and writing an artifact. Lints are in build_lint.c, skills in build_skill.c.
 */
#include "artifact/package/build.h"
#include "artifact/names/wit_reader.h"

#include "artifact/names/name.h"
#include "artifact/names/version.h"
#include "artifact/package/build_lint.h"
#include "artifact/package/package.h"
#include "base/alloc.h"
#include "base/fdio.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "manifest/settings/artifact_manifest.h"
#include "manifest/settings/literals.h"
#include "manifest/text/yaml.h"
#include "manifest/text/yaml_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static const char level_entry[] = "murmur-build.json";
static const char manifest_entry[] = "murmur.yaml";

void
build_result_clear (struct build_result *r)
{
    free (r->path);
    *r = (struct build_result){ 0 };
}

void
build_plan_clear (struct build_plan *p)
{
    for (size_t i = 0; i < p->len; i++) {
        free (p->items[i].name);
        free (p->items[i].bytes);
    }
    free (p->items);
    *p = (struct build_plan){ 0 };
}

void
build_plan_add (struct build_plan *p, char *name, char *bytes, size_t len)
{
    x_grow (p->items, p->len, p->cap);
    p->items[p->len++] = (struct build_entry){ .name = name, .bytes = bytes, .len = len };
}

/* --- output --- */

static char *
join (const char *dir, const char *name)
{
    size_t len = strlen (dir);
    return x_asprintf (len && dir[len - 1] == '/' ? "%s%s" : "%s/%s", dir, name);
}

char *
build_output_path (const char *dir, const char *output, const char *file, struct mur_error **err)
{
    struct stat st;
    if (! output)
        return join (dir, file);
    if (stat (output, &st) == 0 && S_ISDIR (st.st_mode))
        return join (output, file);
    if (str_ends (output, ".mur.zip"))
        return x_strdup (output);
    mur_fail (err, E_IO_003, "output \"%s\" is neither a folder nor ends in .mur.zip", output);
    return NULL;
}

static bool
make_parents (const char *path, struct mur_error **err)
{
    _cleanup_free_ char *at = x_strdup (path);
    for (char *slash = strchr (at + 1, '/'); slash; slash = strchr (slash + 1, '/')) {
        *slash = '\0';
        if (mkdir (at, 0777) != 0 && errno != EEXIST)
            return mur_fail_errno (err, E_IO_003, "cannot create %s", at);
        *slash = '/';
    }
    return true;
}

bool
build_plan_write (struct build_plan *p, const char *path, const struct build_result *result,
                  struct mur_error **err)
{
    if (result->has_level) {
        char *text = x_asprintf ("{\"built_at_level\":%u}\n", result->level);
        build_plan_add (p, x_strdup (level_entry), text, strlen (text));
    }
    _cleanup_free_ struct zip_source *sources = x_new_array (struct zip_source, p->len);
    for (size_t i = 0; i < p->len; i++)
        sources[i] = (struct zip_source){ p->items[i].name, p->items[i].bytes, p->items[i].len };
    _cleanup_buf_ struct buf archive = { 0 };
    return zip_write (sources, p->len, &archive, err) && make_parents (path, err) &&
           fs_replace_path (path, archive.data, archive.len, 0644, false, err);
}

/* --- names --- */

bool
build_check_name (const char *name, struct mur_error **err)
{
    _cleanup_free_ char *why = name_part_problem (name, strlen (name));
    if (! why)
        return true;
    mur_fail (err, E_BLD_001, "invalid artifact name \"%s\": it %s", name, why);
    if (strchr (name, '/'))
        mur_hint (err,
                  "drop the scope here: it belongs to the source the artifact is published from");
    return false;
}

/* --- planning --- */

struct planning {
    const char *source;
    char *output;      /* canonical, or NULL while it does not exist */
    struct strv paths; /* normalised source paths already planned */
    struct build_plan plan;
    struct strv redundant; /* declarations that name a filled reserved slot */
};

/* Why a declaration may not be packed, or NULL. Static. */
static const char *
declaration_problem (const char *declared)
{
    if (declared[0] == '/' || declared[0] == '\\')
        return "it is an absolute path";
    if (declared[0] && declared[1] == ':')
        return "it is an absolute path";
    for (const char *at = declared; *at;) {
        size_t len = strcspn (at, "/\\");
        if (len == 2 && at[0] == '.' && at[1] == '.')
            return "it leaves the folder through \"..\"";
        at += len + (at[len] != '\0');
    }
    return NULL;
}

/* The declaration without empty and "." components; '\' becomes '/' when <for_archive>. */
static char *
normalised (const char *declared, bool for_archive)
{
    struct buf out = { 0 };
    const char *separators = for_archive ? "/\\" : "/";
    for (const char *at = declared; *at;) {
        size_t len = strcspn (at, separators);
        if (len > 0 && ! (len == 1 && at[0] == '.')) {
            if (out.len)
                buf_putc (&out, '/');
            buf_append (&out, at, len);
        }
        at += len + (at[len] != '\0');
    }
    return buf_steal (&out);
}

static bool
read_declared (const struct planning *p, const char *declared, const char *relative,
               struct buf *bytes, struct mur_error **err)
{
    _cleanup_free_ char *path = join (p->source, relative);
    struct stat st;
    if (lstat (path, &st) != 0)
        return mur_fail_errno (err, E_IO_003, "requires_files names \"%s\", which is not in %s",
                               declared, p->source);
    if (S_ISLNK (st.st_mode))
        return mur_fail (
            err, E_BLD_002,
            "requires_files names \"%s\", which is a symbolic link; links are not packed",
            declared);
    if (! S_ISREG (st.st_mode))
        return mur_fail (err, E_IO_003, "requires_files names \"%s\", which is %s, not a file",
                         declared, S_ISDIR (st.st_mode) ? "a folder" : "no regular file");
    if ((uint64_t)st.st_size > PACKAGE_FILE_MAX)
        return mur_fail (err, E_IO_003, "requires_files names \"%s\": larger than %llu bytes",
                         declared, PACKAGE_FILE_MAX);
    _cleanup_close_ int fd = open (path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || ! fd_read_all (fd, PACKAGE_FILE_MAX, bytes))
        return mur_fail_errno (err, E_IO_003, "cannot read %s", path);
    return true;
}

static bool
is_output (const struct planning *p, const char *relative)
{
    _cleanup_free_ char *path = join (p->source, relative);
    _cleanup_free_ char *canonical = realpath (path, NULL);
    return p->output && str_eq (p->output, canonical);
}

static bool
collides (const struct planning *p, const char *name)
{
    for (size_t i = 0; i < p->plan.len; i++)
        if (strcmp (p->plan.items[i].name, name) == 0)
            return true;
    return false;
}

static bool
plan_declared (struct planning *p, const char *declared, struct mur_error **err)
{
    const char *why = declaration_problem (declared);
    if (why)
        return mur_fail (err, E_BLD_002, "requires_files names \"%s\": %s", declared, why);
    _cleanup_free_ char *relative = normalised (declared, false);
    _cleanup_free_ char *name = normalised (declared, true);
    if (strcmp (name, level_entry) == 0)
        return mur_fail (err, E_BLD_002, "requires_files names \"%s\": %s is written by the build",
                         declared, level_entry);
    _cleanup_buf_ struct buf bytes = { 0 };
    if (! read_declared (p, declared, relative, &bytes, err))
        return false;
    if (strv_contains (&p->paths, relative)) {
        if (strcmp (name, manifest_entry) == 0 || strcmp (name, "capsule.wasm") == 0)
            strv_push (&p->redundant, declared);
        return true;
    }
    if (is_output (p, relative))
        return true;
    if (collides (p, name))
        return mur_fail (err, E_BLD_002,
                         "requires_files names \"%s\": another file is packed as \"%s\" already",
                         declared, name);
    strv_push (&p->paths, relative);
    size_t len = bytes.len;
    build_plan_add (&p->plan, steal_ptr (&name), buf_steal (&bytes), len);
    return true;
}

static bool
plan_all (struct planning *p, const struct artifact_manifest *m, struct mur_error **err)
{
    _cleanup_free_ char *path = join (p->source, manifest_entry);
    _cleanup_buf_ struct buf text = { 0 };
    if (! yaml_read_text (path, E_MAN_002, &text, err))
        return false;
    strv_push (&p->paths, manifest_entry);
    size_t len = text.len;
    build_plan_add (&p->plan, x_strdup (manifest_entry), buf_steal (&text), len);
    for (size_t i = 0; i < m->requires_files.len; i++)
        if (! plan_declared (p, m->requires_files.items[i], err))
            return false;
    return true;
}

/* --- the payload --- */

static bool
check_blocks (const struct artifact_manifest *m, struct mur_error **err)
{
    if (m->inference_auth) {
        mur_fail (err, E_BLD_004, "%s: inference_auth is retired", m->file);
        return mur_hint (err, "rename it to upstream_auth");
    }
    const struct model_limits *models;
    size_t count;
    return artifact_manifest_models (m, E_BLD_005, &models, &count, err);
}

/* The planned component, or NULL for packagings that have none. */
static bool
pick_component (const struct planning *p, const struct artifact_manifest *m,
                const struct build_entry **component, struct mur_error **err)
{
    *component = NULL;
    if (m->packaging != PACKAGING_WASM)
        return true;
    _cleanup_free_ const char **names = x_new_array (const char *, p->plan.len);
    for (size_t i = 0; i < p->plan.len; i++)
        names[i] = p->plan.items[i].name;
    int picked = package_pick_root_wasm (names, p->plan.len, E_BLD_003, m->name, err);
    if (picked < 0 && yaml_get (m->root, "inference"))
        mur_hint (err, "an agent has no component of its own: add the line execution: static");
    else if (picked < 0)
        mur_hint (err, "name exactly one root *.wasm in requires_files, or call it capsule.wasm");
    else
        *component = &p->plan.items[picked];
    return picked >= 0;
}

static void
find_level (const struct build_entry *component, struct build_result *result)
{
    _cleanup_contracts_ struct wit_contracts contracts = { 0 };
    if (component)
        wit_read (component->bytes, component->len, &contracts);
    result->level = wit_newest_fit (&contracts);
    result->has_level = result->level > 0;
}

static void
lint (const struct planning *p, const struct artifact_manifest *m)
{
    build_lint_redundant (&p->redundant);
    build_lint_shadowed (&p->plan);
    if (m->packaging != PACKAGING_STATIC && ! str_eq (m->runtime, "skill"))
        build_lint_inputs (&p->plan);
}

static bool
build_planned (struct planning *p, const struct artifact_manifest *m, struct build_result *result,
               struct mur_error **err)
{
    if (! plan_all (p, m, err))
        return false;
    lint (p, m);
    const struct build_entry *component;
    if (! check_blocks (m, err) || ! pick_component (p, m, &component, err))
        return false;
    find_level (component, result);
    return build_plan_write (&p->plan, result->path, result, err);
}

bool
build_artifact (const char *source, const char *output, struct build_result *result,
                struct mur_error **err)
{
    _cleanup_free_ char *path = join (source, manifest_entry);
    _cleanup_ (artifact_manifest_freep) struct artifact_manifest *m =
        artifact_manifest_read (path, err);
    if (! m || ! build_check_name (m->name, err) || ! version_check_segment (m->version, err))
        return false;
    artifact_manifest_warn_literals (m->root);
    _cleanup_free_ char *file = x_asprintf ("%s-%s.mur.zip", m->name, m->version);
    result->path = build_output_path (source, output, file, err);
    if (! result->path)
        return false;
    struct planning p = { .source = source, .output = realpath (result->path, NULL) };
    bool ok = build_planned (&p, m, result, err);
    free (p.output);
    strv_free (&p.paths);
    strv_free (&p.redundant);
    build_plan_clear (&p.plan);
    return ok;
}
