/* SPDX-License-Identifier: Apache-2.0
 *
 * Platform tags and what an executable image was built for (spec/artifacts.md 5).
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* This host's tag ("linux-x86_64"), or "unknown". Static. */
const char *platform_host (void);
bool platform_is_tag (const char *text);
/* The tag a file name ends with before ".mur.zip", or NULL. Static. */
const char *platform_of_file (const char *file_name);
/* What an executable was built for: a tag, "darwin" for a universal binary (any darwin-*), or NULL
 * = cannot tell. Static. */
const char *platform_of_binary (const void *image, size_t len);
/* E-RUN-021 naming the artifact and both platforms when the image is positively another platform's.
 */
bool
platform_check_binary (const char *artifact, const void *image, size_t len, struct mur_error **err);
