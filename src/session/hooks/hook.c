/* SPDX-License-Identifier: Apache-2.0 */
#include "session/hooks/hook.h"
#include "engine/guest.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "session/guests/senses.h"
#include "session/hooks/hooks_internal.h"
#include "session/state/session.h"

#include <string.h>

/* --- faults --- */

void
hook_log (struct hook *h, enum hook_event_kind kind, const char *text)
{
    struct session *s = h->session;
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_free_ char *path = x_asprintf ("logs/hook-%s.log", h->name);
    _cleanup_free_ char *clean = redactor_apply (s->redactor, text);
    for (char *c = clean; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    _cleanup_free_ char *line = x_asprintf ("%s: %s\n", hook_event_name (kind), clean);
    _cleanup_close_ int fd = -1;
    if (! fs_make_dirs (s->places.records, "logs", 0777, false, &err) ||
        (fd = fs_open_append (s->places.records, path, 0666, &err)) < 0 ||
        ! fd_write_all (fd, line, strlen (line)))
        diag_plain_warning ("hook %s: %.*s", h->name, (int)strlen (line) - 1, line);
}

void
hook_trace_fault (struct hook *h, enum hook_event_kind kind, const char *arm)
{
    TRACE (h->session->trace, NULL, hook_dispatch_error, .hook_name = h->name,
           .event = hook_event_name (kind), .arm = arm);
}

void
hook_discard (struct hook *h, enum hook_event_kind kind, enum hook_arm arm)
{
    _cleanup_free_ char *text = x_asprintf (
        "the answer %s is not honoured at this event; it was discarded", hook_arm_name (arm));
    hook_log (h, kind, text);
    hook_trace_fault (h, kind, hook_arm_name (arm));
}

/* --- one call --- */

bool
hook_ask (struct hook *h, enum hook_event_kind kind, const struct value *event, struct arena *arena,
          struct hook_output *out, const char **failure)
{
    *out = (struct hook_output){ 0 };
    if (h->is_lost) {
        *failure = "its instance was lost in an earlier fault";
        return false;
    }
    _cleanup_error_ struct mur_error *err = NULL;
    enum guest_ending how =
        host_hook_call (h->store.guest, kind, event, arena, out, failure, h->serving.cancel, &err);
    senses_keep (h->store.senses);
    if (how == GUEST_OK)
        return *failure == NULL;
    h->is_lost = how != GUEST_MISSING_EXPORT;
    const char *key = how == GUEST_DEADLINE ? "; capabilities.limits.deadline_seconds of its entry "
                                              "in the manifest sets the deadline of one call"
                                            : "";
    *failure = arena_printf (arena, "%s%s", err->message, key);
    return false;
}

/* --- the instance --- */

static bool
fail_open (struct hook *h, struct mur_error **err, const char *what, const char *why)
{
    return mur_fail (err, E_IO_003, "hook %s@%s %s %s%s%s", h->name, h->artifact->version, what,
                     host_hook_interface, why ? ": " : "", why ? why : "");
}

/* Functions a hook may leave out: it is then never told of them. */
static bool
is_optional (enum hook_event_kind kind)
{
    return kind == HOOK_ON_STAGE || kind == HOOK_ON_TASK_START || kind == HOOK_ON_TASK_END;
}

bool
hook_check_exports (struct hook *h, struct mur_error **err)
{
    const struct component *c = h->artifact->component;
    if (! component_exports (c, host_hook_interface))
        return fail_open (h, err, "does not export", NULL);
    for (int kind = 0; kind < HOOK_EVENT_KINDS; kind++) {
        const char *function = hook_event_name (kind);
        if (component_exports_function (c, host_hook_interface, function))
            continue;
        if (! is_optional (kind))
            return mur_fail (err, E_IO_003, "hook %s@%s exports %s without the function %s",
                             h->name, h->artifact->version, host_hook_interface, function);
        if (kind != HOOK_ON_STAGE)
            h->is_watching[kind] = false;
    }
    return true;
}

bool
hook_open (struct hook *h, struct mur_error **err)
{
    hook_bind (h);
    struct linkage_context contexts[] = {
        { &host_inference, &h->inference },
        { &host_task_io, &h->task_io },
        { &host_conversation, &h->conversation },
    };
    struct guest_setup setup = { .component = h->artifact->component,
                                 .artifact = h->artifact,
                                 .kind = GUEST_HOOK,
                                 .env = h->artifact->guest.env.items,
                                 .gateway = h->artifact->guest.gateway,
                                 .contexts = contexts,
                                 .context_count = ARRAY_LEN (contexts) };
    enum guest_ending how;
    _cleanup_error_ struct mur_error *caught = NULL;
    if (guest_store_open (h->session, &setup, &h->store, &how, &caught))
        return true;
    return fail_open (h, err, "could not be instantiated for", caught->message);
}
