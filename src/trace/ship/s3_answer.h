/* SPDX-License-Identifier: Apache-2.0
 *
 * Single elements of what a server of S3, or of its logins, answers as XML.
 */
#pragma once

#include "net/http_fetch.h"

/* The text of the first element of this name when it is a plain word of at most 64 bytes, as codes
 * and regions are; owned. NULL: it is not. */
char *s3_answer_word (const struct http_response *r, const char *name);
/* Its text, of printable bytes without markup or blanks, below <limit>; owned. NULL: it is not. */
char *s3_answer_text (const struct http_response *r, const char *name, size_t limit);
