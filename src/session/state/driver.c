/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/driver.h"

#include "session/state/session.h"

bool
session_is_driver_entry (const struct session *s, const struct artifact_entry *entry)
{
    const struct inference *inf = s->manifest->inference;
    if (! inf || inf->transport != TRANSPORT_HTTP)
        return false;
    bool is_driver = inf->driver_entry == entry;
    for (size_t i = 0; i < inf->alternates.len; i++)
        is_driver = is_driver || inf->alternates.items[i].entry == entry;
    return is_driver;
}
