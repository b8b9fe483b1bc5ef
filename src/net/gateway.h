/* SPDX-License-Identifier: Apache-2.0
 *
 * The credential gateway: an artifact uses a provider key it can never read (spec/containment.md
 * 4).
 *
 * A guest addresses http://127.0.0.1:9<path>; the request leaves with the endpoint's scheme and
 * authority and exactly one rendered auth header. Always true: the key is read anew for each
 * request; a guest header named like the auth header never passes; no key, rendered header or
 * userinfo appears in an error; a keyed gateway without a key sends nothing.
 */
#pragma once

#include "base/secret.h"
#include "net/http_client.h"

#define GATEWAY_AUTHORITY "127.0.0.1:9"

enum gateway_source {
    GATEWAY_SOURCE_NONE,
    GATEWAY_SOURCE_CONFIG,
    GATEWAY_SOURCE_ENVIRONMENT,
    GATEWAY_SOURCE_MANIFEST,
    GATEWAY_SOURCE_CONTROLLER,
    GATEWAY_SOURCE_LAUNCHER, /* the program that launched the session */
    GATEWAY_SOURCE_FILE,     /* of --secrets-dir */
};

/* "none", "config", "environment", "manifest", "controller", "launcher". */
const char *gateway_source_name (enum gateway_source source);

/* Why a key could not be read; the names are the trace's (records.md 3.4). */
enum gateway_unreadable {
    GATEWAY_READABLE,
    GATEWAY_MISSING,
    GATEWAY_UNREADABLE,
    GATEWAY_UNPARSEABLE,
    GATEWAY_EMPTY_ENTRY,
    GATEWAY_NO_ENTRY,
};
const char *gateway_unreadable_name (enum gateway_unreadable why);

struct gateway_key {
    struct secret *value; /* owned; NULL with why set */
    enum gateway_source source;
    enum gateway_unreadable why;
};

/* Reads the key as it is now (config credentials.NAME first, then the launching environment, or the
 * literal). Called on a guest's thread for each request and on the HTTP thread after a 401: quick,
 * thread-safe, never waiting for either. */
typedef void gateway_read_key_fn (void *ctx, struct gateway_key *out);

enum gateway_change {
    GATEWAY_ROTATED,
    GATEWAY_REJECTED,
    GATEWAY_KEY_UNREADABLE,
};

/* What becomes an inference_credential or gateway_credential line. */
struct gateway_event {
    enum gateway_change change;
    enum gateway_source source;
    bool by_rejection; /* rotated: trigger rejection, else file_changed */
    int status;        /* rejected: 401 */
    bool is_retried;   /* rejected: a second key was tried */
    enum gateway_unreadable why;
};
typedef void gateway_event_fn (void *ctx, const struct gateway_event *event);

struct gateway_spec {
    const char *artifact;    /* full name, for messages and the trace */
    const char *endpoint;    /* as the manifest writes it */
    const char *auth_header; /* upstream_auth.header; may be NULL only with is_keyless */
    const char *auth_value;  /* upstream_auth.value, holding {key} once */
    bool is_header_fixed;    /* the entry says the header: a program's own choice does not count */
    bool is_keyless;
    bool is_metered;               /* the http inference gateway: needs an open spend admission */
    gateway_read_key_fn *read_key; /* NULL only with is_keyless */
    gateway_event_fn *on_event;    /* may be NULL; any thread */
    void *ctx;
    struct redactor *redactor; /* may be NULL; learns each key and rendered header */
};

struct gateway;

/* Checks the endpoint (E-MAN-003 naming artifact and reason, userinfo masked) and the auth header
 * (E-RUN-025). Strings are copied. Reads no key. */
struct gateway *gateway_new (const struct gateway_spec *spec, struct mur_error **err);
void gateway_free (struct gateway *g);
DEFINE_CLEANUP (struct gateway, gateway_free)

/* NULL, or what manifest.md 5.4 holds against this endpoint. Static storage. */
const char *gateway_endpoint_fault (const char *endpoint);
/* NULL, or what manifest.md 14.2 holds against upstream_auth. Static storage. */
const char *gateway_auth_fault (const char *header, const char *value);

/* "http://127.0.0.1:9<endpoint path without trailing />": MURMUR_GATEWAY_ENDPOINT. Borrowed. */
const char *gateway_guest_endpoint (const struct gateway *g);
/* The endpoint's host, with a port only when one was written: session_start.gateways[].host.
 * Borrowed. */
const char *gateway_host (const struct gateway *g);
bool gateway_is_metered (const struct gateway *g);
/* True for exactly scheme "http" with authority "127.0.0.1:9". */
bool gateway_is_addressed (const char *scheme, const char *authority);

/* --- one exchange through it --- */

/* The key to send now; reports a rotation or an unreadable store. False: keyed, but no key is to be
 * had. <*header> is the rendered header value, NULL when keyless; <*key> the key it was made of.
 * Both owned. <as>: a value that holds {key} once, in place of upstream_auth's; NULL: that. */
bool
gateway_render (struct gateway *g, const char *as, struct secret **header, struct secret **key);
/* After a 401 answered to <key>: re-reads. True with a fresh header when the key changed, else
 * false, recording the rejection. */
bool gateway_render_again (struct gateway *g, const char *as, const struct secret *key,
                           struct secret **header, struct secret **fresh_key);
/* The second key was refused too. */
void gateway_rejected_again (struct gateway *g);
/* scheme://authority of the endpoint. Borrowed. */
const char *gateway_base (const struct gateway *g);
/* Lower case, or NULL when keyless without one. Borrowed. */
const char *gateway_auth_header (const struct gateway *g);
bool gateway_is_header_fixed (const struct gateway *g);
