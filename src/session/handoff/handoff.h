/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session hands work off with: the children it started, the members it calls, and its
 * standing with mur-roost, which every delegation is asked under.
 *
 * Always true: the credential is in memory alone.
 */
#pragma once

#include "base/secret.h"

#include <stdbool.h>

struct delegations;
struct member_calls;
struct session;

void handoff_new (struct session *s);
/* Once there is a registry: the sets a task may hand work off through. */
void handoff_begin (struct session *s);
/* Nothing is out any more. */
void handoff_end (struct session *s);
void handoff_free (struct session *s);

/* NULL: this capsule may start no others. */
struct delegations *handoff_delegations (const struct session *s);
/* NULL: there is nobody to call. */
struct member_calls *handoff_member_calls (const struct session *s);

/* Registered with the mur-roost at <url> (borrowed); the credential is taken over. */
void handoff_join (struct session *s, const char *url, struct secret *credential);
void handoff_leave (struct session *s);
/* Its children are started on other machines, by mur-roost. */
void handoff_join_elsewhere (struct session *s);
bool handoff_is_elsewhere (const struct session *s);
/* NULL: not registered. Borrowed. */
const struct secret *handoff_credential (const struct session *s);
const char *handoff_roost_url (const struct session *s);
