/* SPDX-License-Identifier: Apache-2.0
 *
 * Skills and exported files: what a client reads instead of calling.
 *
 * A skill is one file, skill://NAME/SKILL.md, and for older clients a prompt of its name. An
 * exported file is file:///PATH below exports.files.root. Always true: files are read as the door's
 * own plane reads them, links and all.
 */
#include "base/alloc.h"
#include "base/digest.h"
#include "door/planes/export_folder.h"
#include "mcp/base64.h"
#include "sandbox/host/host.h"
#include "session/served/served_internal.h"

#include <string.h>

#define SKILL_URI   "skill://%s/SKILL.md"
#define FILE_SCHEME "file:///"

/* --- skills --- */

static const struct staged_artifact *
skill_at (const struct served *v, size_t i)
{
    const struct tool_entry *t = &v->s->kit.tools[i];
    return t->is_skill && t->artifact && ! t->artifact->is_removed ? t->artifact : NULL;
}

static const struct staged_artifact *
find_skill (const struct served *v, const char *name)
{
    for (size_t i = 0; i < v->s->kit.tool_count; i++) {
        const struct staged_artifact *a = skill_at (v, i);
        if (a && str_eq (a->tool_name, name))
            return a;
    }
    return NULL;
}

/* The skill whose file this is. */
static const struct staged_artifact *
skill_of_uri (const struct served *v, const char *uri)
{
    for (size_t i = 0; i < v->s->kit.tool_count; i++) {
        const struct staged_artifact *a = skill_at (v, i);
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

static json_t *
prompt_json (const struct staged_artifact *a)
{
    json_t *o = json_object ();
    json_set_string (o, "name", a->tool_name);
    if (a->shown.description)
        json_set_string (o, "description", a->shown.description);
    return o;
}

static void
list_skills (struct served *v, json_t *(*one) (const struct staged_artifact *a),
             struct mcp_answer *answer)
{
    answer->result = json_array ();
    loop_lock_take (&v->s->loop_lock);
    for (size_t i = 0; i < v->s->kit.tool_count; i++)
        if (skill_at (v, i))
            json_array_append_new (answer->result, one (skill_at (v, i)));
    loop_lock_release (&v->s->loop_lock);
}

void
served_skills_list (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    (void)call;
    list_skills (ctx, skill_json, answer);
}

void
served_prompts_list (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    (void)call;
    list_skills (ctx, prompt_json, answer);
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

void
served_prompts_get (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    loop_lock_take (&v->s->loop_lock);
    const struct staged_artifact *a = find_skill (v, call->name);
    if (a) {
        json_t *content = json_object (), *message = json_object ();
        json_set_string (content, "type", "text");
        json_set_string_n (content, "text", a->skill_text.data ? a->skill_text.data : "",
                           a->skill_text.len);
        json_set_string (message, "role", "user");
        json_object_set_new (message, "content", content);
        answer->result = json_pack ("{s:[o]}", "messages", message);
        if (a->shown.description)
            json_set_string (answer->result, "description", a->shown.description);
    } else {
        mcp_refuse (answer, MCP_INVALID_PARAMS, "there is no prompt named %s", call->name);
    }
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

/* A path as it stands in a URI. */
static char *
file_uri (const char *path)
{
    struct buf out = { 0 };
    buf_puts (&out, FILE_SCHEME);
    for (const char *p = path; *p; p++)
        if (strchr ("/-._~", *p) || (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
            (*p >= 'A' && *p <= 'Z'))
            buf_putc (&out, *p);
        else
            buf_printf (&out, "%%%02X", (unsigned char)*p);
    return buf_steal (&out);
}

static void
append_files (struct served *v, const struct mcp_call *call, json_t *list)
{
    struct export_listing listing = { 0 };
    const struct export_folder folder = folder_of (v);
    size_t i;
    json_t *entry;
    export_list (&folder, call->cancel, &listing);
    json_array_foreach (listing.entries, i, entry)
    {
        const char *path = json_get_string (entry, "path");
        uint64_t size;
        if (! path)
            continue;
        _cleanup_free_ char *uri = file_uri (path);
        json_t *o = json_object ();
        json_set_string (o, "uri", uri);
        json_set_string (o, "name", path);
        if (json_get_u64 (entry, "size", &size) || json_get_u64 (entry, "bytes", &size))
            json_set_u64 (o, "size", size);
        json_array_append_new (list, o);
    }
    json_decref (listing.entries);
}

static json_t *
contents (const char *uri, const char *type, const struct buf *bytes)
{
    json_t *o = json_object ();
    json_set_string (o, "uri", uri);
    bool is_text = utf8_is_valid (bytes->data ? bytes->data : "", bytes->len) &&
                   ! (bytes->len && memchr (bytes->data, '\0', bytes->len));
    json_set_string (o, "mimeType", ! is_text ? "application/octet-stream" : type);
    if (is_text) {
        json_set_string_n (o, "text", bytes->data ? bytes->data : "", bytes->len);
    } else {
        _cleanup_free_ char *blob = mcp_base64_encode (bytes->data, bytes->len);
        json_set_string (o, "blob", blob);
    }
    return json_pack ("{s:[o]}", "contents", o);
}

static void
read_file (struct served *v, const char *uri, struct mcp_answer *answer)
{
    _cleanup_buf_ struct buf decoded = { 0 };
    const char *from = uri + strlen (FILE_SCHEME);
    export_decode_path (from, strlen (from), &decoded);
    _cleanup_free_ char *path = export_plain_path (decoded.data ? decoded.data : "", decoded.len);
    const struct export_folder folder = folder_of (v);
    struct export_file file = { 0 };
    enum export_outcome outcome = path ? export_read (&folder, path, &file) : EXPORT_OUTSIDE_ROOT;
    if (outcome == EXPORT_OK)
        answer->result = contents (uri, "text/plain", &file.bytes);
    else
        mcp_refuse (answer, MCP_INVALID_PARAMS, "%s: %s", uri, export_outcome_message (outcome));
    export_file_clear (&file);
}

static bool
serves_files (const struct served *v)
{
    return v->exported->files.value && v->s->manifest->exports->files;
}

void
served_resources_list (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    answer->result = json_array ();
    if (serves_files (v))
        append_files (v, call, answer->result);
}

void
served_resources_read (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    if (serves_files (v) && str_starts (call->name, FILE_SCHEME)) {
        read_file (v, call->name, answer);
        return;
    }
    loop_lock_take (&v->s->loop_lock);
    const struct staged_artifact *a =
        v->exported->skills.value ? skill_of_uri (v, call->name) : NULL;
    if (a)
        answer->result = contents (call->name, "text/markdown", &a->skill_text);
    else
        mcp_refuse (answer, MCP_INVALID_PARAMS, "there is no resource %s", call->name);
    loop_lock_release (&v->s->loop_lock);
}
