/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/package/skill_files.h"

#include "artifact/package/package.h"
#include "base/alloc.h"
#include "base/fdio.h"
#include "fs/paths.h"
#include "fs/root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define SKILL_FILES_MAX 10000

/* Whether a file's name, of any case, is SKILL.md. */
static bool
skill_file_is_text (const char *name)
{
    return strcasecmp (name, "skill.md") == 0;
}

static bool
check_count (const struct build_plan *files, const char *source, struct mur_error **err)
{
    return files->len < SKILL_FILES_MAX ||
           mur_fail (err, E_IO_003, "%s: more than %d files", source, SKILL_FILES_MAX);
}

static bool
has_skill (const struct build_plan *files)
{
    for (size_t i = 0; i < files->len; i++)
        if (skill_file_is_text (files->items[i].name))
            return true;
    return false;
}

static bool
fail_without_skill (const char *source, const struct strv *found, bool is_zip,
                    struct mur_error **err)
{
    mur_fail (err, E_IO_001, "%s: no SKILL.md in it", source);
    if (! found->len)
        return mur_hint (err, "a skill is a folder, or a zip of one, with a file SKILL.md");
    _cleanup_free_ char *names = strv_join (found, ", ");
    return mur_hint (err, "there is one in %s: %sname %s", names, is_zip ? "unpack it and " : "",
                     found->len > 1 ? "one of them" : "that folder");
}

static void
note_left_out (struct strv *left_out, const char *name, const char *suffix)
{
    _cleanup_free_ char *shown = x_asprintf ("%s%s", name, suffix);
    if (! strv_contains (left_out, shown))
        strv_push (left_out, shown);
}

/* --- a folder --- */

