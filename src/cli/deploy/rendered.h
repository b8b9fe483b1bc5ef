/* SPDX-License-Identifier: Apache-2.0
 *
 * Rendered objects on their way out: as one stream of documents, or a file each.
 */
#pragma once

#include "deploy/deploy.h"

/* All of it, a document each. */
void rendered_join (const struct deploy_files *files, struct buf *out);
/* To standard output, or, with <dir>, a file an object, whose paths are printed. E-IO-003. */
bool rendered_write (const struct deploy_files *files, const char *dir, struct mur_error **err);
/* An image that is named by tag is not always the same. <image> may be NULL. */
void rendered_note_tag (const char *image);
