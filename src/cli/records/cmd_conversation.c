/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur conversation ls`, `show`, `rm` and `truncate` (spec/cli.md 3). They work on the files alone,
 * also while a session runs.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/ids.h"
#include "cli/line/args.h"
#include "cli/line/text_table.h"
#include "cli/records/commands.h"
#include "home/conversations.h"
#include "trace/read/text.h"

#include <string.h>

#define LINE_COLUMNS 200 /* of a message in `show` */

/* --- ls --- */

static struct small_text
size_text (uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
    struct small_text t;
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < ARRAY_LEN (units); unit++)
        value /= 1024;
    snprintf (t.text, sizeof (t.text), unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return t;
}

/* "2026-11-29 16:48:51", UTC. */
static struct small_text
second_text (uint64_t unix_ms)
{
    struct small_text t = time_text (unix_ms);
    t.text[10] = ' ';
    t.text[19] = '\0';
    return t;
}

static json_t *
record_json (const struct conversation_file *f)
{
    json_t *o = json_object ();
    const json_t *truncated = conversation_truncated (f);
    json_set_u64 (o, "bytes", f->bytes);
    json_set_string (o, "capsule", json_get_string (f->header, "capsule"));
    json_set_string (o, "context_id", f->context_id);
    json_set_u64 (o, "last_touched_ms", f->touched_ms);
    json_set_u64 (o, "messages", f->len);
    json_set_string (o, "path", f->path);
    json_set_string (o, "record", f->record);
    json_object_set_new (o, "truncated", truncated ? json_deep_copy (truncated) : json_null ());
    return o;
}

static void
print_one_line (const json_t *value)
{
    _cleanup_free_ char *text = json_text (value, JSON_TEXT_SORTED);
    out_printf ("%s\n", text);
}

static void
list_json (const struct conversation_files *all)
{
    _cleanup_json_ json_t *list = json_array ();
    for (size_t i = 0; i < all->len; i++)
        json_array_append_new (list, record_json (&all->items[i]));
    print_one_line (list);
}

static void
list_table (const struct conversation_files *all)
{
    static const char *const columns[] = { "RECORD", "CONTEXT",      "MESSAGES",
                                           "SIZE",   "LAST TOUCHED", "TRUNCATED" };
    _cleanup_text_table_ struct text_table table = { 0 };
    for (size_t i = 0; i < ARRAY_LEN (columns); i++)
        text_table_column (&table, columns[i]);
    for (size_t i = 0; i < all->len; i++) {
        const struct conversation_file *f = &all->items[i];
        const json_t *truncated = conversation_truncated (f);
        _cleanup_free_ char *messages = x_asprintf ("%zu", f->len);
        _cleanup_free_ char *dropped =
            truncated
                ? x_asprintf ("%lu dropped", (unsigned long)member_number (truncated, "dropped"))
                : x_strdup ("-");
        text_table_add (&table, f->record);
        text_table_add (&table, f->context_id);
        text_table_add (&table, messages);
        text_table_add (&table, size_text (f->bytes).text);
        text_table_add (&table, second_text (f->touched_ms).text);
        text_table_add (&table, dropped);
    }
    if (all->len)
        text_table_print (&table);
    else
        out_puts ("No conversation records.\n");
}

/* --- ls --message --- */

/* 1-based place of a message in a record, 0 when it is not there. */
static size_t
position_of (const struct conversation_file *f, const char *id)
{
    for (size_t i = 0; i < f->len; i++)
        if (str_eq (f->lines[i].id, id))
            return i + 1;
    return 0;
}

/* Whether a cut took it: an id older than the oldest survivor counts, whether or not it ever was in
 * there. */
static bool
was_dropped (const struct conversation_file *f, const char *id)
{
    const char *oldest = json_get_string (conversation_truncated (f), "oldest_surviving_id");
    return oldest && id_is_valid (id, "msg_") && strcmp (id, oldest) < 0;
}

static json_t *
location_json (const struct conversation_file *f, size_t position)
{
    json_t *o = json_object ();
    json_set_string (o, "context_id", f->context_id);
    json_set_string (o, "path", f->path);
    json_set_string (o, "record", f->record);
    json_set_string (o, "status", position ? "present" : "truncated");
    if (position) {
        json_set_u64 (o, "position", position);
        json_set_u64 (o, "total", f->len);
        return o;
    }
    const json_t *truncated = conversation_truncated (f);
    json_set_u64 (o, "dropped", member_number (truncated, "dropped"));
    json_set_string (o, "oldest_surviving_id", json_get_string (truncated, "oldest_surviving_id"));
    return o;
}

static void
find_message (const struct conversation_files *all, const char *id, bool is_json)
{
    _cleanup_json_ json_t *locations = json_array ();
    for (size_t i = 0; i < all->len; i++) {
        const struct conversation_file *f = &all->items[i];
        size_t position = position_of (f, id);
        if (! position && ! was_dropped (f, id))
            continue;
        json_array_append_new (locations, location_json (f, position));
        if (is_json)
            continue;
        if (position)
            out_printf ("present:   %s is message %zu of %zu in %s/%s\n", id, position, f->len,
                        f->record, f->context_id);
        else
            out_printf ("truncated: %s was dropped from %s/%s\n", id, f->record, f->context_id);
    }
    bool is_found = json_array_size (locations) > 0;
    if (is_json) {
        _cleanup_json_ json_t *answer = json_object ();
        json_object_set (answer, "locations", locations);
        json_set_string (answer, "message_id", id);
        json_set_string (answer, "status", is_found ? "found" : "unknown");
        print_one_line (answer);
    } else if (! is_found) {
        out_printf ("unknown:   %s is in no conversation record\n", id);
    }
}

int
cmd_conversation_ls (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_ (conversation_files_free) struct conversation_files all = { 0 };
    if (! conversation_files_read (cli_value (args, "--record"), NULL, &all, err))
        return CLI_FAILED;
    bool is_json = cli_has (args, "--json");
    const char *message = cli_value (args, "--message");
    if (message)
        find_message (&all, message, is_json);
    else if (is_json)
        list_json (&all);
    else
        list_table (&all);
    return CLI_OK;
}

/* --- one record --- */

/* The one record the command means, the only item of *all. */
static bool
choose (const struct cli_args *args, struct conversation_files *all, struct mur_error **err)
{
    const char *context = cli_positional (args, "CONTEXT_ID");
    const char *record = cli_value (args, "--record");
    if (! conversation_files_read (record, context, all, err))
        return false;
    if (all->len == 1)
        return true;
    if (all->len == 0) {
        mur_fail (err, E_CNV_001, "no conversation \"%s\" is recorded%s%s", context,
                  record ? " in " : "", record ? record : "");
        return mur_hint (err, "`mur conversation list` shows what is");
    }
    _cleanup_strv_ struct strv stores = { 0 };
    for (size_t i = 0; i < all->len; i++)
        strv_push (&stores, all->items[i].record);
    _cleanup_free_ char *list = strv_join (&stores, ", ");
    mur_fail (err, E_CNV_002, "\"%s\" is recorded in %zu stores: %s", context, all->len, list);
    return mur_hint (err, "say which with --record");
}

/* What a message says, for one line: its text, else what kinds of blocks it has. Owned. */
static char *
message_text (const json_t *message)
{
    const json_t *content = json_object_get (message, "content");
    if (json_is_string (content))
        return x_strdup (json_string_value (content));
    struct buf text = { 0 };
    size_t i;
    const json_t *block;
    json_array_foreach (content, i, block)
    {
        const char *words = json_get_string (block, "text");
        const char *name = json_get_string (block, "name");
        const char *type = json_get_string (block, "type");
        buf_puts (&text, text.len ? " " : "");
        if (words)
            buf_puts (&text, words);
        else
            buf_printf (&text, "[%s%s%s]", type ? type : "block", name ? " " : "",
                        name ? name : "");
    }
    return buf_steal (&text);
}

/* How many lines follow the first, but for the mark that ends untrusted text. */
static size_t
lines_more (const char *text)
{
    size_t count = 0;
    for (const char *at = text; (at = strchr (at, '\n'));)
        count += *++at && ! str_starts (at, "</untrusted-content>");
    return count;
}

static void
show_message (struct report *r, size_t number, const char *role, const char *text, bool is_whole)
{
    size_t first = strcspn (text, "\n"), more = lines_more (text);
    _cleanup_free_ char *line = x_strndup (text, first);
    _cleanup_free_ char *cut = is_whole ? x_strdup (line) : cut_text (line, LINE_COLUMNS);
    report_text (r, "%4zu  %-10s %s", number, role, cut);
    if (more && ! is_whole)
        report_text (r, "  (%zu more line%s)", more, more == 1 ? "" : "s");
    report_text (r, "\n");
    for (const char *at = text + first; is_whole && *at;) {
        size_t len = strcspn (++at, "\n");
        if (len && ! str_starts (at, "</untrusted-content>"))
            report_text (r, "%17s%.*s\n", "", (int)len, at);
        at += len;
    }
}

static void
show_text (const struct conversation_file *f, bool is_whole)
{
    struct report r = { 0 };
    report_text (&r, "record:   %s\ncontext:  %s\nmessages: %zu\n", f->record, f->context_id,
                 f->len);
    for (size_t i = 0; i < f->len; i++) {
        _cleanup_free_ char *text = message_text (f->lines[i].message);
        show_message (&r, i + 1, member_text (f->lines[i].message, "role"),
                      text_behind_fence (text), is_whole);
    }
    _cleanup_buf_ struct buf out = { 0 };
    report_finish (&r, false, &out);
    out_write (out.data, out.len);
}

static void
show_json (const struct conversation_file *f)
{
    _cleanup_json_ json_t *answer = json_object ();
    json_t *messages = json_array ();
    for (size_t i = 0; i < f->len; i++)
        json_array_append (messages, f->lines[i].message);
    json_t *header = json_null ();
    if (f->header) {
        const json_t *truncated = conversation_truncated (f);
        header = json_object ();
        json_set_string (header, "capsule", json_get_string (f->header, "capsule"));
        json_set_u64 (header, "created_ms", member_number (f->header, "created_ms"));
        json_object_set_new (header, "truncated",
                             truncated ? json_deep_copy (truncated) : json_null ());
    }
    json_t *harness = conversation_harness (f);
    json_set_string (answer, "record", f->record);
    json_set_string (answer, "context_id", f->context_id);
    json_set_string (answer, "dir", f->dir);
    json_object_set_new (answer, "header", header);
    json_object_set_new (answer, "messages", messages);
    json_object_set_new (answer, "harness_session", harness ? harness : json_null ());
    _cleanup_free_ char *text = json_pretty (answer, JSON_TEXT_ORDERED);
    out_printf ("%s\n", text);
}

int
cmd_conversation_show (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_ (conversation_files_free) struct conversation_files all = { 0 };
    if (! choose (args, &all, err))
        return CLI_FAILED;
    if (cli_has (args, "--json"))
        show_json (&all.items[0]);
    else
        show_text (&all.items[0], cli_has (args, "--full"));
    return CLI_OK;
}

int
cmd_conversation_rm (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_ (conversation_files_free) struct conversation_files all = { 0 };
    if (! choose (args, &all, err) || ! conversation_remove (&all.items[0], err))
        return CLI_FAILED;
    out_printf ("removed %s (%zu messages)\n", all.items[0].dir, all.items[0].len);
    return CLI_OK;
}

int
cmd_conversation_truncate (const struct cli_args *args, struct mur_error **err)
{
    uint64_t keep = cli_number (args, "--keep");
    if (keep == 0) {
        mur_fail (err, E_CNV_003, "--keep 0 would leave no message");
        mur_hint (err, "`mur conversation rm %s` removes the conversation",
                  cli_positional (args, "CONTEXT_ID"));
        return CLI_FAILED;
    }
    _cleanup_ (conversation_files_free) struct conversation_files all = { 0 };
    uint64_t dropped;
    if (! choose (args, &all, err) || ! conversation_cut (&all.items[0], keep, &dropped, err))
        return CLI_FAILED;
    const struct conversation_file *f = &all.items[0];
    if (dropped)
        out_printf ("dropped %lu messages from %s (%lu kept; oldest surviving is %s)\n",
                    (unsigned long)dropped, f->path, (unsigned long)(f->len - dropped),
                    f->lines[dropped].id);
    else
        out_printf ("%s already holds %zu messages; nothing dropped\n", f->path, f->len);
    return CLI_OK;
}
