/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/eval_cases.h"
#include "fs/paths.h"
#include "replay/bundle/bundle.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/words.h"
#include "fs/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define FILE_LIMIT           ((size_t)64 * 1024 * 1024)
#define DEFAULT_TIMEOUT_SECS 600

struct place {
    const char *path;
    size_t line;
};

void
eval_cases_clear (struct eval_cases *cases)
{
    for (size_t i = 0; i < cases->len; i++) {
        struct eval_case *c = &cases->items[i];
        free (c->case_id);
        free (c->task_path);
        free (c->record);
        free (c->start);
        free (c->check);
        free (c->check_files);
        if (c->start_root)
            fs_root_free (c->start_root);
        if (c->files_root)
            fs_root_free (c->files_root);
    }
    free (cases->items);
    *cases = (struct eval_cases){ 0 };
}

static bool
refuse_line (const struct place *at, struct mur_error **err, const char *why)
{
    return mur_fail (err, E_EVAL_001, "%s:%zu: %s", at->path, at->line, why);
}

/* An optional string member. False: it is something else. */
static bool
read_text (const json_t *o, const char *key, char **out)
{
    const json_t *v = json_object_get (o, key);
    if (! v || json_is_null (v))
        return true;
    if (! json_is_string (v))
        return false;
    *out = x_strdup (json_string_value (v));
    return true;
}

static bool
read_check (const json_t *o, struct eval_case *c)
{
    const json_t *check = json_object_get (o, "check");
    c->timeout_secs = DEFAULT_TIMEOUT_SECS;
    if (! check || json_is_null (check))
        return true;
    if (json_is_string (check)) {
        c->check = x_strdup (json_string_value (check));
        return true;
    }
    const json_t *timeout = json_object_get (check, "timeout_secs");
    return json_is_object (check) && read_text (check, "command", &c->check) && c->check &&
           read_text (check, "files", &c->check_files) &&
           (! timeout || json_is_null (timeout) ||
            json_get_u64 (check, "timeout_secs", &c->timeout_secs));
}

static bool
read_case (const json_t *o, const struct place *at, struct eval_case *c, struct mur_error **err)
{
    if (! json_is_object (o))
        return refuse_line (at, err, "a case is a JSON object on one line");
    if (! read_text (o, "case_id", &c->case_id) || ! c->case_id)
        return refuse_line (at, err, "a case needs a string case_id");
    if (! read_text (o, "task_path", &c->task_path) || ! c->task_path)
        return refuse_line (at, err, "a case needs a string task_path");
    if (! read_text (o, "start", &c->start))
        return refuse_line (at, err, "start is the path of a directory");
    if (! read_text (o, "record", &c->record))
        return refuse_line (at, err, "record is the path of a bundle");
    return read_check (o, c) ||
           refuse_line (at, err,
                        "check is a command, or an object of command, files and timeout_secs");
}

/* --- whether it can be run --- */

/* The folder a member names, held open; its digest when <digest> is not NULL. */
static struct fs_root *
open_tree (const struct eval_case *c, const char *member, const char *path,
           char digest[SHA256_HEX_LEN + 1], struct mur_error **err)
{
    char unused[SHA256_HEX_LEN + 1];
    _cleanup_error_ struct mur_error *caught = NULL;
    int fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        mur_fail (err, E_EVAL_003, "case %s: %s: %s is %s", c->case_id, member, path,
                  errno == ENOENT ? "missing" : "no directory that can be read");
        return NULL;
    }
    struct fs_root *root = fs_root_new (fd, path, NULL, false);
    if (tree_digest (root, digest ? digest : unused, &caught))
        return root;
    fs_root_free (root);
    mur_fail (err, E_EVAL_003, "case %s: %s: %s", c->case_id, member, caught->message);
    mur_hint (err, "it may hold nothing but directories and regular files");
    return NULL;
}

/* What is wrong with a check's command, NULL for nothing. */
static const char *
fault_of (const char *command)
{
    _cleanup_strv_ struct strv words = { 0 };
    if (! words_split (command, &words))
        return "has a quote that is not closed";
    return words.len == 0 ? "is empty" : NULL;
}

static bool
judge_case (struct eval_case *c, struct mur_error **err)
{
    const char *fault = c->check ? fault_of (c->check) : NULL;
    if (fault)
        return mur_fail (err, E_EVAL_003, "case %s: check.command %s", c->case_id, fault);
    if (c->check && c->timeout_secs == 0)
        return mur_fail (err, E_EVAL_003, "case %s: check.timeout_secs is 0", c->case_id);
    if (c->start && ! (c->start_root = open_tree (c, "start", c->start, c->start_sha256, err)))
        return false;
    return ! c->check_files ||
           (c->files_root = open_tree (c, "check.files", c->check_files, NULL, err));
}

/* --- the file --- */

static bool
take_line (const char *text, size_t len, const struct place *at, struct eval_cases *out,
           struct mur_error **err)
{
    if (strspn (text, " \t\r") >= len)
        return true;
    _cleanup_json_ json_t *o = json_loadb (text, len, JSON_REJECT_DUPLICATES, NULL);
    x_grow (out->items, out->len, out->cap);
    struct eval_case *c = &out->items[out->len++];
    *c = (struct eval_case){ 0 };
    return read_case (o, at, c, err);
}

bool
eval_cases_read (const char *path, struct eval_cases *out, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! fs_read_path (path, FILE_LIMIT, &text, err))
        return mur_context (err, "the data set");
    struct place at = { path, 0 };
    for (size_t start = 0; start < text.len;) {
        const char *stop = memchr (text.data + start, '\n', text.len - start);
        size_t len = stop ? (size_t)(stop - text.data) - start : text.len - start;
        at.line++;
        if (! take_line (text.data + start, len, &at, out, err))
            return false;
        start += len + 1;
    }
    if (! out->len)
        return mur_fail (err, E_IO_003, "the data set %s has no case", path);
    for (size_t i = 0; i < out->len; i++)
        if (! judge_case (&out->items[i], err))
            return false;
    return true;
}

bool
eval_cases_check_records (const struct eval_cases *cases, struct mur_error **err)
{
    for (size_t i = 0; i < cases->len; i++) {
        const struct eval_case *c = &cases->items[i];
        if (bundle_is_one (c->record))
            continue;
        mur_fail (err, E_EVAL_003, "case %s: %s%s", c->case_id,
                  c->record ? "no bundle at " : "it has no record", c->record ? c->record : "");
        return mur_hint (err, "`mur replay SESSION --export-eval DIR` makes a case with one");
    }
    return true;
}
