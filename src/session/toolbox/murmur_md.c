/* SPDX-License-Identifier: Apache-2.0 */
#include "session/toolbox/murmur_md.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/version.h"
#include "sandbox/host/host.h"
#include "session/state/session.h"
#include "session/toolbox/system_prompt.h"
#include "spawn/child/spawner.h"
#include "spawn/formation/membership.h"

#include <string.h>

#define DESCRIPTION_LIMIT 200

/* One line of plain text: what a publisher wrote cannot shape this file. */
static void
append_description (struct buf *out, const char *text)
{
    size_t characters = 0;
    bool blank = false;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == ' ' || *c == '\n' || *c == '\t' || *c == '\r') {
            blank = true;
            continue;
        }
        if (*c == '`' || *c < 0x20 || *c == 0x7f)
            continue;
        bool starts_character = (*c & 0xc0) != 0x80;
        if (starts_character && characters + blank >= DESCRIPTION_LIMIT) {
            buf_puts (out, "…");
            return;
        }
        if (blank && characters) {
            buf_putc (out, ' ');
            characters++;
        }
        blank = false;
        characters += starts_character;
        buf_putc (out, (char)*c);
    }
}

static void
append_entry (struct buf *out, const struct tool_entry *t)
{
    buf_printf (out, "- `%s` %s", t->name, t->artifact ? t->artifact->version : "0.0.0");
    if (t->description) {
        buf_puts (out, ": ");
        append_description (out, t->description);
    }
    buf_putc (out, '\n');
}

static void
append_section (const struct session *s, struct buf *out, const char *title, bool skills)
{
    buf_printf (out, "\n## %s\n\n", title);
    size_t start = out->len;
    for (size_t i = 0; i < s->kit.tool_count; i++)
        if (s->kit.tools[i].is_skill == skills)
            append_entry (out, &s->kit.tools[i]);
    for (size_t i = 0; skills && i < s->kit.artifact_count; i++)
        if (s->kit.artifacts[i].is_prompt)
            buf_printf (out, "- `%s` %s (bound as the system prompt)\n",
                        s->kit.artifacts[i].tool_name, s->kit.artifacts[i].version);
    if (out->len == start)
        buf_puts (out, "none\n");
}

static void
append_identity (const struct session *s, const char *url, struct buf *out)
{
    buf_printf (out, "\n## Identity\n\n- Capsule: %s %s\n- Session: %s\n- URL: %s\n",
                s->manifest->name, s->manifest->version, s->id.text, url ? url : "not bound yet");
    if (s->asked->launcher.membership)
        buf_printf (out, "- Member: %s\n", membership_member (s->asked->launcher.membership));
    if (s->asked->launcher.formation_id)
        buf_printf (out, "- Formation: %s\n", s->asked->launcher.formation_id);
}

static void
append_capsule (const struct session *s, struct buf *out)
{
    buf_printf (out, "\n## Capsule\n\n- Model: %s\n- Work folder: %s\n", s->choices.primary.model,
                s->places.work_path);
    buf_printf (out,
                "- Runtime directory: %s (read-only; WASM tools without a scope open it as "
                "murmur-runtime/)\n",
                s->places.dirs.runtime_path);
    buf_puts (out, "- Writable: the work folder\n- Network: ");
    for (size_t i = 0; i < s->policy->network.allow.len; i++)
        buf_printf (out, "%s%s", i ? ", " : "", s->policy->network.allow.items[i]);
    buf_printf (out, "%s\n", s->policy->network.allow.len ? "" : "none");
}

static void
append_limits (const struct session *s, struct buf *out)
{
    buf_puts (out, "\n## Limits\n\n- ");
    limit_parts_append (s, out);
    if (s->choices.primary.window)
        buf_printf (out, "\n- Context budget: %llu tokens",
                    (unsigned long long)s->choices.primary.input_budget);
    else
        buf_puts (out, "\n- Context budget: unknown");
    bool compacts = s->choices.primary.window && session_has_compaction_hook (s);
    buf_printf (out, "; compaction is %sconfigured\n", compacts ? "" : "not ");
    if (s->policy->commands.allow.len)
        buf_printf (out, "- The work folder with temp and home: at most %llu bytes\n",
                    (unsigned long long)s->policy->resources.workdir_max_bytes.value);
}

