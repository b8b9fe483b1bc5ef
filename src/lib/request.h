/* SPDX-License-Identifier: Apache-2.0
 *
 * A request as the words and variables of the process that carries it out.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "murmur/request.h"

/* False with E-IO-003 when there is none, or a setter was given what nobody can honour. */
bool request_check (const struct mur_request *r, struct mur_error **err);
/* Appends the arguments behind `mur run` that say what is asked. <text_fd>: where that process has
 * the manifest's text, when it is from memory. */
void request_words (const struct mur_request *r, int text_fd, struct strv *argv);
/* The manifest's text from memory; NULL: there is none. Borrowed. */
const char *request_manifest_text (const struct mur_request *r, size_t *len);
/* The first task; NULL: there is none. Borrowed. */
const char *request_task (const struct mur_request *r, size_t *len);
/* This process's variables with those of the request over them: "NAME=value". */
void request_environment (const struct mur_request *r, struct strv *out);
/* Whether it takes the place in a formation that this process has. */
bool request_is_member (const struct mur_request *r);
/* Named by the caller; NULL: the one that is found. */
const char *request_program (const struct mur_request *r);
/* *ctx with it; NULL: nobody is asked. */
mur_credential_fn *request_credentials (const struct mur_request *r, void **ctx);
/* The same of events; NULL: they are taken. */
mur_event_fn *request_events (const struct mur_request *r, void **ctx);
