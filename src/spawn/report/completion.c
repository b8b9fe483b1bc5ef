/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/report/completion.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/json_write.h"
#include "fs/replace.h"
#include "fs/root.h"
#include "net/http_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define RECORD_LIMIT_BYTES ((size_t)1 << 20)
#define DETAIL_LIMIT_BYTES 2000
#define CUT_MARK           " […]"
#define POST_TIMEOUT_MS    10000
#define ANSWER_LIMIT_BYTES ((size_t)1 << 20)

static const char *const status_names[] = { "ok", "error", "crashed", "terminated" };
static const char *const reporter_names[] = { "child", "launcher" };

const char *
completion_status_name (enum completion_status status)
{
    return status_names[status];
}

/* --- the record --- */

static void
set_optional (json_t *o, const char *key, const char *value)
{
    if (value)
        json_set_string (o, key, value);
}

/* The detail as others see it, or NULL. Owned. What was cut before stays as it is. */
static char *
detail_text (const char *detail)
{
    size_t len = detail ? strlen (detail) : 0;
    bool was_cut =
        len && len <= DETAIL_LIMIT_BYTES + strlen (CUT_MARK) && str_ends (detail, CUT_MARK);
    if (len <= DETAIL_LIMIT_BYTES || was_cut)
        return detail ? x_strdup (detail) : NULL;
    return x_asprintf ("%.*s" CUT_MARK, (int)utf8_cut (detail, len, DETAIL_LIMIT_BYTES), detail);
}

/* In the order of the file. */
static json_t *
record_json (const struct completion *c)
{
    json_t *o = json_object ();
    _cleanup_free_ char *detail = detail_text (c->detail);
    json_set_string (o, "delegation_id", c->delegation_id);
    json_set_string (o, "capsule_name", c->capsule_name);
    json_set_string (o, "capsule_version", c->capsule_version);
    json_set_string (o, "session_id", c->session_id);
    json_set_string (o, "status", status_names[c->status]);
    set_optional (o, "result_path", c->result_path);
    json_set_string (o, "workdir", c->workdir);
    json_set_u64 (o, "duration_ms", c->duration_ms);
    set_optional (o, "detail", detail);
    json_set_string (o, "reported_by", reporter_names[c->reported_by]);
    json_set_bool (o, "delivered", c->is_delivered);
    set_optional (o, "delivery_error", c->delivery_error);
    return o;
}

char *
completion_text (const struct completion *c)
{
    _cleanup_json_ json_t *o = record_json (c);
    _cleanup_free_ char *pretty = json_pretty (o, JSON_TEXT_ORDERED);
    return x_asprintf ("%s\n", pretty);
}

bool
completion_write (int records_fd, const struct completion *c, struct mur_error **err)
{
    _cleanup_free_ char *text = completion_text (c);
    return fs_replace_at (records_fd, COMPLETION_FILE, text, strlen (text), 0644, false, err) ||
           mur_context (err, "the completion record of %s", c->delegation_id);
}

