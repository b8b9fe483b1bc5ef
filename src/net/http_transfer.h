/* SPDX-License-Identifier: Apache-2.0
 *
 * A transfer's references, what its owner is told, and what libcurl asks of it while it runs.
 *
 * Always true: its owner hears nothing once it has released the transfer.
 */
#pragma once

#include "net/http_client_impl.h"

void http_client_unref (struct http_client *c);
void http_transfer_unref (struct http_transfer *t);

/* Tells the owner of the end. Not the last reference: that stays the caller's to give back. */
void http_deliver_end (struct http_transfer *t, enum http_failure failure, const char *detail);
/* From now; 0: none. */
void http_transfer_set_deadline (struct http_transfer *t, uint64_t ms);
/* Has libcurl call the functions of this file for <t>, whose easy handle is made. */
void http_transfer_hook (const struct curl_api *api, struct http_transfer *t);
