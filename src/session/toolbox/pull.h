/* SPDX-License-Identifier: Apache-2.0
 *
 * Changing artifacts while a session runs: the one engine behind pull-artifact, remove-artifact
 * and a script's artifact manager (docs/spec/artifacts.md 14, docs/spec/session.md 8.3).
 *
 * Always true: a refusal changes nothing and begins with its token; every check comes before the
 * first write; a pull makes runtime pins only, and only such are removed; what is pulled holds no
 * grant and no gateway. Task loop or script thread only.
 */
#pragma once

#include "artifact/sources/source.h"
#include "session/state/session.h"

struct pulled {
    struct staged_artifact *artifact; /* the session's */
    char *fetched_from;               /* "project store", "global store", "github:<owner>/<repo>" */
    struct strv notes;
    bool is_new; /* something changed */
    bool has_owner_id;
    uint64_t owner_id;
};

void pulled_clear (struct pulled *p);
#define _cleanup_pulled_ _cleanup_ (pulled_clear)

/* True when capabilities.install lets this session pull anything. */
bool pull_is_granted (const struct session *s);

/* Pulls <name> (a full name) at <version>, NULL for the newest that fits. False with the refusal
 * (owned). */
bool pull_artifact (struct session *s, const char *name, const char *version, struct cancel *cancel,
                    struct pulled *out, char **refusal);
/* Takes a pulled artifact away again; *was_removed false when it is not installed. */
bool pull_remove (struct session *s, const char *name, bool *was_removed, char **refusal);
/* True when the grant covers this name in this role. */
bool pull_covers_role (const struct session *s, const char *name, const char *role);
/* False with a refusal for what is no full name; a bare one is shown in its three scoped forms. */
bool pull_check_name (const char *name, char **refusal);
/* "[CODE] message; hint: ..." on one line. Takes the error; owned. */
char *pull_error_line (struct mur_error *e);
/* What asks the sources, when the grant reaches them; *remote stays as it is when it does not. The
 * session's, which keeps what it learnt for ten minutes; pull_close_remote ends this use of it. */
bool
pull_open_remote (struct session *s, struct cancel *cancel, struct remote **remote, char **refusal);
void pull_close_remote (struct remote **remote);
/* artifact_pulled of what is new. */
void pull_record (struct session *s, const struct pulled *p);
