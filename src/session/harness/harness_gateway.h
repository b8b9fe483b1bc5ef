/* SPDX-License-Identifier: Apache-2.0
 *
 * The address at which a harness finds its provider, for a driver with a gateway: the key is put in
 * on the way, and a budget that is used up is told in the provider's own words.
 */
#pragma once

#include "host/process_driver.h"
#include "net/server/gateway_door.h"

struct session;
struct spend_refusal;

/* Opens it; nothing for a driver without a gateway. E-IO-003, E-RUN-010. */
bool harness_gateway_open (struct session *s, struct mur_error **err);
/* Charges what the provider has told since the last time, whatever the harness says of it. False: a
 * ceiling is reached. Any thread. */
bool harness_gateway_charge (struct session *s, struct spend_refusal *refusal);
/* The run is over by its own word: when its report of what it used since <from> is not what the
 * provider told, the difference is a line of the trace and, once a launch, a warning. */
void harness_gateway_compare (struct session *s, const char *task_id,
                              const struct gateway_usage *from, const struct process_usage *told);
/* inference.driver.config as the driver gets it: with the gateway as the member "$gateway". Owned,
 * or NULL. */
char *harness_driver_config (const struct session *s);
