/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/server_report.h"

#include "base/alloc.h"

static void
put_texts (struct buf *out, const char *key, const struct str_list *list)
{
    buf_printf (out, "; %s ", key);
    for (size_t i = 0; i < list->len; i++)
        buf_printf (out, "%s%s", i ? ", " : "", list->items[i]);
    if (! list->len)
        buf_puts (out, "none");
}

static void
put_environment (struct buf *out, const struct mcp_block *m)
{
    buf_puts (out, "; environment PATH, HOME, LANG");
    for (size_t i = 0; i < m->env.len; i++)
        buf_printf (out, ", %s", m->env.items[i].name);
    if (m->gateway_env)
        buf_printf (out, ", %s (the gateway)", m->gateway_env);
    if (m->placeholder_env)
        buf_printf (out, ", %s (a worthless token)", m->placeholder_env);
    if (m->secret_env.len)
        put_texts (out, "keys handed over plainly", &m->secret_env);
}

void
report_servers (const struct policy *p, struct strv *lines)
{
    for (size_t i = 0; i < p->grants_len; i++) {
        const struct artifact_grant *g = &p->grants[i];
        const struct mcp_block *m = g->entry->mcp;
        if (! m)
            continue;
        _cleanup_buf_ struct buf line = { 0 };
        if (m->url) {
            buf_printf (&line, "%s: far away, at %s and nowhere else; %s", g->entry->name, m->url,
                        g->entry->gateway ? "its key is in no process but this"
                                          : "it is shown no key of the manifest's");
        } else {
            buf_printf (&line, "%s: folder %s", g->entry->name,
                        g->scope ? g->scope : "of its own, empty at first");
            put_texts (&line, "network", &g->network);
            if (g->entry->capabilities && g->entry->capabilities->shell)
                put_texts (&line, "programs", &g->entry->capabilities->shell->allow);
            put_environment (&line, m);
        }
        if (m->tools.is_set)
            put_texts (&line, "tools", &m->tools);
        buf_printf (&line, "; what changed since it was reviewed is %s; %llu s for a call",
                    m->on_drift.value == MCP_DRIFT_DROP ? "dropped" : "refused with all of it",
                    (unsigned long long)g->deadline_seconds);
        if (m->ask.value == MCP_ASK_OPERATOR)
            buf_puts (&line, "; it may ask the operator");
        strv_take (lines, buf_steal (&line));
    }
}
