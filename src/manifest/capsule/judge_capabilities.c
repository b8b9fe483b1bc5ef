/* SPDX-License-Identifier: Apache-2.0
 *
 * Judging one capabilities block, of the capsule or of an artifact entry (spec/manifest.md 6).
 *
 * Only what the file itself shows: network entries, scopes and read-only paths are judged when
 * staging (policy/).
 */
#include "artifact/names/name.h"
#include "base/alloc.h"
#include "base/text.h"
#include "manifest/capsule/capsule_schema.h"
#include "manifest/capsule/judges_internal.h"
#include "net/allow.h"

#include <ctype.h>
#include <string.h>

/* The block being judged. */
struct block {
    struct reading *rd;
    const char *path; /* "capabilities" or "artifacts[2].capabilities" */
    struct text_set shell_allow;
    struct text_set interpreters;
};

static char *
at (const struct block *b, const char *key)
{
    return path_of (b->rd, "%s.%s", b->path, key);
}

static char *
at_index (const struct block *b, const char *key, size_t i)
{
    return path_of (b->rd, "%s.%s[%zu]", b->path, key, i);
}

static void
escape_bytes (struct buf *out, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        buf_printf (out, "\\x%02x", (unsigned char)bytes[i]);
}

/* Text as a message may show it: controls and blanks nobody sees escaped. */
static char *
escaped (const struct block *b, const char *text)
{
    _cleanup_buf_ struct buf out = { 0 };
    buf_putc (&out, '"');
    for (size_t len; *text; text += len) {
        unsigned char c = (unsigned char)*text;
        len = 1;
        if (c == '"' || c == '\\')
            buf_printf (&out, "\\%c", c);
        else if (c == '\n' || c == '\t' || c == '\r')
            buf_printf (&out, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
        else if (c < 0x20 || c == 0x7f || (c >= 0x80 && (len = utf8_space_len (text))))
            escape_bytes (&out, text, len);
        else
            buf_putc (&out, (char)c);
    }
    buf_putc (&out, '"');
    return arena_strdup (b->rd->r.arena, out.data);
}

static bool
judge_peer_fetch (const struct block *b, const struct capabilities *c, struct mur_error **err)
{
    if (! c->peer_fetch)
        return true;
    const struct str_list *allow = &c->peer_fetch->allow;
    if (! allow->len)
        return refuse_value (b->rd, err, at (b, "peer_fetch.allow"),
                             "the list is empty: remove the block to deny");
    _cleanup_allow_list_ struct allow_list rules = { 0 };
    for (size_t i = 0; i < allow->len; i++) {
        struct mur_error *why = NULL;
        if (allow_list_add (&rules, allow->items[i], &why))
            continue;
        refuse_value (b->rd, err, at_index (b, "peer_fetch.allow", i), "%s", why->message);
        if (why->hint)
            mur_hint (err, "%s", why->hint);
        mur_error_free (why);
        return false;
    }
    return true;
}

/* --- shell --- */

static const char *
binary_problem (const char *name)
{
    if (! *name)
        return "it is empty";
    if (strchr (name, '/'))
        return "it has a '/': write the bare name of the program";
    if (strcmp (name, ".") == 0 || strcmp (name, "..") == 0)
        return "it names a directory";
    for (const char *p = name; *p; p++)
        if (utf8_space_len (p))
            return "it has a blank: one entry names one program, without arguments";
    return NULL;
}

static bool
judge_binary (const struct block *b, const char *list, size_t i, const char *binary,
              struct mur_error **err)
{
    const char *path = path_of (b->rd, "%s.shell.%s[%zu].binary", b->path, list, i);
    if (text_is_blank (binary))
        return refuse_value (b->rd, err, path, "the program must be named");
    if (! text_set_has (&b->shell_allow, binary))
        return refuse_value (b->rd, err, path, "%s is not in shell.allow", escaped (b, binary));
    return true;
}

static bool
judge_interpreter (const struct block *b, const struct cap_shell *s, size_t i,
                   struct mur_error **err)
{
    const struct interpreter_runtime *g = &s->interpreter_runtime.items[i];
    if (! judge_binary (b, "interpreter_runtime", i, g->binary, err))
        return false;
    const char *path = path_of (b->rd, "%s.shell.interpreter_runtime[%zu].dirs", b->path, i);
    if (! g->dirs.len)
        return refuse_value (b->rd, err, path, "at least one directory is required");
    for (size_t j = 0; j < g->dirs.len; j++) {
        const struct interpreter_dir *dir = &g->dirs.items[j];
        if (text_is_blank (dir->path) || dir->path[0] != '/')
            return refuse_value (b->rd, err, path_of (b->rd, "%s[%zu].path", path, j),
                                 "it must be an absolute directory");
        if (! dir->list_dir.is_set)
            return refuse_value (b->rd, err, path_of (b->rd, "%s[%zu].list_dir", path, j),
                                 "it must be said: true or false");
    }
    return true;
}

static bool
judge_staged (const struct block *b, const struct cap_shell *s, size_t i, struct mur_error **err)
{
    const struct staged_runtime *g = &s->staged_runtime.items[i];
    if (! judge_binary (b, "staged_runtime", i, g->binary, err))
        return false;
    const char *path = path_of (b->rd, "%s.shell.staged_runtime[%zu]", b->path, i);
    if (text_set_has (&b->interpreters, g->binary))
        return refuse_value (b->rd, err, path_of (b->rd, "%s.binary", path),
                             "%s has an interpreter_runtime grant too; one of both",
                             escaped (b, g->binary));
    if (text_is_blank (g->source_path) || g->source_path[0] != '/')
        return refuse_value (b->rd, err, path_of (b->rd, "%s.source_path", path),
                             "it must be an absolute directory");
    if (! g->pin)
        return refuse_value (b->rd, err, path_of (b->rd, "%s.pin", path), "it must not be blank");
    return true;
}

static bool
judge_shell (struct block *b, const struct capabilities *c, struct mur_error **err)
{
    const struct cap_shell *s = c->shell;
    if (! s)
        return true;
    if (! s->allow.len)
        return refuse_value (b->rd, err, at (b, "shell.allow"),
                             "the list is empty: remove the shell block to deny");
    for (size_t i = 0; i < s->allow.len; i++) {
        const char *why = binary_problem (s->allow.items[i]);
        if (why)
            return refuse_value (b->rd, err, at_index (b, "shell.allow", i), "%s is refused: %s",
                                 escaped (b, s->allow.items[i]), why);
    }
    b->shell_allow = text_set_of (b->rd, s->allow.items, s->allow.len);
    const char **interpreters =
        arena_new_array (b->rd->r.arena, const char *, s->interpreter_runtime.len + 1);
    for (size_t i = 0; i < s->interpreter_runtime.len; i++) {
        if (! judge_interpreter (b, s, i, err))
            return false;
        interpreters[i] = s->interpreter_runtime.items[i].binary;
    }
    b->interpreters = text_set_of (b->rd, interpreters, s->interpreter_runtime.len);
    for (size_t i = 0; i < s->staged_runtime.len; i++)
        if (! judge_staged (b, s, i, err))
            return false;
    return true;
}

/* --- spawn, install --- */

static bool
judge_full_names (const struct block *b, const char *key, const struct str_list *list,
                  struct mur_error **err)
{
    for (size_t i = 0; i < list->len; i++) {
        struct mur_error *why = NULL;
        if (name_check_full (list->items[i], E_MAN_003, NULL, &why))
            continue;
        refuse_value (b->rd, err, at_index (b, key, i), "%s", why->message);
        if (why->hint)
            mur_hint (err, "%s", why->hint);
        mur_error_free (why);
        return false;
    }
    return true;
}

struct spawn_name {
    const char *full;
    size_t index;
};

static int
compare_bare (const void *x, const void *y)
{
    const struct spawn_name *a = x, *b = y;
    int order = strcmp (name_bare (a->full), name_bare (b->full));
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

/* Two children of one bare name could not be told apart inside the session. */
static bool
judge_spawn_bare_names (const struct block *b, const struct str_list *list, struct mur_error **err)
{
    _cleanup_free_ struct spawn_name *sorted = x_new_array (struct spawn_name, list->len + 1);
    for (size_t i = 0; i < list->len; i++)
        sorted[i] = (struct spawn_name){ list->items[i], i };
    qsort (sorted, list->len, sizeof *sorted, compare_bare);
    for (size_t i = 1; i < list->len; i++)
        if (strcmp (name_bare (sorted[i - 1].full), name_bare (sorted[i].full)) == 0 &&
            strcmp (sorted[i - 1].full, sorted[i].full) != 0)
            return refuse_value (b->rd, err, at_index (b, "spawn.allow", sorted[i].index),
                                 "%s and %s share the name %s", sorted[i - 1].full, sorted[i].full,
                                 name_bare (sorted[i].full));
    return true;
}

static bool
judge_spawn (const struct block *b, const struct capabilities *c, struct mur_error **err)
{
    const struct cap_spawn *s = c->spawn;
    if (! s)
        return true;
    if (! judge_full_names (b, "spawn.allow", &s->allow, err) ||
        ! judge_spawn_bare_names (b, &s->allow, err) ||
        ! judge_full_names (b, "spawn.workdir_snapshot", &s->workdir_snapshot, err))
        return false;
    struct text_set allowed = text_set_of (b->rd, s->allow.items, s->allow.len);
    for (size_t i = 0; i < s->workdir_snapshot.len; i++)
        if (! text_set_has (&allowed, s->workdir_snapshot.items[i]))
            return refuse_value (b->rd, err, at_index (b, "spawn.workdir_snapshot", i),
                                 "%s is not in spawn.allow", s->workdir_snapshot.items[i]);
    return true;
}

static bool
judge_patterns (const struct block *b, const char *key, const struct str_list *list,
                struct mur_error **err)
{
    for (size_t i = 0; i < list->len; i++) {
        _cleanup_free_ char *why = pattern_problem (list->items[i]);
        if (why)
            return refuse_value (b->rd, err, at_index (b, key, i), "%s is refused: it %s",
                                 escaped (b, list->items[i]), why);
    }
    return true;
}

static bool
judge_install_from (const struct block *b, const struct str_list *from, struct mur_error **err)
{
    bool has_stores = false, has_sources = false;
    for (size_t i = 0; i < from->len; i++) {
        bool *seen = strcmp (from->items[i], "stores") == 0    ? &has_stores
                     : strcmp (from->items[i], "sources") == 0 ? &has_sources
                                                               : NULL;
        const char *path = at_index (b, "install.from", i);
        if (! seen)
            return refuse_value (b->rd, err, path,
                                 "%s is refused: it must be one of: stores, sources",
                                 escaped (b, from->items[i]));
        if (*seen)
            return refuse_value (b->rd, err, path, "%s stands twice", from->items[i]);
        *seen = true;
    }
    if (from->is_set && ! has_stores)
        return refuse_value (b->rd, err, at (b, "install.from"),
                             "it must hold stores, alone or with sources");
    return true;
}

static bool
judge_install (const struct block *b, const struct capabilities *c, struct mur_error **err)
{
    const struct cap_install *g = c->install;
    if (! g)
        return true;
    if (! g->skill.len && ! g->tool.len)
        return refuse_value (
            b->rd, err, at (b, "install"),
            "it grants nothing: list something in skill or tool, or remove the block");
    return judge_patterns (b, "install.skill", &g->skill, err) &&
           judge_patterns (b, "install.tool", &g->tool, err) &&
           judge_install_from (b, &g->from, err);
}

/* --- small blocks --- */

static bool
judge_host_sockets (const struct block *b, const struct capabilities *c, struct mur_error **err)
{
    for (size_t i = 0; c->network && i < c->network->host_sockets.len; i++) {
        const char *path = c->network->host_sockets.items[i];
        if (path[0] != '/' || ! path[1])
            return refuse_value (b->rd, err,
                                 path_of (b->rd, "%s.network.host_sockets[%zu]", b->path, i),
                                 "it must be the absolute path of a socket");
    }
    return true;
}

static bool
require_flag (const struct block *b, const char *key, const struct opt_bool *flag,
              struct mur_error **err)
{
    return flag->is_set || refuse_value (b->rd, err, at (b, key), "it must be said: true or false");
}

static bool
judge_flags (const struct block *b, const struct capabilities *c, struct mur_error **err)
{
    return (! c->task_io || require_flag (b, "task_io.read", &c->task_io->read, err)) &&
           (! c->conversation ||
            require_flag (b, "conversation.read", &c->conversation->read, err)) &&
           (! c->plan || require_flag (b, "plan.submit", &c->plan->submit, err));
}

static void
drop_blanks (struct str_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->len; i++)
        if (*list->items[i])
            list->items[kept++] = list->items[i];
    list->len = kept;
}

bool
judge_capabilities (struct reading *rd, struct capabilities *c, const char *path,
                    struct mur_error **err)
{
    struct block b = { .rd = rd, .path = path };
    if (! judge_peer_fetch (&b, c, err) || ! judge_shell (&b, c, err) ||
        ! judge_spawn (&b, c, err) || ! schema_check (&rd->r, &capabilities_schema, c, path, err) ||
        ! judge_flags (&b, c, err) || ! judge_host_sockets (&b, c, err) ||
        ! judge_install (&b, c, err))
        return false;
    if (c->filesystem)
        drop_blanks (&c->filesystem->read_only);
    if (c->written_containment)
        containment_parse (c->written_containment, &c->containment);
    return true;
}