static bool
read_text (int records_fd, struct buf *out, struct mur_error **err)
{
    struct stat st;
    _cleanup_close_ int fd =
        openat (records_fd, COMPLETION_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return mur_fail_errno (err, errno == ENOENT ? E_IO_001 : E_IO_003,
                               "cannot open " COMPLETION_FILE);
    if (fstat (fd, &st) < 0 || ! S_ISREG (st.st_mode))
        return mur_fail (err, E_IO_003, COMPLETION_FILE " is not a regular file");
    if (! fd_read_all (fd, RECORD_LIMIT_BYTES, out))
        return mur_fail_errno (err, E_IO_003, "cannot read " COMPLETION_FILE);
    return true;
}

/* A string member; NULL with *is_wrong set when it is there and no string, or required and absent.
 */
static const char *
take_string (const json_t *o, const char *key, bool is_required, struct arena *arena,
             const char **is_wrong)
{
    const char *text = json_get_string (o, key);
    if (! text &&
        (is_required || (json_object_get (o, key) && ! json_is_null (json_object_get (o, key)))))
        *is_wrong = key;
    return text ? arena_strdup (arena, text) : NULL;
}

static int
take_name (const json_t *o, const char *key, const char *const *names, size_t count,
           const char **is_wrong)
{
    const char *text = json_get_string (o, key);
    for (size_t i = 0; text && i < count; i++)
        if (str_eq (text, names[i]))
            return (int)i;
    *is_wrong = key;
    return 0;
}

bool
completion_parse (const char *text, size_t len, struct arena *arena, struct completion *out,
                  struct mur_error **err)
{
    _cleanup_json_ json_t *o = json_parse (text, len, COMPLETION_FILE, E_IO_003, err);
    if (! o)
        return false;
    const char *wrong = NULL;
    _cleanup_free_ char *detail = detail_text (json_get_string (o, "detail"));
    *out = (struct completion){
        .delegation_id = take_string (o, "delegation_id", true, arena, &wrong),
        .capsule_name = take_string (o, "capsule_name", true, arena, &wrong),
        .capsule_version = take_string (o, "capsule_version", true, arena, &wrong),
        .session_id = take_string (o, "session_id", true, arena, &wrong),
        .status = (enum completion_status)take_name (o, "status", status_names,
                                                     ARRAY_LEN (status_names), &wrong),
        .result_path = take_string (o, "result_path", false, arena, &wrong),
        .workdir = take_string (o, "workdir", true, arena, &wrong),
        .detail = take_string (o, "detail", false, arena, &wrong),
        .reported_by = (enum completion_reporter)take_name (o, "reported_by", reporter_names,
                                                            ARRAY_LEN (reporter_names), &wrong),
        .is_delivered = json_is_true (json_object_get (o, "delivered")),
        .delivery_error = take_string (o, "delivery_error", false, arena, &wrong),
    };
    if (! json_get_u64 (o, "duration_ms", &out->duration_ms))
        wrong = "duration_ms";
    if (! json_is_boolean (json_object_get (o, "delivered")))
        wrong = "delivered";
    if (out->detail)
        out->detail = arena_strdup (arena, detail); /* whoever wrote it: never longer than ours */
    return ! wrong || mur_fail (err, E_IO_003,
                                COMPLETION_FILE ": %s is missing or not what it should be", wrong);
}

bool
completion_read (int records_fd, struct arena *arena, struct completion *out,
                 struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    return read_text (records_fd, &text, err) &&
           completion_parse (text.data ? text.data : "", text.len, arena, out, err);
}

/* --- the notice --- */

static const char *
bare_name (const char *full)
{
    const char *slash = strrchr (full, '/');
    return slash ? slash + 1 : full;
}

static char *
notice_text (const struct completion *c)
{
    struct buf b = { 0 };
    _cleanup_free_ char *detail = detail_text (c->detail);
    buf_printf (&b,
                "A delegated capsule has ended.\ndelegation_id: %s\ncapsule: %s@%s\n"
                "session_id: %s\nstatus: %s\nduration_ms: %llu\nworkdir: %s",
                c->delegation_id, bare_name (c->capsule_name), c->capsule_version, c->session_id,
                status_names[c->status], (unsigned long long)c->duration_ms, c->workdir);
    if (detail)
        buf_printf (&b, "\ndetail: %s", detail);
    return buf_steal (&b);
}

static char *
request_text (const struct completion_address *to, const struct completion *c)
{
    _cleanup_free_ char *text = notice_text (c);
    _cleanup_json_ json_t *body =
        json_pack ("{s:s, s:s, s:s, s:{s:{s:b}, s:{s:o, s:s, s:[{s:s, s:o}], s:s}}}", "id",
                   id_new ("req_").text, "jsonrpc", "2.0", "method", "SendMessage", "params",
                   "configuration", "returnImmediately", 1, "message", "contextId",
                   json_string_lossy (to->context_id, strlen (to->context_id)), "messageId",
                   id_new ("msg_").text, "parts", "mediaType", "text/plain", "text",
                   json_string_lossy (text, strlen (text)), "role", "ROLE_USER");
    return json_text (body, JSON_TEXT_ORDERED);
}

/* Delivered is what was answered with a result. */
static bool
judge (const struct http_response *r, struct arena *arena, const char **reason)
{
    if (r->status / 100 != 2) {
        *reason = arena_printf (arena, "the parent's door answered HTTP %d", r->status);
        return false;
    }
    _cleanup_json_ json_t *body =
        json_loadb (r->body.data ? r->body.data : "", r->body.len, 0, NULL);
    const json_t *error = json_object_get (body, "error");
    const char *message = json_get_string (error, "message");
    if (error && ! json_is_null (error))
        *reason = arena_strdup (arena, message ? message : "the parent's door answered an error");
    else if (! json_object_get (body, "result"))
        *reason = "the parent's door answered something other than JSON-RPC";
    return ! *reason;
}

bool
completion_post (struct http_client *http, const struct completion_address *to,
                 const struct completion *c, struct arena *arena, const char **reason)
{
    *reason = NULL;
    _cleanup_free_ char *text = request_text (to, c);
    const struct http_header headers[] = {
        { "content-type", "application/json", strlen ("application/json") },
        { "a2a-version", "1.0", strlen ("1.0") },
        { "x-murmur-task-origin", "completion", strlen ("completion") },
        { "x-murmur-delegation-id", c->delegation_id, strlen (c->delegation_id) },
        { "x-murmur-completion-session", to->session_id, strlen (to->session_id) },
    };
    const struct http_fetch fetch = { .request = { .method = "POST",
                                                   .url = to->url,
                                                   .headers = headers,
                                                   .header_count = ARRAY_LEN (headers),
                                                   .body_kind = HTTP_BODY_BUFFER,
                                                   .body = text,
                                                   .body_len = strlen (text),
                                                   .connect_timeout_ms = POST_TIMEOUT_MS,
                                                   .first_byte_timeout_ms = POST_TIMEOUT_MS },
                                      .limit_bytes = ANSWER_LIMIT_BYTES,
                                      .total_timeout_ms = POST_TIMEOUT_MS };
    struct http_response response = { 0 };
    struct mur_error *fault = NULL;
    if (! http_fetch (http, &fetch, &response, NULL, &fault)) {
        *reason = arena_strdup (arena, fault->message);
        mur_error_free (fault);
        return false;
    }
    bool was_taken = judge (&response, arena, reason);
    http_response_free (&response);
    return was_taken;
}

/* --- the procedure --- */

bool
completion_report (int records_fd, struct http_client *http, const struct completion_address *to,
                   struct completion *c, struct arena *arena, struct mur_error **err)
{
    c->is_delivered = false;
    c->delivery_error = NULL;
    if (! completion_write (records_fd, c, err))
        return false;
    c->is_delivered = completion_post (http, to, c, arena, &c->delivery_error);
    if (! c->is_delivered)
        diag_stderr_line ("[capsule-runtime] the end of delegation %s could not be reported to its "
                          "parent: %s",
                          c->delegation_id, c->delivery_error);
    _cleanup_error_ struct mur_error *again = NULL;
    if (! completion_write (records_fd, c, &again))
        diag_stderr_line ("[capsule-runtime] %s", again->message);
    return true;
}

/* --- where the answer is --- */

static bool
holds_result (int dir_fd)
{
    struct stat st;
    _cleanup_close_ int out =
        dir_fd < 0 ? -1 : openat (dir_fd, "out", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return out >= 0 && fstatat (out, "result.txt", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG (st.st_mode);
}

const char *
completion_result_path (int records_fd, const char *records_dir, int workdir_fd,
                        const char *workdir, struct arena *arena)
{
    const char *dir = holds_result (records_fd)   ? records_dir
                      : holds_result (workdir_fd) ? workdir
                                                  : NULL;
    return dir ? arena_printf (arena, "%s/out/result.txt", dir) : NULL;
}
