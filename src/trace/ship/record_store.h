/* SPDX-License-Identifier: Apache-2.0
 *
 * Where records go that outlive their machine: objects by key, put and got whole.
 *
 * file:///folder is a mounted volume; https://host/path is any server that keeps what is PUT and
 * gives it by GET; s3://bucket/prefix a server of S3, asked with signed requests. Always true: the
 * same key is always given the same bytes, so a put may be repeated; the token comes from a file
 * (MUR_RECORDS_TOKEN of --secrets-dir), is read for each request, and is sent over https or to
 * this machine alone.
 */
#pragma once

#include "base/buf.h"
#include "base/cancel.h"
#include "base/error.h"

#include <stdint.h>

#define RECORD_STORE_TOKEN     "MUR_RECORDS_TOKEN"
#define RECORDS_STORE_VARIABLE "MURMUR_RECORDS_STORE"

struct record_store;

/* Nothing is asked yet, but the folder of file:// must be there. E-IO-003 saying what is wrong. */
struct record_store *record_store_open (const char *url, struct mur_error **err);
void record_store_free (struct record_store *s);
DEFINE_CLEANUP (struct record_store, record_store_free)
#define _cleanup_record_store_ _cleanup_ (record_store_freep)

/* Puts one object; <key> is relative, with '/' between its parts. Raised, <cancel> (may be NULL)
 * ends it. E-IO-003. */
bool record_store_put (struct record_store *s, const char *key, const void *data, size_t len,
                       struct cancel *cancel, struct mur_error **err);
/* Gets one of at most <limit> bytes. False without *err: there is none. E-IO-003. */
bool record_store_get (struct record_store *s, const char *key, size_t limit, struct buf *out,
                       struct mur_error **err);
