/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/package/build_skill.h"
#include "manifest/text/yaml_tree.h"
#include "manifest/text/yaml_write.h"

#include "artifact/names/name.h"
#include "artifact/names/version.h"
#include "artifact/names/wit.h"
#include "artifact/package/build.h"
#include "artifact/package/skill_files.h"
#include "artifact/package/skill_head.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "base/text.h"
#include "manifest/settings/artifact_manifest.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

/* --- the name --- */

static char *
infer_name (const char *source)
{
    _cleanup_free_ char *canonical = realpath (source, NULL);
    const char *last = canonical ? strrchr (canonical, '/') + 1 : source;
    _cleanup_free_ char *text = x_strdup (last);
    str_lower (text);
    if (str_ends (text, ".zip"))
        text[strlen (text) - 4] = '\0';
    struct buf out = { 0 };
    for (const char *at = text; *at; at++) {
        bool is_plain = (*at >= 'a' && *at <= 'z') || isdigit ((unsigned char)*at) || *at == '-';
        if (is_plain || ! out.len || out.data[out.len - 1] != '_')
            buf_putc (&out, is_plain ? *at : '_');
    }
    while (out.len && strchr ("_-", out.data[out.len - 1]))
        buf_truncate (&out, out.len - 1);
    size_t start = out.len ? strspn (out.data, "_-") : 0;
    char *name = out.len > start ? x_strdup (out.data + start) : x_strdup ("skill");
    buf_free (&out);
    return name;
}

static int
by_name (const void *a, const void *b)
{
    return strcmp (((const struct build_entry *)a)->name, ((const struct build_entry *)b)->name);
}

/* --- the manifest --- */

static char *
generated_manifest (const char *summary, const char *name, const char *version)
{
    struct buf out = { 0 };
    buf_puts (&out, "name: ");
    yaml_put_text (&out, name);
    buf_puts (&out, "\nversion: ");
    /* Always quoted: a version that reads like a number must stay text. */
    if (strchr (version, '"'))
        yaml_put_text (&out, version);
    else
        buf_printf (&out, "\"%s\"", version);
    buf_puts (&out, "\nruntime: skill\n");
    if (summary) {
        buf_puts (&out, "description: ");
        yaml_put_text (&out, summary);
        buf_putc (&out, '\n');
    }
    return buf_steal (&out);
}

/* The manifest again with another description, in its place when it had one. */
static char *
with_description (const struct yaml_node *root, const char *summary)
{
    struct yaml_writer w;
    yaml_writer_init (&w);
    bool is_done = false;
    for (uint32_t i = 0; root->kind == YAML_MAP && i < root->len; i++) {
        const char *key = yaml_text (root->pairs[i].key);
        if (! key)
            continue;
        is_done |= strcmp (key, "description") == 0;
        if (strcmp (key, "description") == 0)
            yaml_add_text (&w, key, summary);
        else
            yaml_add_node (&w, key, root->pairs[i].value);
    }
    if (! is_done)
        yaml_add_text (&w, "description", summary);
    return yaml_writer_finish (&w);
}

/* Checks a manifest that came with the skill, and rewrites its description when asked to. */
static bool
take_manifest (const struct skill_request *r, struct build_entry *e, struct mur_error **err)
{
    _cleanup_free_ char *file = x_asprintf ("%s/%s", r->source, e->name);
    _cleanup_ (artifact_manifest_freep) struct artifact_manifest *m =
        artifact_manifest_parse (e->bytes, e->len, file, err);
    if (! m)
        return false;
    if (! str_eq (m->runtime, "skill"))
        return mur_fail (err, E_MAN_003,
                         "%s: runtime: \"%s\"; a skill's manifest says runtime: skill", file,
                         m->runtime);
    if (r->summary) {
        char *text = with_description (m->root, r->summary);
        free (e->bytes);
        e->bytes = text;
        e->len = strlen (text);
    }
    return true;
}

/* --- packing --- */

/* Moves the one file called <name> in any case out of <files>; NULL when absent. Two such files are
 * E-BLD-002. */
