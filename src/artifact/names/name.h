/* SPDX-License-Identifier: Apache-2.0
 *
 * How artifacts are named: parts, full names, versions and their order, install references, grant
 * patterns (spec/artifacts.md 2).
 *
 * Pure text: no file and no network. Always true: a full name that passed name_check_full holds
 * exactly one '/', and both parts are safe path segments.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

#define NAME_PART_MAX 100

/* --- parts and full names --- */

/* True for one scope or bare name: 1..100 of a-z 0-9 -, not starting or ending with '-'. */
bool name_part_is_valid (const char *text, size_t len);
/* Why a part breaks the rule ("contains 'A' …"), or NULL when it does not. The caller frees it. */
char *name_part_problem (const char *text, size_t len);

/* True for "<scope>/<name>" with both parts valid. */
bool name_is_full (const char *text);
/* Checks a full name. On failure *err is <code>, its message begins with <what> (such as
 * "artifacts[2].name", may be NULL) and, for an unscoped name, the hint holds the three scoped
 * forms. */
bool
name_check_full (const char *text, enum diag_code code, const char *what, struct mur_error **err);
/* The part after '/', inside <full>. The whole text when there is no '/'. */
const char *name_bare (const char *full);
/* The part before '/'; the caller frees it. */
char *name_scope (const char *full);
bool name_has_scope (const char *full, const char *scope);

#define SCOPE_MURMUR  "murmur"
#define SCOPE_LOCAL   "local"
#define SCOPE_BUNDLED "std"

/* The scope of a GitHub owner: lower-cased. Refuses reserved (local, murmur unless <repo> is the
 * default repository, std) and invalid scopes with <code>. Owned. */
char *name_scope_of_owner (const char *owner, const char *repo, enum diag_code code,
                           struct mur_error **err);

/* True for one of the 11 tool names the runtime provides itself. */
bool name_is_reserved_tool (const char *tool_name);
/* The list as "share-file, fetch-peer-file, …". Static. */
const char *name_reserved_tools (void);

/* --- install references --- */

enum install_ref_kind {
    INSTALL_FILE,
    INSTALL_GITHUB,
    INSTALL_OCI,
    INSTALL_NAME,
};

struct install_ref {
    enum install_ref_kind kind;
    char *path;               /* file; oci: the reference as written */
    char *owner, *repo, *tag; /* github */
    char *scope;              /* github: the lower-cased owner */
    char *name;               /* full name */
    char *version;            /* NULL when none was given */
};

/* E-IO-003, E-REG-007, E-REG-004 (reserved version). */
bool install_ref_parse (const char *text, struct install_ref *ref, struct mur_error **err);
void install_ref_clear (struct install_ref *ref);

/* --- grant patterns --- */

/* Checks "*", "<scope>/<*>", "<scope>/<prefix>*" or a full name; returns why not (caller frees), or
 * NULL when fine. */
char *pattern_problem (const char *pattern);
bool pattern_matches (const char *pattern, const char *full_name);
/* True when everything <child> matches is matched by <parent> too. */
bool pattern_covers (const char *parent, const char *child);
