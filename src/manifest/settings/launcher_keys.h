/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys that the program which launched this one hands over when they are needed: a socket named by
 * MURMUR_CREDENTIALS_FD, on which each question is one packet, the name, with the write end of a
 * pipe that takes the value.
 *
 * Always true: a value was never in an environment, an argument or a file.
 */
#pragma once

#include "base/error.h"
#include "base/secret.h"

/* Once, before there is a second thread: whether the variable names a socket; it is kept from every
 * program we start. E-IO-003. */
bool launcher_keys_check (struct mur_error **err);
/* The launcher's value for a name, owned; NULL: it has none, or nobody is there to ask. Any thread.
 */
struct secret *launcher_keys_ask (const char *name);
