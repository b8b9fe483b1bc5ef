/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the stores are, finding a payload, reading it. Writing is in store_write.c, listing in
 * store_list.c.
 */
#include "artifact/store/store.h"

#include "artifact/names/name.h"
#include "artifact/names/platform.h"
#include "artifact/names/version.h"
#include "artifact/package/head.h"
#include "artifact/store/store_internal.h"
#include "base/alloc.h"
#include "base/share.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/paths.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define HASH_FILE_MAX 4096

const char *
store_kind_name (enum store_kind kind)
{
    static const char *const names[] = { "project", "global", "bundled" };
    return names[kind];
}

/* --- where --- */

struct stores *
stores_new (const char *project_root, struct mur_error **err)
{
    _cleanup_free_ char *global = home_path_below ("artifacts", err);
    if (! global)
        return NULL;
    struct stores *s = x_new0 (struct stores);
    for (int i = 0; i < STORE_COUNT; i++)
        s->at[i].kind = (enum store_kind)i;
    if (project_root)
        s->at[STORE_PROJECT].root = x_asprintf ("%s/.murmur/artifacts", project_root);
    s->at[STORE_GLOBAL].root = steal_ptr (&global);
    s->at[STORE_BUNDLED].root = share_path ("artifacts");
    s->trust = trust_policy_new ();
    return s;
}

void
stores_free (struct stores *s)
{
    for (int i = 0; i < STORE_COUNT; i++)
        free (s->at[i].root);
    trust_policy_free (s->trust);
    free (s);
}

char *
project_root_find (const char *start)
{
    _cleanup_free_ char *at = realpath (start, NULL);
    while (at) {
        _cleanup_free_ char *manifest = x_asprintf ("%s/murmur.yaml", at);
        if (access (manifest, F_OK) == 0)
            return steal_ptr (&at);
        char *slash = strrchr (at, '/');
        if (! slash || at[1] == '\0')
            return NULL;
        slash[slash == at ? 1 : 0] = '\0';
    }
    return NULL;
}

char *
path_with_tilde (const char *path)
{
    const char *home = getenv ("HOME");
    if (! home || ! home[0])
        home = getenv ("USERPROFILE");
    size_t len = home ? strlen (home) : 0;
    while (len > 1 && home[len - 1] == '/')
        len--;
    if (len > 1 && strncmp (path, home, len) == 0 && (path[len] == '/' || path[len] == '\0'))
        return x_asprintf ("~%s", path + len);
    return x_strdup (path);
}

/* --- paths --- */

char *
store_version_dir (const struct store *s, const char *name, const char *version)
{
    return x_asprintf ("%s/%s/%s", s->root, name, version);
}

char *
store_stem (const char *name, const char *version, const char *platform)
{
    return platform ? x_asprintf ("%s-%s-%s", name_bare (name), version, platform)
                    : x_asprintf ("%s-%s", name_bare (name), version);
}

char *
store_archive_path (const char *dir, const char *stem)
{
    return x_asprintf ("%s/%s.mur.zip", dir, stem);
}

void
store_payload_clear (struct store_payload *p)
{
    free (p->dir);
    free (p->stem);
    free (p->path);
    free (p->sha256);
    free (p->platform);
    *p = (struct store_payload){ 0 };
}

/* --- finding --- */

/* Reads a hash file, trimmed. An empty one counts as missing. */
static enum store_found
read_hash (const char *dir, const char *stem, char **hash, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/%s.sha256", dir, stem);
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_error_ struct mur_error *caught = NULL;
    if (! fs_read_path (path, HASH_FILE_MAX, &text, &caught)) {
        if (caught && (caught->errno_value == ENOENT || caught->errno_value == ENOTDIR ||
                       caught->code == E_IO_001))
            return STORE_NOT_FOUND;
        mur_propagate (err, steal_ptr (&caught));
        return STORE_FAILED;
    }
    const char *start = text.data ? text.data : "";
    start += strspn (start, " \t\r\n");
    size_t len = strcspn (start, " \t\r\n");
    if (len == 0)
        return STORE_NOT_FOUND;
    *hash = x_strndup (start, len);
    return STORE_FOUND;
}

enum store_found
store_find_exact (const struct store *s, const char *name, const char *version,
                  const char *platform, struct store_payload *out, struct mur_error **err)
{
    *out = (struct store_payload){ 0 };
    if (! s->root || ! name_is_full (name) || ! version_is_segment (version))
        return STORE_NOT_FOUND;
    if (s->kind == STORE_BUNDLED && ! name_has_scope (name, SCOPE_BUNDLED))
        return STORE_NOT_FOUND;
    _cleanup_free_ char *dir = store_version_dir (s, name, version);
    _cleanup_free_ char *stem = store_stem (name, version, platform);
    _cleanup_free_ char *path = store_archive_path (dir, stem);
    if (access (path, F_OK) != 0) {
        if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG)
            return STORE_NOT_FOUND;
        mur_fail_errno (err, errno == EACCES ? E_IO_002 : E_IO_003, "cannot look at %s", path);
        return STORE_FAILED;
    }
    char *hash = NULL;
    enum store_found found = read_hash (dir, stem, &hash, err);
    if (found != STORE_FOUND)
        return found;
    *out = (struct store_payload){
        .kind = s->kind,
        .dir = x_strdup (dir),
        .stem = steal_ptr (&stem),
        .path = steal_ptr (&path),
        .sha256 = hash,
        .platform = platform ? x_strdup (platform) : NULL,
    };
    return STORE_FOUND;
}

enum store_found
store_find (const struct store *s, const char *name, const char *version, const char *platform,
            struct store_payload *out, struct mur_error **err)
{
    if (! platform)
        platform = platform_host ();
    enum store_found found = store_find_exact (s, name, version, platform, out, err);
    return found == STORE_NOT_FOUND ? store_find_exact (s, name, version, NULL, out, err) : found;
}

enum store_found
stores_find (const struct stores *s, const char *name, const char *version, const char *platform,
             struct store_payload *out, struct mur_error **err)
{
    for (int i = 0; i < STORE_COUNT; i++) {
        enum store_found found = store_find (&s->at[i], name, version, platform, out, err);
        if (found != STORE_NOT_FOUND)
            return found;
    }
    return STORE_NOT_FOUND;
}

/* Takes <read> over: NULL where it could not be. */
static struct package *
check_read (struct package *read, const struct store_payload *payload, const char *name,
            const char *version, struct mur_error **err)
{
    _cleanup_package_ struct package *p = read;
    if (! p)
        return NULL;
    free (p->label);
    p->label = x_asprintf ("%s@%s", name, version);
    if (strcmp (p->sha256, payload->sha256) != 0) {
        mur_fail (err, E_REG_002,
                  "%s@%s: the bytes in the %s store hash to %s but were stored as %s (%s)", name,
                  version, store_kind_name (payload->kind), p->sha256, payload->sha256,
                  payload->path);
        mur_hint (err, "the file changed after it was stored; install or publish it again");
        return NULL;
    }
    return steal_ptr (&p);
}

struct package *
store_read (const struct store_payload *payload, const char *name, const char *version,
            struct mur_error **err)
{
    return check_read (package_from_file (payload->path, err), payload, name, version, err);
}

struct package *
store_read_head (const struct store_payload *payload, const char *name, const char *version,
                 const char *entry, struct mur_error **err)
{
    return check_read (package_head (payload->path, payload->sha256, entry, err), payload, name,
                       version, err);
}
