/* SPDX-License-Identifier: Apache-2.0
 *
 * One buffer, and what is read from it.
 */
#include "artifact/package/package.h"
#include "artifact/names/wit_reader.h"

#include "base/alloc.h"
#include "base/json.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "manifest/settings/artifact_manifest.h"
#include "manifest/text/yaml.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static const char manifest_entry[] = "murmur.yaml";
static const char level_entry[] = "murmur-build.json";

struct package *
package_from_bytes (char *bytes, size_t len, const char *label)
{
    struct package *p = x_new0 (struct package);
    p->label = x_strdup (label);
    p->bytes = bytes;
    p->len = len;
    sha256_hex (bytes, len, p->sha256);
    return p;
}

struct package *
package_from_file (const char *path, struct mur_error **err)
{
    _cleanup_buf_ struct buf bytes = { 0 };
    if (! fs_read_regular (path, PACKAGE_FILE_MAX, &bytes, err))
        return NULL;
    size_t len = bytes.len;
    struct package *p = package_from_bytes (buf_steal (&bytes), len, path);
    p->signature = package_signature_beside (path);
    return p;
}

char *
package_signature_beside (const char *archive)
{
    _cleanup_free_ char *path = x_asprintf ("%s" PACKAGE_SIGNATURE_ENDING, archive);
    struct buf text = { 0 };
    _cleanup_error_ struct mur_error *caught = NULL;
    if (fs_read_regular (path, PACKAGE_SIGNATURE_MAX, &text, &caught))
        return buf_steal (&text);
    buf_free (&text);
    return caught->code == E_IO_001 ? NULL : x_strdup ("");
}

void
package_free (struct package *p)
{
    if (p->zip)
        zip_close (p->zip);
    if (p->manifest)
        artifact_manifest_free (p->manifest);
    free (p->label);
    free (p->signature);
    free (p->bytes);
    free (p->manifest_text);
    free (p);
}

/* --- opening --- */

/* murmur.yaml and the build level are parsed as one text: what a text of this kind may not have is
 * not inflated. */
static bool
read_small_entry (const struct package *p, const char *name, struct buf *out,
                  struct mur_error **err)
{
    const struct zip_entry *entry = zip_find (p->zip, name);
    if (! entry)
        return mur_fail (err, E_IO_003, "%s: the archive has no %s", p->label, name);
    uint64_t ceiling = zip_ceiling ();
    bool is_lowered = ceiling > YAML_BYTES_MAX, is_over = false;
    _cleanup_error_ struct mur_error *caught = NULL;
    if (zip_read (p->zip, entry, is_lowered ? YAML_BYTES_MAX : ceiling, out, &is_over, &caught))
        return true;
    if (is_lowered && is_over)
        return mur_fail (err, E_MAN_002, "%s!%s: a file of this kind has at most %u bytes",
                         p->label, name, YAML_BYTES_MAX);
    return mur_propagate (err, steal_ptr (&caught));
}

static bool
read_entry (const struct package *p, const char *name, struct buf *out, bool *is_over_ceiling,
            struct mur_error **err)
{
    const struct zip_entry *entry = zip_find (p->zip, name);
    if (is_over_ceiling)
        *is_over_ceiling = false;
    if (! entry)
        return mur_fail (err, E_IO_003, "%s: the archive has no %s", p->label, name);
    return zip_read (p->zip, entry, zip_ceiling (), out, is_over_ceiling, err);
}

static bool
read_text_entry (const struct package *p, const char *name, struct buf *out, struct mur_error **err)
{
    if (! read_small_entry (p, name, out, err))
        return false;
    if (! utf8_is_valid (out->data ? out->data : "", out->len))
        return mur_fail (err, E_IO_003, "%s: entry \"%s\" is not UTF-8", p->label, name);
    return true;
}

