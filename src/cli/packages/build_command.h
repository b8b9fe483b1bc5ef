/* SPDX-License-Identifier: Apache-2.0
 *
 * The command of a manifest's `build:`, which makes what is packed: the tooling of the language a
 * component is written in.
 *
 * Always true: it is the author's own folder and machine, so nothing of it is confined; only `mur
 * build` runs it.
 */
#pragma once

#include "base/error.h"

/* Runs the command of <source>/murmur.yaml in that folder, what it prints on stderr. True without
 * one. E-BLD-006 when it fails, E-MAN-*. */
bool build_command_run (const char *source, struct mur_error **err);
