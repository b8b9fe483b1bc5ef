/* SPDX-License-Identifier: Apache-2.0 */
#include "host/capsule.h"
#include "engine/guest.h"

static const char host_capsule_interface[] = "murmur:capsule/run@0.1.0";

enum guest_ending
host_capsule_run (struct guest *g, struct cancel *cancel, struct mur_error **err)
{
    enum guest_ending ending =
        guest_call (g, host_capsule_interface, "run", NULL, 0, NULL, NULL, cancel, err);
    if (ending == GUEST_MISSING_EXPORT)
        mur_hint (err, "rebuild it so that it exports %s", host_capsule_interface);
    return ending;
}
