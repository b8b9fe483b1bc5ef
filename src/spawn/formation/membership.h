/* SPDX-License-Identifier: Apache-2.0
 *
 * A session's place in a formation, as its launcher wrote it on the formation channel: who it is,
 * whom it may call and with which token, and where they are (spec/spawn.md C5).
 *
 * Always true: no message holds a line of the channel; a real address or a token never reaches a
 * model.
 */
#pragma once

#include "base/cancel.h"
#include "base/keys/ed25519.h"
#include "base/secret.h"

#include <stdint.h>
#include <sys/types.h>

#define FORMATION_HOST_SUFFIX ".formation.invalid"
#define FORMATION_ADDRESS_MS  10000 /* how long a caller waits for an address */

struct membership;

/* Reads MURMUR_FORMATION_CHANNEL's descriptor: its first line within 10 s, then address lines on a
 * thread of its own. Unset or blank: NULL without error. E-RUN-046. */
struct membership *membership_take (const char *formation_id, struct mur_error **err);
/* The same of a channel in this process: <fd> is taken over, and what is written there are the
 * lines of one. <is_far>: the others are on other machines. E-RUN-046. */
struct membership *
membership_of_channel (int fd, const char *formation_id, bool is_far, struct mur_error **err);
/* The place of a session that runs again: as it was, but nobody is there, and no token opens a
 * door.
 */
struct membership *membership_recorded (const char *formation_id, const char *member,
                                        const char *const *callees, size_t count);
void membership_free (struct membership *m);
DEFINE_CLEANUP (struct membership, membership_free)

const char *membership_formation_id (const struct membership *m);
const char *membership_member (const struct membership *m);
bool membership_is_entry (const struct membership *m);
/* The launcher's process, 0 when the channel did not say. */
pid_t membership_launcher (const struct membership *m, const char **process_start);
const unsigned char *membership_verify_key (const struct membership *m);

size_t membership_callee_count (const struct membership *m);
/* In roster order. Borrowed. */
const char *membership_callee (const struct membership *m, size_t i);
/* The token for a callee's door; NULL for anybody else. Borrowed. */
const struct secret *membership_token (const struct membership *m, const char *callee);
/* "http://host:port" of a callee's door: waits up to FORMATION_ADDRESS_MS for it. Owned; NULL: no
 * callee, it did not come, or the wait was cancelled (cancel may be NULL). */
char *membership_address (struct membership *m, const char *callee, struct cancel *cancel);
/* What a caller's network list is asked about a callee's address, "host:port": `localhost` admits
 * the others of a formation wherever they are. Owned. */
char *membership_asked_for (const struct membership *m, const char *url);
/* "coder=http://coder.formation.invalid ...": MURMUR_FORMATION_PEERS. Owned; NULL without callees.
 */
char *membership_peers_text (const struct membership *m);
/* Replaces real addresses and tokens in a text meant for a model or a record by the virtual ones.
 * Owned. */
char *membership_redact (struct membership *m, const char *text);
