/* SPDX-License-Identifier: Apache-2.0
 *
 * Staging steps 17 to 19 and 22: the work folder, the session's own directories, the files below
 * tools/ (spec/session.md 3.1, 3.2).
 *
 * Callers: stage.c. Always true: the runtime creates nothing inside the work folder; every write
 * below runtime/ walks from a held descriptor.
 */
#include "base/alloc.h"
#include "session/commands/native.h"
#include "session/commands/shell.h"
#include "session/state/provided.h"
#include "session/state/session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* --- the work folder --- */

static bool
create_default_work_dir (struct session *s, struct mur_error **err)
{
    _cleanup_free_ char *parent = x_asprintf ("%s/workdir", s->request->manifest_dir);
    if (mkdir (parent, 0777) != 0 && errno != EEXIST)
        return mur_fail_errno (err, E_IO_003, "cannot create %s", parent);
    s->work_path = x_asprintf ("%s/%s", parent, s->id.text);
    if (mkdir (s->work_path, 0777) != 0)
        return mur_fail_errno (err, E_IO_003, "cannot create the work folder %s", s->work_path);
    return true;
}

/* The launcher that names a device and inode gets exactly that directory or nothing. */
static bool
check_identity (const struct session *s, int fd, struct mur_error **err)
{
    struct stat st;
    if (! s->request->has_workdir_identity)
        return true;
    if (fstat (fd, &st) != 0)
        return mur_fail_errno (err, E_IO_003, "cannot read %s", s->work_path);
    if (st.st_dev == s->request->workdir_dev && st.st_ino == s->request->workdir_ino)
        return true;
    return mur_fail (
        err, E_RUN_051, "--workdir %s is %llu:%llu, the parent's directory is %llu:%llu",
        s->work_path, (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
        (unsigned long long)s->request->workdir_dev, (unsigned long long)s->request->workdir_ino);
}

/* An exported root that leads out of the work folder now would be refused to every reader: better
 * said at launch. */
static bool
check_export_root (const struct session *s, const char *root, const char *key,
                   struct mur_error **err)
{
    _cleanup_free_ char *written = x_asprintf ("%s/%s", s->request->work_root, root);
    _cleanup_free_ char *real = fs_canonical_path (written, err);
    if (! real)
        return false;
    if (fs_path_is_within (real, s->request->work_root))
        return true;
    capsule_manifest_fail (s->manifest, err, E_CAP_007, key, "%s resolves to %s, outside %s", root,
                           real, s->request->work_root);
    return mur_hint (err, "remove the link, or export a folder of the work folder");
}

static bool
check_export_roots (const struct session *s, struct mur_error **err)
{
    const struct exports *e = s->manifest->exports;
    return ! e ||
           ((! e->files || check_export_root (s, e->files->root, "exports.files.root", err)) &&
            (! e->peer_files ||
             check_export_root (s, e->peer_files->root, "exports.peer_files.root", err)));
}

bool
stage_work_dir (struct session *s, struct mur_error **err)
{
    if (! check_export_roots (s, err))
        return false;
    if (s->request->workdir)
        s->work_path = x_strdup (s->request->work_root);
    else if (! create_default_work_dir (s, err))
        return false;
    int fd = open (s->work_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return mur_fail_errno (err, E_IO_003, "the work folder %s", s->work_path);
    s->work = fs_root_new (fd, s->work_path, s->latch, false);
    return check_identity (s, fd, err);
}

/* --- runtime and records directories --- */

static bool
needs_hooks_dir (const struct session *s)
{
    for (size_t i = 0; i < s->artifact_count; i++)
        if (s->artifacts[i].grant->opens_records_hooks)
            return true;
    return false;
}

bool
stage_session_dirs (struct session *s, struct mur_error **err)
{
    if (! home_session_create (&s->dirs, s->id.text, s->request->work_root, err))
        return false;
    s->has_dirs = true;
    s->runtime =
        fs_root_new (steal_fd (&s->dirs.runtime_fd), s->dirs.runtime_path, s->latch, false);
    s->records = fs_root_new (steal_fd (&s->dirs.records_fd), s->dirs.records_path, s->latch, true);
    if (needs_hooks_dir (s) && ! fs_make_dirs (s->records, "hooks", 0700, true, err))
        return false;
    /* A script without artifacts has no tools; what it pulls later makes the folder with it. */
    bool has_tools = s->manifest->inference || s->artifact_count > 0;
    return ! has_tools || fs_make_dirs (s->runtime, "tools", 0777, false, err);
}

/* --- tools/ --- */

static bool
write_tool_file (struct session *s, const char *tool, const char *file, const void *data,
                 size_t len, struct mur_error **err)
{
    _cleanup_free_ char *dir = x_asprintf ("tools/%s", tool);
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, file);
    return fs_make_dirs (s->runtime, dir, 0777, false, err) &&
           fs_create (s->runtime, path, data, len, 0666, false, err);
}

static bool
write_provided (struct session *s, const char *name, const char *description,
                const char *parameters, struct mur_error **err)
{
    struct yaml_writer w;
    yaml_writer_init (&w);
    yaml_add_text (&w, "name", name);
    yaml_add_text (&w, "version", "0.0.0");
    yaml_add_text (&w, "runtime", "tool");
    yaml_add_text (&w, "implementation", "native");
    yaml_add_text (&w, "description", description);
    yaml_add_text (&w, "input_schema", parameters);
    _cleanup_free_ char *text = yaml_writer_finish (&w);
    return write_tool_file (s, name, "murmur.yaml", text, strlen (text), err);
}

bool
stage_artifact_files (struct session *s, struct staged_artifact *a, struct mur_error **err)
{
    return write_tool_file (s, a->tool_name, "murmur.yaml", a->manifest_text, a->manifest_len,
                            err) &&
           (a->role != ROLE_SKILL || write_tool_file (s, a->tool_name, "skill.md",
                                                      a->skill_text.data, a->skill_text.len, err));
}

bool
stage_tool_files (struct session *s, struct mur_error **err)
{
    for (size_t i = 0; i < s->artifact_count; i++)
        if (! stage_artifact_files (s, &s->artifacts[i], err))
            return false;
    if (! stage_native_tools (s, err))
        return false;
    for (size_t i = 0; i < s->policy->shell_allow.len; i++) {
        const char *name = s->policy->shell_allow.items[i];
        if (shell_is_offered (s, name) &&
            ! write_provided (s, name, shell_description (s, name), shell_parameters, err))
            return false;
    }
    for (size_t i = 0; i < builtin_tool_count; i++) {
        const struct builtin_tool *tool = &builtin_tools[i];
        if (tool->exists (s) &&
            ! write_provided (s, tool->name, tool->description, tool->parameters, err))
            return false;
    }
    return true;
}

bool
stage_manifest_copy (struct session *s, struct mur_error **err)
{
    const struct stage_request *r = s->request;
    if (! r->manifest_name)
        return true;
    _cleanup_buf_ struct buf copy = { 0 };
    capsule_manifest_mask (s->manifest, r->manifest_text, r->manifest_len, &copy);
    return fs_create (s->runtime, r->manifest_name, copy.data, copy.len, r->manifest_mode & 0777,
                      true, err);
}
