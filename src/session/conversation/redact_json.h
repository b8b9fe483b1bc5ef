/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON with the session's credentials taken out: keys and string leaves at any depth, and numbers
 * whose text would change (docs/spec/records.md 3.3).
 */
#pragma once

#include "base/json.h"
#include "base/secret.h"

/* The redacted value as compact text, order kept. Text that is no JSON becomes a JSON string.
 * Owned. */
char *redact_json_text (struct redactor *r, const char *text);
