/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/read/body.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "fs/root.h"
#include "trace/read/sent_messages.h"
#include "trace/read/text.h"
#include "trace/read/text_index.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define LARGEST_BODY    ((size_t)1 << 30)
#define SHORTEST_PREFIX 8

static const char *const part_keys[] = { "system",    "system_sha", "tools",
                                         "tools_sha", "response",   "response_sha" };

/* --- by digest --- */

static void
offer_digest (struct strv *matches, const char *digest, const char *prefix)
{
    if (digest && str_starts (digest, prefix) && ! strv_contains (matches, digest))
        strv_push (matches, digest);
}

/* Every recorded digest that begins so. */
static void
find_digests (const struct trace *t, const char *prefix, struct strv *matches)
{
    for (size_t i = 0; i < t->count; i++) {
        const json_t *o = trace_at (t, i)->object;
        for (size_t k = 1; k < ARRAY_LEN (part_keys); k += 2)
            offer_digest (matches, json_get_string (o, part_keys[k]), prefix);
        offer_digest (matches, json_get_string (o, "system_prompt_sha256"), prefix);
        size_t n;
        const json_t *sha;
        json_array_foreach (json_object_get (o, "message_shas"), n, sha)
            offer_digest (matches, json_string_value (sha), prefix);
    }
}

static bool
is_digest_prefix (const char *text)
{
    size_t len = strlen (text);
    return len >= SHORTEST_PREFIX && len <= SHA256_HEX_LEN &&
           strspn (text, "0123456789abcdef") == len;
}

static char *
resolve_prefix (const struct trace *t, const char *prefix, struct mur_error **err)
{
    _cleanup_strv_ struct strv matches = { 0 };
    find_digests (t, prefix, &matches);
    if (matches.len == 1)
        return x_strdup (matches.items[0]);
    if (matches.len == 0)
        return mur_fail (err, E_TRC_001, "no body recorded in %s has a digest beginning with %s",
                         t->path, prefix),
               NULL;
    _cleanup_free_ char *list = strv_join (&matches, "\n  ");
    mur_fail (err, E_TRC_001, "%s begins %zu digests:\n  %s", prefix, matches.len, list);
    return NULL;
}

/* --- by part and turn --- */

/* The digest key of a part, or NULL; *index is set for message:<i>. */
static const char *
part_key (const char *selector, size_t *index)
{
    for (size_t k = 0; k < ARRAY_LEN (part_keys); k += 2)
        if (str_eq (selector, part_keys[k]))
            return part_keys[k + 1];
    if (! str_starts (selector, "message:"))
        return NULL;
    const char *digits = selector + strlen ("message:");
    if (! isdigit ((unsigned char)*digits))
        return NULL;
    char *end;
    errno = 0;
    *index = strtoul (digits, &end, 10);
    return *end || errno ? NULL : "message_shas";
}

static bool
is_agent_turn (const struct trace_event *e)
{
    return str_eq (e->type, "inference") && ! member_has (e->object, "origin") &&
           ! str_eq (json_get_string (e->object, "decision"), "error");
}

/* "0, 1, 2": the turn numbers there are, each once. */
static char *
turn_list (const struct trace *t)
{
    struct buf turns = { 0 };
    _cleanup_text_index_ struct text_index seen = { 0 };
    for (const struct trace_event *e = NULL; (e = trace_next (t, "inference", e));) {
        char text[24];
        uint32_t unused;
        snprintf (text, sizeof (text), "%lu", (unsigned long)member_number (e->object, "turn"));
        if (! is_agent_turn (e) || text_index_get (&seen, text, &unused))
            continue;
        text_index_put (&seen, text, 0);
        buf_printf (&turns, "%s%s", turns.len ? ", " : "", text);
    }
    buf_puts (&turns, turns.len ? "" : "none");
    return buf_steal (&turns);
}

/* The digest of a part of one turn, borrowed; NULL when the line has none. */
static const char *
digest_of (const struct trace *t, const struct trace_event *e, const char *key, size_t index)
{
    const json_t *value = json_object_get (e->object, key);
    return json_is_array (value) ? sent_sha_at (t, e, index) : json_string_value (value);
}

