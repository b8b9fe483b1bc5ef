/* SPDX-License-Identifier: Apache-2.0
 *
 * From name@version and what the lock expects to a verified, opened package: the one call a launch
 * makes for each artifact (spec/artifacts.md 7 "Verification", spec/session.md 3.2 step 10).
 *
 * Order, each before the next: lock entry, version, origin rule, resolve, bytes against sidecar,
 * bytes against lock, open.
 */
#pragma once

#include "artifact/store/lock.h"
#include "artifact/store/store.h"

/* How the consuming manifest uses an artifact; decides the runtime-pin rule. */
struct resolve_use {
    const char *field;      /* "artifacts[2]", for messages */
    bool is_plain;          /* a tool or skill without gateway and not the system prompt */
    const char *use_name;   /* "hook", "driver", "gateway holder", "system prompt": what is_plain ==
                               false means */
    const char *head_entry; /* all that is read of it beside its manifest, so that an untouched
                               archive need not be; NULL: anything may be read */
};

struct resolved {
    struct package *package; /* verified and opened */
    struct store_payload payload;
    char *name, *version; /* full name; the version really taken (the pinned one under a lock) */
    char *platform;       /* set for a native payload: the tag to pin (this host's) */
    bool is_native;
    bool is_untagged_native; /* W-REG-001 */
    enum lock_origin origin;
    char *session; /* runtime pins */
    char *signer;  /* as murmur.lock names it; NULL: no key that is known here */
};

void resolved_free (struct resolved *r);
DEFINE_CLEANUP (struct resolved, resolved_free)
#define _cleanup_resolved_ _cleanup_ (resolved_freep)

/* <lock> NULL or absent file: unlocked, staging resolves as declared.
 * E-RUN-003, E-RUN-043, E-REG-001, E-REG-002, E-IO-003, E-MAN-*. */
struct resolved *
artifact_resolve (const struct stores *stores, const struct lock *lock, const char *name,
                  const char *version, const struct resolve_use *use, struct mur_error **err);

/* Before staging: E-RUN-003 for the first entry a present lock does not have, E-RUN-043, then
 * E-RUN-008 naming every entry that is in no store. <versions> are as declared; the pinned ones are
 * looked up under a lock. */
bool artifacts_check_present (const struct stores *stores, const struct lock *lock,
                              const char *const *names, const char *const *versions,
                              const struct resolve_use *uses, size_t count, struct mur_error **err);

/* Adds the pin of a resolved artifact to a lock being created by a first run. */
void resolved_pin (const struct resolved *r, struct lock *lock);

/* A capsule launched by name: global then bundled store unless <stores> has a project; bytes
 * checked against the sidecar, then against <expected_sha256> (NULL: none; E-RUN-047). Not
 * installed: E-RUN-008. */
struct resolved *
capsule_resolve (const struct stores *stores, const char *name, const char *version,
                 const char *expected_sha256, struct mur_error **err);
