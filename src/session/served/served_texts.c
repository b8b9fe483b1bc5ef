/* SPDX-License-Identifier: Apache-2.0
 *
 * Skills and exported files: what a client reads instead of calling.
 *
 * A skill is one file, skill://NAME/SKILL.md. An exported file is file:///PATH, or below what
 * exports.mcp.files_uri says, of exports.files.root. Always true: files are read as the door's
 * own plane reads them, links and all.
 */
#include "base/alloc.h"
#include "base/digest.h"
#include "door/planes/export_folder.h"
#include "mcp/media.h"
#include "sandbox/host/host.h"
#include "session/served/served_internal.h"

#include <string.h>

#define SKILL_URI   "skill://%s/SKILL.md"
#define FILE_SCHEME "file:///"

/* --- skills --- */

const struct staged_artifact *
served_skill_at (const struct served *v, size_t i)
{
    const struct tool_entry *t = &v->s->kit.tools[i];
    return t->is_skill && t->artifact && ! t->artifact->is_removed ? t->artifact : NULL;
}

/* The skill whose file this is. */
static const struct staged_artifact *
skill_of_uri (const struct served *v, const char *uri)
{
    for (size_t i = 0; i < v->s->kit.tool_count; i++) {
        const struct staged_artifact *a = served_skill_at (v, i);
        _cleanup_free_ char *its = a ? x_asprintf (SKILL_URI, a->tool_name) : NULL;
        if (a && str_eq (its, uri))
            return a;
    }
    return NULL;
}

static json_t *
skill_json (const struct staged_artifact *a)
{
    char hex[SHA256_HEX_LEN + 1];
    _cleanup_free_ char *uri = x_asprintf (SKILL_URI, a->tool_name);
    json_t *o = json_object (), *front = json_object (), *file = json_object ();
    sha256_hex (a->skill_text.data ? a->skill_text.data : "", a->skill_text.len, hex);
    _cleanup_free_ char *digest = x_asprintf ("sha256:%s", hex);
    json_set_string (front, "name", a->tool_name);
    json_set_string (front, "description", a->shown.description ? a->shown.description : "");
    json_set_string (file, "uri", uri);
    json_set_string (file, "digest", digest);
    json_set_u64 (file, "size", a->skill_text.len);
    json_set_string (o, "uri", uri);
    json_object_set_new (o, "frontmatter", front);
    json_object_set_new (o, "resources", json_pack ("[o]", file));
    return o;
}

void
served_skills_list (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    (void)call;
    answer->result = json_array ();
    loop_lock_take (&v->s->loop_lock);
    for (size_t i = 0; i < v->s->kit.tool_count; i++)
        if (served_skill_at (v, i))
            json_array_append_new (answer->result, skill_json (served_skill_at (v, i)));
    loop_lock_release (&v->s->loop_lock);
}

void
served_skills_get (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    loop_lock_take (&v->s->loop_lock);
    const struct staged_artifact *a = skill_of_uri (v, call->name);
    if (a)
        answer->result = json_pack ("{s:o}", "skill", skill_json (a));
    else
        mcp_refuse (answer, MCP_INVALID_PARAMS, "there is no skill %s", call->name);
    loop_lock_release (&v->s->loop_lock);
}

/* --- files --- */

static struct export_folder
folder_of (const struct served *v)
{
    const struct exported_files *f = v->s->manifest->exports->files;
    const struct containment *c = host_decide (v->s->asked->decision);
    return (struct export_folder){ .work = v->s->places.work,
                                   .root = f->root,
                                   .max_bytes = f->max_bytes,
                                   .follows_links = c->achieved != CONTAINMENT_SCOPED };
}

/* What the addresses of files begin with. */
static const char *
files_begin (const struct served *v)
{
    return v->exported->files_uri ? v->exported->files_uri : FILE_SCHEME;
}

