/* SPDX-License-Identifier: Apache-2.0
 *
 * What `make deploy`, `just deploy` or `npm run deploy` would run, for the hooks that judge it
 * (docs/spec/session.md 9.3): a line that names a recipe says nothing of what it does.
 *
 * Best effort and bounded: a file of at most 64 KiB below the work folder, no link followed,
 * nothing expanded. What is not found is no sign of safety.
 */
#pragma once

#include "base/buf.h"

/* The text of the recipes <argv> names in the work folder at <work_path>, those they depend on
 * first. <script> may be NULL; else it is an interpreter's and each of its simple commands is
 * looked at. NULL: none is known. Owned. */
char *recipe_text (int work_fd, const char *work_path, const struct strv *argv, const char *script);
