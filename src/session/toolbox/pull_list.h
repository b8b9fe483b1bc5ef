/* SPDX-License-Identifier: Apache-2.0
 *
 * What could be pulled: everything the grant covers and a pattern names (docs/spec/artifacts.md
 * 14).
 */
#pragma once

#include "base/buf.h"

struct cancel;
struct session;

struct pull_match {
    char *name; /* full */
    char *role;
    char *description;    /* NULL when nobody gives one */
    char *newest_fitting; /* NULL when none fits */
    bool is_native;       /* its newest stored payload is */
    struct strv versions; /* newest first */
    struct strv held_in;  /* stores first, then "github:<owner>/<repo>" */
};

struct pull_matches {
    struct pull_match *items; /* by name */
    size_t len, cap;
    struct strv notes; /* what could not be asked */
};

void pull_matches_clear (struct pull_matches *m);
#define _cleanup_matches_ _cleanup_ (pull_matches_clear)
/* Everything the grant covers and the pattern names, in the stores and, when the grant reaches
 * sources, in the indexes of the scopes both could mean. A source that does not answer is a note.
 */
bool pull_find (struct session *s, const char *pattern, struct cancel *cancel,
                struct pull_matches *out, char **refusal);
/* What a pattern ending in '*' would find: the JSON of artifacts.md 14. */
bool pull_list (struct session *s, const char *pattern, struct cancel *cancel, struct buf *json,
                char **refusal);
