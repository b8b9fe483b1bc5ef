/* SPDX-License-Identifier: Apache-2.0
 *
 * What a file holds, by its name, and what a kept file is called, by what it holds.
 */
#pragma once

/* "image/png" of "a/b.PNG"; <otherwise> when the name says nothing. Static or <otherwise>. */
const char *mcp_media_of (const char *path, const char *otherwise);
/* "png" of "image/png"; "bin" of what is unknown. Static. */
const char *mcp_media_ending (const char *mime);
