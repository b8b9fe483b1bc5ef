/* SPDX-License-Identifier: Apache-2.0 */
#include "session/conversation/conversation.h"
#include "base/json_write.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "fs/root.h"
#include "home/paths.h"
#include "session/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define RECORD_FILE "conversation.jsonl"
/* A record larger than this is not loaded: a model could not be sent it either. */
#define RECORD_LIMIT_BYTES ((size_t)1 << 30)

struct conversation {
    char *store; /* NULL: unrecorded */
    char *context_id;
    char *retain_owner;
    struct fs_root *dir; /* opened with the first append or load */
    int fd;
    bool is_reported;
    bool is_unusable;
};

struct conversation *
conversation_new (const char *store, const char *context_id, const char *retain_owner)
{
    struct conversation *c = x_new0 (struct conversation);
    c->store = store ? x_strdup (store) : NULL;
    c->context_id = x_strdup (context_id);
    c->retain_owner = retain_owner ? x_strdup (retain_owner) : NULL;
    c->fd = -1;
    return c;
}

void
conversation_free (struct conversation *c)
{
    if (! c)
        return;
    if (c->fd >= 0)
        close (c->fd);
    if (c->dir)
        fs_root_free (c->dir);
    free (c->store);
    free (c->context_id);
    free (c->retain_owner);
    free (c);
}

const char *
conversation_context (const struct conversation *c)
{
    return c->context_id;
}

