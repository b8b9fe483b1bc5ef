/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/refusals_told.h"

#include "base/alloc.h"
#include "net/allow.h"
#include "sandbox/kernel/syscall_filter.h"
#include "sandbox/run/confinement.h"
#include "session/commands/confine.h"
#include "session/commands/processes_internal.h"
#include "session/commands/refusals.h"
#include "session/state/command_line.h"
#include "session/state/refused.h"
#include "session/state/session.h"

#include <string.h>
#include <strings.h>

/* Hosts some rule names, and those that were told already. */
struct known_hosts {
    const struct allow_list *rules;
    const struct strv *told;
};

static bool
reaches (void *ctx, const char *host)
{
    const struct known_hosts *k = ctx;
    size_t len = strlen (host);
    for (size_t i = 0; i < k->rules->len; i++)
        if (strcasecmp (k->rules->rules[i].host, host) == 0)
            return true;
    for (size_t i = 0; i < k->told->len; i++)
        if (strncasecmp (k->told->items[i], host, len) == 0 &&
            strchr (": ", k->told->items[i][len]))
            return true;
    return false;
}

/* A command that came through is told of each thing once a session. */
static void
take (struct session *s, bool has_failed, const char *line, struct strv *out)
{
    if (has_failed || refused_is_news (s, line))
        refusals_say (out, x_strdup (line));
}

static void
add_hosts (struct session *s, bool has_failed, struct strv *out)
{
    _cleanup_strv_ struct strv lines = { 0 };
    refused_host_lines (s, &lines);
    for (size_t i = 0; i < lines.len; i++)
        if (has_failed || ! str_starts (lines.items[i], "127."))
            take (s, has_failed, lines.items[i], out);
}

static void
add_calls (struct session *s, uint64_t calls, bool has_failed, struct strv *out)
{
    for (size_t i = 0; syscall_filter_told[i]; i++) {
        if (! (calls >> i & 1))
            continue;
        bool is_clone = str_eq (syscall_filter_told[i], "clone");
        _cleanup_free_ char *line =
            x_asprintf ("the system call %s%s is refused to every command; no key grants it",
                        syscall_filter_told[i], is_clone ? " with a namespace of its own" : "");
        take (s, has_failed, line, out);
    }
}

void
refusals_tell (struct session *s, const struct refused_command *c, struct buf *text,
               struct strv *lines)
{
    struct confined *confined = s->rooms.processes->confined;
    const struct command_result *r = c->result;
    bool has_failed = r->exit_code != 0;
    struct known_hosts known = { confined->spec.network, lines };
    const struct refusal_walls walls = confine_refusal_walls (s, reaches, &known);
    confinement_tell_network (confined->confinement);
    if (c->command) {
        _cleanup_free_ char *line = command_line_is_interpreter (c->name)
                                        ? x_strdup (c->command)
                                        : x_asprintf ("%s %s", c->name, c->command);
        refusals_of_line (&walls, line, c->errors, has_failed, lines);
    }
    add_hosts (s, has_failed, lines);
    refusals_find (&walls, r->exit_code, c->errors, strlen (c->errors), lines);
    if (has_failed)
        refusals_find (&walls, r->exit_code, c->out, strlen (c->out), lines);
    add_calls (s, r->refused_calls, has_failed, lines);
    for (size_t i = 0; i < lines->len; i++) {
        buf_printf (text, "\nRefused by this capsule: %s", lines->items[i]);
        /* Hosts are noted where they are refused. */
        if (! strstr (lines->items[i], "(network.allow: [") &&
            ! strstr (lines->items[i], " waits for an approval "))
            refused_note_line (s, lines->items[i]);
    }
}