static struct build_entry *
find_any_case (struct build_plan *files, const char *name, struct mur_error **err)
{
    struct build_entry *found = NULL;
    for (size_t i = 0; i < files->len; i++) {
        struct build_entry *e = &files->items[i];
        if (! e->name || strcasecmp (e->name, name) != 0)
            continue;
        if (found) {
            mur_fail (err, E_BLD_002, "\"%s\" and \"%s\" would both be packed as %s", found->name,
                      e->name, name);
            return NULL;
        }
        found = e;
    }
    return found;
}

static void
move_entry (struct build_plan *plan, struct build_entry *from, const char *name)
{
    build_plan_add (plan, x_strdup (name), steal_ptr (&from->bytes), from->len);
    free (from->name);
    from->name = NULL;
}

/* A text with a mark or in UTF-16 is packed as UTF-8: the model reads nothing else. */
static void
make_text (struct build_entry *skill)
{
    struct buf text = { skill->bytes, skill->len, skill->len };
    text_form_normalise (&text);
    skill->len = text.len;
    skill->bytes = buf_steal (&text);
}

static bool
plan_skill (const struct skill_request *r, struct build_plan *files, const char *name,
            const char *version, struct build_plan *plan, struct mur_error **err)
{
    _cleanup_error_ struct mur_error *caught = NULL;
    if (files->len)
        qsort (files->items, files->len, sizeof (*files->items), by_name);
    struct build_entry *skill = find_any_case (files, "skill.md", &caught);
    struct build_entry *manifest = find_any_case (files, "murmur.yaml", &caught);
    if (caught)
        return mur_propagate (err, steal_ptr (&caught));
    make_text (skill);
    if (manifest && ! take_manifest (r, manifest, err))
        return false;
    if (manifest) {
        move_entry (plan, manifest, "murmur.yaml");
    } else {
        _cleanup_free_ char *own = skill_head_description (skill->bytes, skill->len);
        char *text = generated_manifest (r->summary ? r->summary : own, name, version);
        build_plan_add (plan, x_strdup ("murmur.yaml"), text, strlen (text));
    }
    move_entry (plan, skill, "skill.md");
    for (size_t i = 0; i < files->len; i++) {
        struct build_entry *e = &files->items[i];
        if (e->name && strcmp (e->name, "murmur-build.json") == 0)
            return mur_fail (err, E_BLD_002, "%s: murmur-build.json is written by the build",
                             r->source);
        if (e->name) {
            _cleanup_free_ char *own = x_strdup (e->name);
            move_entry (plan, e, own);
        }
    }
    return true;
}

bool
build_skill (const struct skill_request *r, struct build_result *result, struct mur_error **err)
{
    _cleanup_free_ char *name = r->name ? x_strdup (r->name) : infer_name (r->source);
    const char *version = r->version ? r->version : "0.1.0";
    if (! build_check_name (name, err) || ! version_check_segment (version, err))
        return false;
    _cleanup_plan_ struct build_plan files = { 0 }, plan = { 0 };
    _cleanup_strv_ struct strv left_out = { 0 };
    if (! skill_files_gather (r->source, &files, &left_out, err) ||
        ! plan_skill (r, &files, name, version, &plan, err))
        return false;
    if (left_out.len) {
        _cleanup_free_ char *names = strv_join (&left_out, ", ");
        diag_warn (DIAG_PLAIN, W_BLD_004,
                   "left out of the package, which holds the files beside SKILL.md: %s", names);
    }
    _cleanup_free_ char *cwd = getcwd (NULL, 0);
    if (! cwd)
        return mur_fail_errno (err, E_IO_003, "cannot name the current folder");
    _cleanup_free_ char *file = x_asprintf ("%s-%s.mur.zip", name, version);
    result->path = build_output_path (cwd, r->output, file, err);
    if (! result->path)
        return false;
    result->level = wit_newest_level ();
    result->has_level = true;
    return build_plan_write (&plan, result->path, result, err);
}