uint64_t
conversation_bytes (const struct conversation *c)
{
    struct stat st;
    return c->fd >= 0 && fstat (c->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

void
conversation_new_attempt (struct conversation *c)
{
    c->is_reported = false;
}

static void
report (struct conversation *c, const char *what, const struct mur_error *why)
{
    if (c->is_reported)
        return;
    c->is_reported = true;
    if (c->is_unusable) { /* the client's choice, which loses nothing this session owed it */
        diag_plain_warning ("the conversation of context '%.64s'%s is not recorded: %s",
                            c->context_id, strlen (c->context_id) > 64 ? "..." : "", why->message);
        return;
    }
    diag_lost ("the conversation record of %s %s: %s", c->context_id, what,
               why ? why->message : "unknown");
}

static char *
record_dir (const char *store, const char *context_id)
{
    return x_asprintf ("conversations/%s/%s", store, context_id);
}

/* A context id that arrived from outside may be no path segment: such a context runs unrecorded. */
static bool
is_segment (const char *text)
{
    return text[0] && text[0] != '.' && ! strchr (text, '/') && strlen (text) < 200;
}

static bool
open_dir (struct conversation *c, bool create, struct mur_error **err)
{
    if (c->dir)
        return true;
    if (! is_segment (c->context_id)) {
        c->is_unusable = true;
        return mur_fail (err, E_CAP_011, "the context id is no name a folder can have");
    }
    _cleanup_free_ char *below = record_dir (c->store, c->context_id);
    int fd = create ? home_open_dir (below, err) : home_find_dir (below, err);
    if (fd < 0)
        return false;
    c->dir = fs_root_new (fd, below, NULL, false);
    return true;
}

bool
conversation_exists (const char *store, const char *context_id)
{
    if (! store || ! is_segment (context_id))
        return false;
    _cleanup_free_ char *below = record_dir (store, context_id);
    int fd = home_find_dir (below, NULL);
    if (fd < 0)
        return false;
    struct stat st;
    bool found = fstatat (fd, RECORD_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG (st.st_mode);
    close (fd);
    return found;
}

void
conversation_remove_unchanged (const struct conversation *c, const char *context_id, uint64_t bytes)
{
    _cleanup_free_ char *store = x_asprintf ("conversations/%s", c->store);
    _cleanup_free_ char *below = record_dir (c->store, context_id);
    _cleanup_close_ int store_fd = home_find_dir (store, NULL);
    _cleanup_close_ int fd = home_find_dir (below, NULL);
    struct stat st;
    if (store_fd < 0 || fd < 0 || fstatat (fd, RECORD_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        ! S_ISREG (st.st_mode) || (uint64_t)st.st_size != bytes)
        return;
    if (unlinkat (fd, RECORD_FILE, 0) == 0)
        (void)unlinkat (store_fd, context_id, AT_REMOVEDIR);
}

/* Every text below a message's content. */
static void
renew_fences (json_t *value, const struct fence_word *word)
{
    size_t i;
    const char *key;
    json_t *at;
    json_array_foreach (value, i, at) renew_fences (at, word);
    json_object_foreach (value, key, at) renew_fences (at, word);
    if (! json_is_string (value) || ! strstr (json_string_value (value), "</"))
        return;
    _cleanup_buf_ struct buf text = { 0 };
    fence_renew (&text, word, json_string_value (value));
    json_string_setn (value, text.data, text.len);
}

void
conversation_load (struct conversation *c, const struct fence_word *word, struct message_list *list)
{
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_buf_ struct buf text = { 0 };
    if (! c->store || c->is_unusable)
        return;
    if (! open_dir (c, false, &err)) {
        if (err)
            report (c, "could not be opened", err);
        return;
    }
    struct stat st;
    if (! fs_exists (c->dir, RECORD_FILE, &st))
        return;
    if (! fs_read (c->dir, RECORD_FILE, RECORD_LIMIT_BYTES, &text, &err)) {
        report (c, "could not be read", err);
        return;
    }
    size_t malformed = 0;
    for (char *line = text.data, *end = text.data + text.len; line < end;) {
        char *stop = memchr (line, '\n', (size_t)(end - line));
        size_t len = stop ? (size_t)(stop - line) : (size_t)(end - line);
        _cleanup_json_ json_t *value = json_loadb (line, len, 0, NULL);
        if (word && ! str_eq (json_get_string (value, "role"), "assistant"))
            renew_fences (json_object_get (value, "content"), word);
        struct message *m = json_is_object (value) ? message_from_record (value) : NULL;
        if (m)
            message_list_add (list, m);
        else if (len && ! json_is_object (value))
            malformed++;
        line += len + 1;
    }
    if (malformed && ! c->is_reported) {
        c->is_reported = true;
        diag_plain_warning ("the conversation record of %s has %zu lines that are no messages; "
                            "they were skipped",
                            c->context_id, malformed);
    }
}

static void
append_header (const struct conversation *c, struct buf *out)
{
    buf_puts (out, "{\"type\":\"murmur.record\",\"capsule\":");
    json_append_string (out, c->retain_owner, strlen (c->retain_owner));
    buf_printf (out, ",\"created_ms\":%llu}\n", (unsigned long long)clock_unix_ms ());
}

/* True when the first line of a record names its owner, whoever that is. */
static bool
has_header (const struct buf *text)
{
    const char *end = memchr (text->data, '\n', text->len);
    size_t len = end ? (size_t)(end - text->data) : text->len;
    _cleanup_json_ json_t *first = json_loadb (text->data, len, 0, NULL);
    return str_eq (json_get_string (first, "type"), "murmur.record");
}

/* A record from before the capsule retained anything gets the header by an atomic rewrite. */
static bool
adopt (struct conversation *c, struct mur_error **err)
{
    _cleanup_buf_ struct buf old = { 0 }, now = { 0 };
    if (! fs_read (c->dir, RECORD_FILE, RECORD_LIMIT_BYTES, &old, err))
        return false;
    if (old.len == 0 || has_header (&old))
        return true;
    append_header (c, &now);
    buf_append (&now, old.data, old.len);
    return fs_write (c->dir, RECORD_FILE, now.data, now.len, 0600, true, err);
}

void
conversation_adopt (const char *store, const char *context_id, const char *owner)
{
    if (! conversation_exists (store, context_id))
        return;
    struct conversation *c = conversation_new (store, context_id, owner);
    if (open_dir (c, false, NULL))
        (void)adopt (c, NULL);
    conversation_free (c);
}

/* Opens the file for appending; with a capsule that retains it begins with the header.
 */
static bool
open_file (struct conversation *c, struct mur_error **err)
{
    if (c->fd >= 0)
        return true;
    if (! open_dir (c, true, err))
        return false;
    if (c->retain_owner && fs_exists (c->dir, RECORD_FILE, NULL) && ! adopt (c, err))
        return false;
    c->fd = fs_open_append (c->dir, RECORD_FILE, 0600, err);
    if (c->fd < 0)
        return false;
    struct stat st;
    if (fstat (c->fd, &st) == 0 && (st.st_mode & 07777) != 0600)
        (void)fchmod (c->fd, 0600);
    if (c->retain_owner && st.st_size == 0) {
        _cleanup_buf_ struct buf header = { 0 };
        append_header (c, &header);
        if (! fd_write_all (c->fd, header.data, header.len))
            return mur_fail_errno (err, E_IO_003, "cannot write the record's header");
    }
    return true;
}

static bool
append_message (struct conversation *c, struct message *m, struct buf *line, struct mur_error **err)
{
    buf_truncate (line, 0);
    message_append_line (m, line);
    buf_putc (line, '\n');
    if (! fd_write_all (c->fd, line->data, line->len))
        return mur_fail_errno (err, E_IO_003, "cannot append a message");
    m->is_recorded = true;
    return true;
}

void
conversation_append (struct conversation *c, const struct message_list *list)
{
    if (! c->store || c->is_unusable)
        return;
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_buf_ struct buf line = { 0 };
    size_t first = list->len;
    while (first > 0 && ! list->items[first - 1]->is_recorded)
        first--;
    for (size_t i = first; i < list->len; i++)
        if (! open_file (c, &err) || ! append_message (c, list->items[i], &line, &err)) {
            report (c, "could not be written", err);
            return;
        }
}

void
conversation_append_one (struct conversation *c, struct message *m)
{
    if (! c->store || c->is_unusable)
        return;
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_buf_ struct buf line = { 0 };
    if (! open_file (c, &err) || ! append_message (c, m, &line, &err))
        report (c, "could not be written", err);
}