/* A path as it stands in a URI. */
static char *
file_uri (const struct served *v, const char *path)
{
    struct buf out = { 0 };
    buf_puts (&out, files_begin (v));
    for (const char *p = path; *p; p++)
        if (strchr ("/-._~", *p) || (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
            (*p >= 'A' && *p <= 'Z'))
            buf_putc (&out, *p);
        else
            buf_printf (&out, "%%%02X", (unsigned char)*p);
    return buf_steal (&out);
}

json_t *
served_files_listed (struct served *v, struct cancel *cancel)
{
    struct export_listing listing = { 0 };
    const struct export_folder folder = folder_of (v);
    export_list_unread (&folder, cancel, &listing);
    return listing.entries;
}

static void
append_files (struct served *v, struct cancel *cancel, json_t *list)
{
    _cleanup_json_ json_t *entries = served_files_listed (v, cancel);
    size_t i;
    json_t *entry;
    json_array_foreach (entries, i, entry)
    {
        const char *path = json_get_string (entry, "path");
        uint64_t size;
        if (! path)
            continue;
        _cleanup_free_ char *uri = file_uri (v, path);
        json_t *o = json_object ();
        json_set_string (o, "uri", uri);
        json_set_string (o, "name", path);
        if (json_get_u64 (entry, "size_bytes", &size))
            json_set_u64 (o, "size", size);
        json_array_append_new (list, o);
    }
}

/* {uri, mimeType, text} or with a blob. */
static json_t *
contents (const char *uri, const char *type, const struct buf *bytes)
{
    json_t *o = json_object ();
    json_set_string (o, "uri", uri);
    bool is_text = utf8_is_valid (bytes->data ? bytes->data : "", bytes->len) &&
                   ! (bytes->len && memchr (bytes->data, '\0', bytes->len));
    const char *otherwise = is_text ? "text/plain" : "application/octet-stream";
    json_set_string (o, "mimeType", type ? type : mcp_media_of (uri, otherwise));
    if (is_text) {
        json_set_string_n (o, "text", bytes->data ? bytes->data : "", bytes->len);
    } else {
        _cleanup_free_ char *blob = base64_encode (bytes->data, bytes->len);
        json_set_string (o, "blob", blob);
    }
    return o;
}

static void
refuse_resource (struct mcp_answer *no, const char *uri, const char *why)
{
    mcp_refuse (no, MCP_INVALID_PARAMS, "%s: %s", uri, why);
    no->data = json_object ();
    json_set_string (no->data, "uri", uri);
}

/* The path an address, or a path as it stands in one, names. Owned; NULL: it can name none. */
static char *
path_of_uri (const struct served *v, const char *uri)
{
    _cleanup_buf_ struct buf decoded = { 0 };
    const char *from = uri + (str_starts (uri, files_begin (v)) ? strlen (files_begin (v)) : 0);
    export_decode_path (from, strlen (from), &decoded);
    return export_plain_path (decoded.data ? decoded.data : "", decoded.len);
}

bool
served_read_file (struct served *v, const char *uri, json_t **file_contents, struct mcp_answer *no)
{
    _cleanup_free_ char *path = path_of_uri (v, uri);
    _cleanup_free_ char *whole = path ? file_uri (v, path) : NULL;
    const struct export_folder folder = folder_of (v);
    struct export_file file = { 0 };
    enum export_outcome outcome = path ? export_read (&folder, path, &file) : EXPORT_OUTSIDE_ROOT;
    if (outcome == EXPORT_OK)
        *file_contents = contents (whole, NULL, &file.bytes);
    else
        refuse_resource (no, uri, export_outcome_message (outcome));
    export_file_clear (&file);
    return outcome == EXPORT_OK;
}

static bool
serves_files (const struct served *v)
{
    return v->exported->files.value && v->s->manifest->exports->files;
}

static char *
file_mark (struct served *v, const char *uri)
{
    _cleanup_free_ char *path = path_of_uri (v, uri);
    const struct export_folder folder = folder_of (v);
    struct stat st = { 0 };
    if (! path)
        return NULL;
    enum export_outcome how = export_look (&folder, path, &st);
    if (how != EXPORT_OK)
        return x_strdup (export_outcome_name (how));
    return x_asprintf ("%ju %jd %jd.%09ld %jd.%09ld", (uintmax_t)st.st_ino, (intmax_t)st.st_size,
                       (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (intmax_t)st.st_ctim.tv_sec,
                       st.st_ctim.tv_nsec);
}

char *
served_resource_mark (struct served *v, const char *uri)
{
    char hex[SHA256_HEX_LEN + 1];
    if (serves_files (v) && str_starts (uri, files_begin (v)))
        return file_mark (v, uri);
    loop_lock_take (&v->s->loop_lock);
    const struct staged_artifact *a = v->exported->skills.value ? skill_of_uri (v, uri) : NULL;
    if (a)
        sha256_hex (a->skill_text.data ? a->skill_text.data : "", a->skill_text.len, hex);
    loop_lock_release (&v->s->loop_lock);
    return a ? x_strdup (hex) : NULL;
}

char *
served_list_mark (struct served *v)
{
    _cleanup_json_ json_t *all = json_array ();
    _cleanup_buf_ struct buf names = { 0 };
    char hex[SHA256_HEX_LEN + 1];
    size_t i;
    json_t *one;
    if (serves_files (v))
        append_files (v, NULL, all);
    json_array_foreach (all, i, one) buf_printf (&names, "%s\n", json_get_string (one, "uri"));
    sha256_hex (names.data ? names.data : "", names.len, hex);
    return x_strdup (hex);
}

void
served_resources_list (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    answer->result = json_array ();
    if (serves_files (v))
        append_files (v, call->cancel, answer->result);
}

void
served_resource_templates (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    (void)call;
    answer->result = json_array ();
    if (! serves_files (v))
        return;
    _cleanup_free_ char *template = x_asprintf ("%s{+path}", files_begin (v));
    json_array_append_new (answer->result,
                           json_pack ("{s:s, s:s, s:s}", "uriTemplate", template, "name", "file",
                                      "description", "A file by its path."));
}

void
served_resources_read (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    json_t *file;
    if (serves_files (v) && str_starts (call->name, files_begin (v))) {
        if (served_read_file (v, call->name, &file, answer))
            answer->result = json_pack ("{s:[o]}", "contents", file);
        return;
    }
    loop_lock_take (&v->s->loop_lock);
    const struct staged_artifact *a =
        v->exported->skills.value ? skill_of_uri (v, call->name) : NULL;
    if (a)
        answer->result = json_pack ("{s:[o]}", "contents",
                                    contents (call->name, "text/markdown", &a->skill_text));
    else
        refuse_resource (answer, call->name, "there is no such resource");
    loop_lock_release (&v->s->loop_lock);
}
