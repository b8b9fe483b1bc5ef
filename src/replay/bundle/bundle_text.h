/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking words out of a record: bodies get other names then, and everything that names them says
 * so.
 */
#pragma once

#include "replay/bundle/bundle.h"

void bundle_text_replace (struct bundle_files *all, bundle_replace_fn *replace, void *ctx);
