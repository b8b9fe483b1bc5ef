/* SPDX-License-Identifier: Apache-2.0
 *
 * What steers the calls to the model: who may change what while a session runs, and whose turn it
 * is.
 */
#pragma once

#include <stdbool.h>

struct cancel;
struct session;

/* With nothing in it. */
void steering_new (struct session *s);
/* No call is under way. */
void steering_free (struct session *s);

/* Waits until no other call of a driver is under way. False: <cancel> was raised meanwhile. */
bool steering_take_driver (struct session *s, struct cancel *cancel);
void steering_release_driver (struct session *s);