/* The agent's next line of a turn number, or NULL. */
static const struct trace_event *
next_of_turn (const struct trace *t, uint64_t turn, const struct trace_event *after)
{
    while ((after = trace_next (t, "inference", after)))
        if (is_agent_turn (after) && member_number (after->object, "turn") == turn)
            return after;
    return NULL;
}

static void
refuse_ambiguous (const struct trace *t, uint64_t turn, const char *key, size_t index,
                  struct mur_error **err)
{
    _cleanup_buf_ struct buf several = { 0 };
    size_t count = 0;
    for (const struct trace_event *e = NULL; (e = next_of_turn (t, turn, e)); count++) {
        size_t here = e->index;
        buf_printf (&several, "\n  %s", member_text (e->object, "task_id"));
        const char *digest = digest_of (t, e, key, index);
        buf_printf (&several, "  %s", digest ? digest : "no hash");
        e = trace_at (t, here);
    }
    mur_fail (err, E_TRC_001, "turn %lu is in %zu tasks:%s", (unsigned long)turn, count,
              several.data);
    mur_hint (err, "name the body by its digest: mur trace show --body <digest>");
}

static const struct trace_event *
find_turn (const struct trace *t, const char *selector, const char *key, size_t index,
           const uint64_t *turn, struct mur_error **err)
{
    const struct trace_event *found = turn ? next_of_turn (t, *turn, NULL) : NULL;
    size_t at = found ? found->index : 0;
    if (found && ! next_of_turn (t, *turn, found))
        return trace_at (t, at);
    if (found)
        return refuse_ambiguous (t, *turn, key, index, err), NULL;
    _cleanup_free_ char *turns = turn_list (t);
    if (turn)
        mur_fail (err, E_TRC_001, "there is no turn %lu; turns of this session: %s",
                  (unsigned long)*turn, turns);
    else
        mur_fail (err, E_TRC_001, "--body %s needs --turn; turns of this session: %s", selector,
                  turns);
    return NULL;
}

static char *
resolve_part (const struct trace *t, const char *selector, const uint64_t *turn,
              struct mur_error **err)
{
    size_t index = 0;
    const char *key = part_key (selector, &index);
    if (! key) {
        mur_fail (err, E_TRC_001, "\"%s\" selects no body", selector);
        mur_hint (err,
                  "system, tools, response or message:<i> with --turn, or at least %d "
                  "lower-case characters of a digest",
                  SHORTEST_PREFIX);
        return NULL;
    }
    const struct trace_event *e = find_turn (t, selector, key, index, turn, err);
    if (! e)
        return NULL;
    size_t sent = sent_count (e->object);
    bool is_listed = json_is_array (json_object_get (e->object, "message_shas"));
    const char *digest = digest_of (t, e, key, index);
    if (digest)
        return x_strdup (digest);
    if (str_eq (key, "message_shas") && is_listed)
        return mur_fail (err, E_TRC_001, "turn %lu sent %zu messages: message:0 to message:%zu",
                         (unsigned long)*turn, sent, sent - 1),
               NULL;
    mur_fail (err, E_TRC_001, "turn %lu recorded no hash of its %s (trace.capture: none)",
              (unsigned long)*turn, selector);
    mur_hint (err,
              "set trace.capture: content in the manifest to keep bodies from the next run on");
    return NULL;
}

bool
trace_body (const struct trace *t, const char *records_dir, const char *selector,
            const uint64_t *turn, struct buf *out, struct mur_error **err)
{
    _cleanup_free_ char *digest = is_digest_prefix (selector)
                                      ? resolve_prefix (t, selector, err)
                                      : resolve_part (t, selector, turn, err);
    if (! digest)
        return false;
    _cleanup_close_ int dir = open (records_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", records_dir);
    _cleanup_ (fs_root_freep) struct fs_root *root =
        fs_root_new (steal_fd (&dir), records_dir, NULL, true);
    _cleanup_free_ char *name = x_asprintf ("blobs/%s", digest);
    _cleanup_error_ struct mur_error *caught = NULL;
    if (fs_read (root, name, LARGEST_BODY, out, &caught))
        return true;
    if (caught->code != E_IO_001)
        return mur_propagate (err, steal_ptr (&caught));
    mur_fail (err, E_TRC_001, "%s is recorded, but no body was stored for it (trace.capture: meta)",
              digest);
    return mur_hint (err, "set trace.capture: content in the manifest to keep bodies from the next "
                          "run on");
}
