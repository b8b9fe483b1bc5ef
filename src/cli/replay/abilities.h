/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur replay --can`: what can be done with a record, and why the rest cannot.
 */
#pragma once

#include "replay/record/record.h"

void abilities_print (const struct record *r, bool is_json);