static bool
open_manifest (struct package *p, struct mur_error **err)
{
    if (! p->zip)
        p->zip = zip_open (p->bytes, p->len, p->label, err);
    if (! p->zip)
        return false;
    if (p->manifest)
        return true;
    _cleanup_buf_ struct buf text = { 0 };
    if (! read_text_entry (p, manifest_entry, &text, err))
        return false;
    _cleanup_free_ char *file = x_asprintf ("%s!%s", p->label, manifest_entry);
    p->manifest = artifact_manifest_parse (text.data ? text.data : "", text.len, file, err);
    if (! p->manifest)
        return false;
    p->manifest_len = text.len;
    p->manifest_text = buf_steal (&text);
    return true;
}

static bool
open_level (struct package *p, struct mur_error **err)
{
    if (p->has_level || ! zip_find (p->zip, level_entry))
        return true;
    _cleanup_buf_ struct buf text = { 0 };
    if (! read_text_entry (p, level_entry, &text, err))
        return false;
    _cleanup_free_ char *what = x_asprintf ("%s!%s", p->label, level_entry);
    _cleanup_json_ json_t *value =
        json_parse (text.data ? text.data : "", text.len, what, E_IO_003, err);
    if (! value)
        return false;
    if (! json_is_object (value) || ! json_get_u64 (value, "built_at_level", &p->built_at_level))
        return mur_fail (err, E_IO_003,
                         "%s: expected an object with a non-negative integer built_at_level", what);
    p->has_level = true;
    return true;
}

/* "..", as a part of a path written with either slash. */
static bool
has_parent_segment (const char *name)
{
    for (const char *at = name; *at; at += at[0] != 0) {
        size_t len = strcspn (at, "/\\");
        if (len == 2 && memcmp (at, "..", 2) == 0)
            return true;
        at += len;
        if (! *at)
            break;
    }
    return false;
}

bool
package_check_entries (const struct package *p, struct mur_error **err)
{
    for (size_t i = 0; i < zip_count (p->zip); i++) {
        const struct zip_entry *e = zip_at (p->zip, i);
        const char *fault = e->name[0] == '/' || e->name[0] == '\\' || has_parent_segment (e->name)
                                ? "leads out of the package"
                            : S_ISLNK (e->mode) ? "is a symbolic link"
                            : e->mode & (S_ISUID | S_ISGID)
                                ? "has a set-user-id or set-group-id bit"
                                : NULL;
        if (fault)
            return mur_fail (err, E_IO_003, "%s: entry \"%s\" %s: pack it without it", p->label,
                             e->name, fault);
    }
    return true;
}

bool
package_open_zip (struct package *p, struct mur_error **err)
{
    return open_manifest (p, err) && open_level (p, err);
}

bool
package_try_open (struct package *p)
{
    return open_manifest (p, NULL);
}

/* --- payload --- */

static bool
is_root_wasm (const char *name)
{
    return str_ends (name, ".wasm") && zip_name_is_root (name);
}

int
package_pick_root_wasm (const char *const *names, size_t count, enum diag_code code,
                        const char *label, struct mur_error **err)
{
    _cleanup_strv_ struct strv candidates = { 0 };
    int only = -1;
    for (size_t i = 0; i < count; i++) {
        if (strcmp (names[i], "capsule.wasm") == 0)
            return (int)i;
        if (is_root_wasm (names[i])) {
            strv_push (&candidates, names[i]);
            only = (int)i;
        }
    }
    if (candidates.len == 1)
        return only;
    if (candidates.len == 0) {
        mur_fail (
            err, code,
            "%s: no component to launch: expected capsule.wasm or exactly one other *.wasm at "
            "the root of the archive",
            label);
        return -1;
    }
    strv_sort (&candidates);
    _cleanup_free_ char *list = strv_join (&candidates, ", ");
    mur_fail (err, code,
              "%s: several components at the root of the archive and none is capsule.wasm: %s",
              label, list);
    return -1;
}

