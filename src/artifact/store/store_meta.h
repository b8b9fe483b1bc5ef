/* SPDX-License-Identifier: Apache-2.0
 *
 * The sidecar of a stored payload: what is recorded beside the archive so that listing needs no zip
 * (spec/artifacts.md 6).
 *
 * Never believed where it decides how something runs: packaging and role come from the packed
 * manifest on every resolve.
 */
#pragma once

#include "artifact/store/store.h"

struct store_meta {
    char *name, *version;
    char *runtime;          /* packaging: wasm, native, static */
    char *artifact_runtime; /* role */
    struct strv platforms;  /* tags */
    bool has_contracts;
    struct wit_contracts contracts;
    bool has_owner_id;
    uint64_t owner_id;
    bool has_level;
    uint64_t built_at_level;
};

void store_meta_clear (struct store_meta *m);
/* The recorded sidecar of a payload; derived from the archive when it is missing or unreadable. */
bool store_meta_read (const struct store_payload *payload, const char *name, const char *version,
                      struct store_meta *out, struct mur_error **err);
/* The sidecar's text of an opened package, from its bytes alone: the same package gives the same
 * text. <platform> NULL: the payload is untagged. Owned. */
char *
store_meta_derived (struct package *p, const char *name, const char *version, const char *platform);
