/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys of `exports` as data (spec/manifest.md 13).
 */
#pragma once

#include "manifest/capsule/capsule.h"

extern const struct schema exports_schema;