static bool
take_file (const char *source, int dir_fd, const char *name, struct build_plan *files,
           struct mur_error **err)
{
    _cleanup_close_ int fd = openat (dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    _cleanup_buf_ struct buf bytes = { 0 };
    if (fd < 0 || fstat (fd, &st) != 0)
        return mur_fail_errno (err, E_IO_003, "cannot read %s/%s", source, name);
    if ((uint64_t)st.st_size > PACKAGE_FILE_MAX)
        return mur_fail (err, E_IO_003, "%s/%s is larger than %llu bytes", source, name,
                         PACKAGE_FILE_MAX);
    if (! fd_read_all (fd, PACKAGE_FILE_MAX, &bytes))
        return mur_fail_errno (err, E_IO_003, "cannot read %s/%s", source, name);
    size_t len = bytes.len;
    build_plan_add (files, x_strdup (name), buf_steal (&bytes), len);
    return check_count (files, source, err);
}

/* Whether the folder <name> holds a SKILL.md of its own. */
static bool
folder_has_skill (int dir_fd, const char *name)
{
    int fd = openat (dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_closedir_ DIR *d = fd < 0 ? NULL : fdopendir (fd);
    for (struct dirent *e; d && (e = readdir (d));)
        if (skill_file_is_text (e->d_name))
            return true;
    return false;
}

static bool
gather_dir (const char *source, int dir_fd, struct build_plan *files, struct strv *left_out,
            struct mur_error **err)
{
    _cleanup_closedir_ DIR *d = fdopendir (dir_fd);
    _cleanup_strv_ struct strv elsewhere = { 0 };
    if (! d)
        return mur_fail_errno (err, E_IO_003, "cannot read %s", source);
    for (struct dirent *e; (e = readdir (d));) {
        struct stat st;
        bool is_own = strcmp (e->d_name, ".") == 0 || strcmp (e->d_name, "..") == 0;
        if (is_own || fstatat (dirfd (d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (S_ISREG (st.st_mode) && ! take_file (source, dirfd (d), e->d_name, files, err))
            return false;
        if (S_ISDIR (st.st_mode)) {
            note_left_out (left_out, e->d_name, "/");
            if (folder_has_skill (dirfd (d), e->d_name))
                strv_printf (&elsewhere, "%s/%s", source, e->d_name);
        } else if (! S_ISREG (st.st_mode)) {
            note_left_out (left_out, e->d_name, S_ISLNK (st.st_mode) ? " (a link)" : "");
        }
    }
    strv_sort (&elsewhere);
    return has_skill (files) || fail_without_skill (source, &elsewhere, false, err);
}

/* --- a zip --- */

/* Some programs write the separator of another system. */
static size_t
folder_len (const char *name)
{
    size_t len = strlen (name);
    while (len && ! strchr ("/\\", name[len - 1]))
        len--;
    return len;
}

/* What a Mac adds to a zip is nobody's file. */
static bool
is_litter (const char *name)
{
    const char *last = name + folder_len (name);
    return str_starts (name, "__MACOSX") || strcmp (last, ".DS_Store") == 0;
}

/* The folder that holds the skill: "" when its SKILL.md is at the root, NULL when there is none or
 * several; the names of all go to <found>. */
static char *
find_root (struct zip *zip, struct strv *found)
{
    for (size_t i = 0; i < zip_count (zip); i++) {
        const char *name = zip_at (zip, i)->name;
        size_t len = folder_len (name);
        if (is_litter (name) || ! skill_file_is_text (name + len))
            continue;
        if (! len)
            return x_strdup ("");
        _cleanup_free_ char *folder = x_strndup (name, len);
        if (! strv_contains (found, folder))
            strv_push (found, folder);
    }
    const char *only = found->len == 1 ? found->items[0] : "";
    const char *below = str_starts (only, "./") ? only + 2 : only;
    return *below && strcspn (below, "/\\") + 1 == strlen (below) ? x_strdup (only) : NULL;
}

/* Notes the folder of <root>, or the other place, that an entry lies in. */
static void
note_zip_folder (struct strv *left_out, const char *root, const char *name)
{
    const char *below = str_starts (name, root) ? name + strlen (root) : name;
    _cleanup_free_ char *first = x_strndup (below, strcspn (below, "/\\"));
    note_left_out (left_out, first, strlen (first) < strlen (below) ? "/" : "");
}

static bool
gather_zip (const char *source, struct build_plan *files, struct strv *left_out,
            struct mur_error **err)
{
    _cleanup_buf_ struct buf archive = { 0 };
    if (! fs_read_regular (source, PACKAGE_FILE_MAX, &archive, err))
        return false;
    _cleanup_ (zip_closep) struct zip *zip = zip_open (archive.data, archive.len, source, err);
    if (! zip)
        return mur_hint (err, "%s",
                         skill_file_is_text (source + folder_len (source))
                             ? "name the folder it lies in"
                             : "a skill is a folder, or a zip of one: unpack any other archive "
                               "and name its folder");
    _cleanup_strv_ struct strv found = { 0 };
    _cleanup_free_ char *root = find_root (zip, &found);
    if (! root)
        return fail_without_skill (source, &found, true, err);
    size_t root_len = strlen (root);
    for (size_t i = 0; i < zip_count (zip); i++) {
        const struct zip_entry *entry = zip_at (zip, i);
        const char *name = entry->name;
        if (is_litter (name) || strcmp (name, root) == 0)
            continue;
        if (! str_starts (name, root) || ! zip_name_is_root (name + root_len)) {
            note_zip_folder (left_out, root, name);
            continue;
        }
        _cleanup_buf_ struct buf bytes = { 0 };
        if (! zip_read (zip, entry, zip_ceiling (), &bytes, NULL, err))
            return false;
        size_t len = bytes.len;
        build_plan_add (files, x_strdup (name + root_len), buf_steal (&bytes), len);
        if (! check_count (files, source, err))
            return false;
    }
    return true;
}

bool
skill_files_gather (const char *source, struct build_plan *files, struct strv *left_out,
                    struct mur_error **err)
{
    int fd = open (source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_ok;
    if (fd < 0 && errno == ENOTDIR)
        is_ok = gather_zip (source, files, left_out, err);
    else if (fd < 0)
        return mur_fail_errno (err, errno == ENOENT ? E_IO_001 : E_IO_003, "cannot read %s",
                               source);
    else
        is_ok = gather_dir (source, fd, files, left_out, err);
    strv_sort (left_out);
    return is_ok;
}
