/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an artifact's gateway key comes from: the launcher, a file of --secrets-dir, the operator's
 * config, the environment of the launch, in that order, or the literal in the manifest
 * (docs/spec/manifest.md 17.1, docs/spec/containment.md 4); for a name of control.secrets the
 * controller alone.
 *
 * Always true: the config file is parsed again only when it changed; a value never appears in a
 * message.
 */
#pragma once

#include "manifest/capsule/capsule.h"
#include "net/gateway.h"

struct credential;
struct session;

/* The key of a gateway entry. <config_path> is the global config file. */
struct credential *credential_new (struct session *s, const char *artifact, bool is_inference,
                                   const struct gateway_block *entry, const char *config_path);
void credential_free (struct credential *c);
DEFINE_CLEANUP (struct credential, credential_free)

/* What gateway_spec takes; their context is the credential. */
gateway_read_key_fn credential_read;
gateway_event_fn credential_event;
/* The source the key has now, for session_start. */
enum gateway_source credential_source (struct credential *c);
/* Where a person finds the key: its name, and in words where it is kept. Borrowed name, NULL for a
 * key that the manifest holds. */
const char *credential_name (const struct credential *c);
const char *credential_place (struct credential *c);
