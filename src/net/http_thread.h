/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP client's thread: one libcurl multi handle, whose transfers it begins, ends and times.
 */
#pragma once

/* Runs until the client is stopping; <ctx> is the struct http_client. Returns NULL. */
void *http_client_run (void *ctx);
