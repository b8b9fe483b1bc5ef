/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions: reserved words, path safety, semver and the order of spec/artifacts.md 2.
 */
#pragma once

#include "artifact/names/name.h"

/* latest, stable, edge in any case. */
bool version_is_reserved (const char *version);
/* True when it can be a directory of its own: not empty, no '/' or '\', not "." or "..", at most
 * 200 bytes, no control characters. */
bool version_is_segment (const char *version);
/* E-IO-003 naming the version when it is no path segment. */
bool version_check_segment (const char *version, struct mur_error **err);
bool version_is_semver (const char *version);
/* Semver precedence, then bytes; a non-semver text sorts below every semver one. <0, 0, >0. */
int version_compare (const char *a, const char *b);
