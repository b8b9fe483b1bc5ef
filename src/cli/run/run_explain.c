/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_explain.h"
#include "policy/check.h"

#include "artifact/store/lock_file.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/json_write.h"
#include "policy/scope_report.h"
#include "policy/scope_text.h"
#include "sandbox/host/host.h"
#include "session/grants.h"

/* What the lock tells of an entry without opening a store: a hash for any platform is no native
 * tool. */
static void
read_lock_facts (const struct capsule_manifest *m, struct lock *lock, bool *is_native,
                 bool *is_resolved)
{
    for (size_t i = 0; i < m->artifacts.len; i++) {
        const struct artifact_entry *e = &m->artifacts.items[i];
        const struct lock_entry *pin = lock && lock->exists ? lock_find (lock, e->name) : NULL;
        is_resolved[i] = pin != NULL;
        is_native[i] = pin && ! pin->any;
    }
}

bool
run_explain (const struct stage_request *q, bool is_json, struct mur_error **err)
{
    if (! policy_check_explain (q->policy, err))
        return false;
    _cleanup_lock_ struct lock *lock = lock_read (q->file.dir, NULL);
    size_t count = q->manifest->artifacts.len + 1;
    _cleanup_free_ bool *is_native = x_calloc (count, sizeof (bool));
    _cleanup_free_ bool *is_resolved = x_calloc (count, sizeof (bool));
    read_lock_facts (q->manifest, lock, is_native, is_resolved);
    struct report_facts facts = { 0 };
    report_facts_fill (q->policy, host_decide (q->decision), &facts);
    facts.artifact_is_native = is_native;
    facts.artifact_is_resolved = is_resolved;
    bool has_native = false;
    for (size_t i = 0; i < q->manifest->artifacts.len; i++)
        has_native |= is_native[i];
    grants_look (q->policy, q->work.root, policy_may_run_native (q->policy, has_native), &facts);
    _cleanup_buf_ struct buf text = { 0 };
    if (is_json) {
        _cleanup_json_ json_t *report = scope_report_json (q->policy, &facts);
        json_append (&text, report, JSON_TEXT_ORDERED);
        buf_putc (&text, '\n');
    } else {
        scope_report_text (q->policy, &facts, &text);
    }
    out_write (text.data, text.len);
    return true;
}
