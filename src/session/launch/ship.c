/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/ship.h"

#include "session/launch/termination.h"
#include "trace/ship/shipper.h"

/* Within the time a session may take to end. */
#define PATIENCE_MS         10000
#define STOPPED_PATIENCE_MS 5000

bool
ship_begin (struct session *s, struct mur_error **err)
{
    if (! s->asked->records_store)
        return true;
    struct record_store *store = record_store_open (s->asked->records_store, err);
    if (! store)
        return false;
    const struct spawner *by = s->asked->launcher.spawner;
    const struct ship_facts facts = { .session_id = s->id.text,
                                      .capsule = session_capsule_name (s),
                                      .version = s->manifest->version,
                                      .parent_session_id = by->session_id,
                                      .delegation_id = by->delegation_id };
    s->places.shipper = shipper_new (store, s->places.records, &facts);
    return true;
}

void
ship_end (struct session *s, const char *exit_status)
{
    if (! s->places.shipper)
        return;
    bool was_stopped = termination_cause (s) != NOT_TERMINATED;
    shipper_end (s->places.shipper, exit_status, was_stopped ? STOPPED_PATIENCE_MS : PATIENCE_MS);
    s->places.shipper = NULL;
}