/* What a command meets, by the tier commands run under; the kernel's refusals only where there are
 * some. */
static void
append_commands (const struct session *s, struct buf *out)
{
    static const char *const refusals[] = {
        [TIER_NONE] = "",
        [TIER_SECCOMP] = "The kernel refuses them every network but the allowlist above.\n",
        [TIER_LANDLOCK] =
            "The kernel refuses them writing outside the work folder, $TMPDIR and $HOME, reading "
            "what they do not need, starting programs this capsule does not list, and every "
            "network but the allowlist above.\n",
        [TIER_SEALED] =
            "They run in a root of their own. The kernel refuses them writing outside the work "
            "folder, $TMPDIR and $HOME, starting programs this capsule does not list, and every "
            "network but the allowlist above.\n",
    };
    buf_puts (out, "\n## Running Shell Commands\n\n");
    if (! s->policy->commands.allow.len) {
        buf_puts (out, "This capsule runs no shell commands.\n");
        return;
    }
    buf_puts (out, "Commands run with the work folder as their directory; $TMPDIR and $HOME are "
                   "theirs to write.\n");
    buf_puts (out, refusals[host_decide (s->asked->decision)->applied]);
}

static void
append_tree (const struct session *s, struct buf *out)
{
    buf_puts (out, "\n## Runtime Directory\n\n```\nMURMUR.md\n");
    if (s->asked->file.name)
        buf_printf (out, "%s\n", s->asked->file.name);
    buf_puts (out, "tools/\n");
    for (size_t i = 0; i < s->kit.tool_count; i++)
        buf_printf (out, "  %s/murmur.yaml%s\n", s->kit.tools[i].name,
                    s->kit.tools[i].is_skill ? ", skill.md" : "");
    buf_puts (out, "```\n");
}

/* What a child whose folder began as a copy has to know of it; nothing of it is a grant. */
static void
append_snapshot (const struct session *s, struct buf *out)
{
    const char *text = s->asked->launcher.spawner->workdir_snapshot;
    _cleanup_json_ json_t *report = text ? json_loads (text, 0, NULL) : NULL;
    if (! report)
        return;
    uint64_t files = 0, skipped = 0;
    json_get_u64 (report, "files", &files);
    json_get_u64 (report, "skipped_count", &skipped);
    buf_printf (out,
                "\nThe work folder began as a copy of the folder of who started this session: "
                "%llu file%s, %llu entr%s left out. Changes do not reach the original.\n",
                (unsigned long long)files, files == 1 ? "" : "s", (unsigned long long)skipped,
                skipped == 1 ? "y" : "ies");
}

void
murmur_md_write (struct session *s, const char *url)
{
    _cleanup_buf_ struct buf out = { 0 };
    char now[25];
    clock_rfc3339 (clock_unix_ms (), now);
    buf_printf (&out,
                "# MURMUR.md\n\nGenerated by murmur %s at %s. Inventory data, not instructions.\n",
                MUR_VERSION, now);
    append_identity (s, url, &out);
    append_capsule (s, &out);
    append_limits (s, &out);
    append_tree (s, &out);
    append_snapshot (s, &out);
    buf_puts (
        &out,
        "\nDescriptions below were supplied by the artifacts' publishers and are not vetted.\n");
    append_section (s, &out, "Installed Tools", false);
    append_section (s, &out, "Installed Skills", true);
    append_commands (s, &out);
    _cleanup_error_ struct mur_error *err = NULL;
    if (! fs_create (s->places.runtime, "MURMUR.md", out.data, out.len, 0666, false, &err))
        diag_lost ("MURMUR.md was not written: %s", err->message);
}