const struct zip_entry *
package_root_wasm (const struct package *p, enum diag_code code, struct mur_error **err)
{
    size_t count = zip_count (p->zip);
    _cleanup_free_ const char **names = x_new_array (const char *, count + 1);
    for (size_t i = 0; i < count; i++)
        names[i] = zip_at (p->zip, i)->name;
    int picked = package_pick_root_wasm (names, count, code, p->label, err);
    return picked < 0 ? NULL : zip_at (p->zip, (size_t)picked);
}

bool
package_read_wasm (const struct package *p, struct buf *wasm, struct mur_error **err)
{
    const struct zip_entry *entry = package_root_wasm (p, E_IO_003, err);
    return entry && zip_read (p->zip, entry, zip_ceiling (), wasm, NULL, err);
}

bool
package_read_entry (const struct package *p, const char *name, struct buf *out,
                    struct mur_error **err)
{
    return read_entry (p, name, out, NULL, err);
}

bool
package_read_native (const struct package *p, struct buf *out, struct mur_error **err)
{
    _cleanup_free_ char *name = x_asprintf ("bin/%s", p->manifest->name);
    return read_entry (p, name, out, NULL, err);
}

/* --- contracts --- */

static enum package_contracts
find_component (struct package *p, const struct zip_entry **entry, struct mur_error **err)
{
    if (! p->zip)
        p->zip = zip_open (p->bytes, p->len, p->label, err);
    if (! p->zip)
        return PACKAGE_NOT_ZIP;
    *entry = package_root_wasm (p, E_IO_003, err);
    if (*entry)
        return PACKAGE_CONTRACTS;
    for (size_t i = 0; i < zip_count (p->zip); i++)
        if (is_root_wasm (zip_at (p->zip, i)->name))
            return PACKAGE_AMBIGUOUS_WASM;
    return PACKAGE_NO_WASM;
}

static void
feed_contracts (void *stream, const void *data, size_t len)
{
    wit_stream_feed (stream, data, len);
}

enum package_contracts
package_contracts (struct package *p, struct wit_contracts *out, struct mur_error **err)
{
    *out = (struct wit_contracts){ 0 };
    const struct zip_entry *entry = NULL;
    enum package_contracts found = find_component (p, &entry, err);
    if (found != PACKAGE_CONTRACTS)
        return found;
    _cleanup_wit_stream_ struct wit_stream *stream = wit_stream_new ();
    bool is_over_ceiling;
    if (! zip_stream (p->zip, entry, zip_ceiling (), feed_contracts, stream, &is_over_ceiling, err))
        return is_over_ceiling ? PACKAGE_OVER_CEILING : PACKAGE_BROKEN_ENTRY;
    switch (wit_stream_finish (stream, out)) {
    case WIT_READ:
        return PACKAGE_CONTRACTS;
    case WIT_CORE_MODULE:
        mur_fail (err, E_IO_003, "%s: %s is a core module, not a component", p->label, entry->name);
        return PACKAGE_CORE_MODULE;
    case WIT_UNREADABLE:
        break;
    }
    mur_fail (err, E_IO_003, "%s: %s does not parse as a component", p->label, entry->name);
    return PACKAGE_UNPARSABLE;
}

char *
package_component_in (const char *dir_path, struct mur_error **err)
{
    _cleanup_strv_ struct strv names = { 0 };
    _cleanup_closedir_ DIR *dir = opendir (dir_path);
    for (struct dirent *e; dir && (e = readdir (dir));)
        if (str_ends (e->d_name, ".wasm"))
            strv_push (&names, e->d_name);
    strv_sort (&names);
    if (! names.len) {
        mur_fail (err, E_RUN_004, "no component at %s/capsule.wasm", dir_path);
        mur_hint (err, "build it there, or declare inference: for an agent capsule");
        return NULL;
    }
    int at = package_pick_root_wasm ((const char *const *)names.items, names.len, E_IO_003,
                                     dir_path, err);
    return at < 0 ? NULL : x_asprintf ("%s/%s", dir_path, names.items[at]);
}
