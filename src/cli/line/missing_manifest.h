/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person does who is in a folder without a murmur.yaml: another folder below has one, or
 * one is made.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* Adds the hint; <how> says how a folder is chosen ("run it in a project's folder"). False. */
bool missing_manifest_hint (const char *dir, const char *how, struct mur_error **err);
