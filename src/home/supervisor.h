/* SPDX-License-Identifier: Apache-2.0
 *
 * Telling the service manager that started this program how it is (sd_notify(3)), so that starting
 * the service ends when it serves or has failed, and not before.
 */
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>

/* Whether one asked to be told. */
bool supervisor_is_there (void);

/* Sends a state ("READY=1", "STOPPING=1", or NULL) and one line of text, which the service's status
 * shows, to $NOTIFY_SOCKET; nothing where that is not set. What cannot be sent is lost: no session
 * ends for it. */
void supervisor_tell (const char *state, const char *fmt, ...) _printf_ (2, 3);
