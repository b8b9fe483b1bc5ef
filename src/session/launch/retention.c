/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/retention.h"
#include "fs/paths.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "home/conversations.h"
#include "session/conversation/conversation.h"
#include "session/state/session.h"

#include <fcntl.h>
#include <string.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static bool
is_older_than (uint64_t then_ms, uint64_t age_secs)
{
    uint64_t now_ms = clock_unix_ms ();
    return now_ms > then_ms && (now_ms - then_ms) / 1000 >= age_secs;
}

static void
record (struct session *s, const char *store, const char *reason, const struct strv *targets,
        struct trace_num messages_dropped)
{
    if (targets->len)
        TRACE (s->trace, NULL, retention, .store = store, .reason = reason, .removed = targets->len,
               .targets = targets->items, .messages_dropped = messages_dropped);
}

/* --- sessions --- */

/* The default work folder of a session that is gone; nothing below --workdir is ours to remove. */
static void
remove_work_folder (const struct session *s, const char *id)
{
    if (s->asked->work.dir)
        return;
    _cleanup_free_ char *path = x_asprintf ("%s/workdir", s->asked->file.dir);
    _cleanup_close_ int dir = open (path, DIR_FLAGS);
    if (dir >= 0)
        (void)fs_remove_tree_at (dir, id, NULL);
}

static bool
remove_session (const struct session *s, int group_fd, const char *id)
{
    if (! fs_remove_tree_at (group_fd, id, NULL))
        return false;
    remove_work_folder (s, id);
    return true;
}

static void
prune_sessions (struct session *s, const struct retain *retain)
{
    _cleanup_strv_ struct strv names = { 0 }, counted = { 0 }, aged = { 0 };
    _cleanup_close_ int group = home_find_records_group (s->asked->work.root, NULL);
    if (group < 0 || ! home_list_sessions (group, s->places.dirs.records_group, &names, NULL))
        return;
    for (size_t i = 0; i < names.len; i++) {
        const char *name = names.items[i];
        /* The floor: siblings that started after this session count, and stay. */
        if (! id_is_valid (name, "ses_") || strcmp (name, s->id.text) >= 0)
            continue;
        bool is_aged =
            retain->max_age_secs && is_older_than (id_time_ms (name), retain->max_age_secs);
        bool is_beyond = retain->max_count && i >= retain->max_count;
        if ((is_aged || is_beyond) && remove_session (s, group, name))
            strv_push (is_aged ? &aged : &counted, name);
    }
    record (s, "sessions", "max_sessions", &counted, TRACE_NO_NUM);
    record (s, "sessions", "max_age", &aged, TRACE_NO_NUM);
}

/* --- conversation records --- */

static bool
is_own (const struct session *s, const struct conversation_file *f)
{
    return str_eq (json_get_string (f->header, "capsule"), s->manifest->name);
}

/* The record this launch goes on with loses its front; no other record is touched. */
static void
cut_current (struct session *s, uint64_t max_messages)
{
    const char *store = s->policy->record_store, *context = s->asked->context_id;
    struct conversation_files files = { 0 };
    conversation_adopt (store, context, s->manifest->name);
    if (conversation_files_read (store, context, &files, NULL) && files.len == 1 &&
        is_own (s, &files.items[0])) {
        uint64_t dropped = 0;
        _cleanup_strv_ struct strv targets = { 0 };
        if (conversation_cut (&files.items[0], max_messages, &dropped, NULL) && dropped) {
            strv_push (&targets, context);
            record (s, "records", "max_messages", &targets, TRACE_NUM (dropped));
        }
    }
    conversation_files_free (&files);
}

static void
prune_records (struct session *s, uint64_t max_age_secs)
{
    struct conversation_files files = { 0 };
    _cleanup_strv_ struct strv targets = { 0 };
    if (conversation_files_read (s->policy->record_store, NULL, &files, NULL))
        for (size_t i = 0; i < files.len; i++) {
            const struct conversation_file *f = &files.items[i];
            bool is_current = str_eq (f->context_id, s->asked->context_id);
            if (! is_current && is_own (s, f) && is_older_than (f->touched_ms, max_age_secs) &&
                conversation_remove (f, NULL))
                strv_push (&targets, f->context_id);
        }
    record (s, "records", "max_age", &targets, TRACE_NO_NUM);
    conversation_files_free (&files);
}

void
retention_apply (struct session *s)
{
    const struct trace_block *trace = s->manifest->trace;
    const struct context *context = s->manifest->context;
    if (trace && trace->retain)
        prune_sessions (s, trace->retain);
    if (! context || ! context->retain || ! s->policy->record_store)
        return;
    if (context->retain->max_age_secs)
        prune_records (s, context->retain->max_age_secs);
    if (context->retain->max_count && s->asked->context_id)
        cut_current (s, context->retain->max_count);
}
