/* SPDX-License-Identifier: Apache-2.0 */
#include "session/model/credential.h"

#include "base/alloc.h"
#include "manifest/settings/config.h"
#include "manifest/settings/launcher_keys.h"
#include "manifest/settings/secrets_dir.h"
#include "session/model/steering_internal.h"
#include "session/model/supplied.h"
#include "session/state/session.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

struct credential {
    struct session *session;
    const char *artifact; /* full name */
    bool is_inference;
    bool is_controllers;     /* only a controller supplies it */
    char *name;              /* NULL for a literal */
    struct secret *literal;  /* the manifest's */
    struct secret *from_env; /* as the environment was at launch */
    char *config_path;

    pthread_mutex_t lock; /* a leaf: guards the cached reading */
    struct stat seen;     /* the file the cached reading is of */
    bool is_cached;
    struct secret *cached;
    enum gateway_unreadable why; /* of the cached reading, when cached is NULL */
};

struct credential *
credential_new (struct session *s, const char *artifact, bool is_inference,
                const struct gateway_block *entry, const char *config_path)
{
    struct credential *c = x_new0 (struct credential);
    pthread_mutex_init (&c->lock, NULL);
    c->session = s;
    c->artifact = artifact;
    c->is_inference = is_inference;
    c->config_path = x_strdup (config_path);
    if (entry->key_reference) {
        c->name = x_strdup (entry->key_reference);
        c->is_controllers = supplied_secrets_owns (s->rooms.steering->supplied, c->name);
        const char *value = c->is_controllers ? NULL : getenv (c->name);
        if (value && value[0])
            c->from_env = secret_new (value, strlen (value));
    } else if (entry->key_literal) {
        c->literal = secret_copy (entry->key_literal);
    }
    return c;
}

void
credential_free (struct credential *c)
{
    if (! c)
        return;
    secret_freep (&c->literal);
    secret_freep (&c->from_env);
    secret_freep (&c->cached);
    pthread_mutex_destroy (&c->lock);
    free (c->name);
    free (c->config_path);
    free (c);
}

static bool
is_same_file (const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void
credential_read_config (struct credential *c)
{
    secret_freep (&c->cached);
    c->cached = NULL;
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_config_ struct config *config = config_load_global (&err);
    if (! config) {
        c->why = err->errno_value ? GATEWAY_UNREADABLE : GATEWAY_UNPARSEABLE;
        return;
    }
    const struct secret *value = config_credential (config, c->name);
    if (! value)
        c->why = GATEWAY_NO_ENTRY;
    else if (secret_len (value) == 0)
        c->why = GATEWAY_EMPTY_ENTRY;
    else
        c->cached = secret_copy (value);
}

/* Brings the cached reading up to date with the file. */
static void
refresh (struct credential *c)
{
    struct stat st;
    if (stat (c->config_path, &st) != 0) {
        secret_freep (&c->cached);
        c->cached = NULL;
        c->is_cached = false;
        c->why = errno == ENOENT ? GATEWAY_MISSING : GATEWAY_UNREADABLE;
        return;
    }
    if (c->is_cached && is_same_file (&st, &c->seen))
        return;
    credential_read_config (c);
    c->seen = st;
    c->is_cached = true;
}

void
credential_read (void *ctx, struct gateway_key *out)
{
    struct credential *c = ctx;
    *out = (struct gateway_key){ 0 };
    if (c->literal) {
        out->value = secret_copy (c->literal);
        out->source = GATEWAY_SOURCE_MANIFEST;
        return;
    }
    if (c->is_controllers) {
        out->value = supplied_secrets_get (c->session->rooms.steering->supplied, c->name);
        out->source = GATEWAY_SOURCE_CONTROLLER;
        out->why = out->value ? GATEWAY_READABLE : GATEWAY_NO_ENTRY;
        return;
    }
    out->value = launcher_keys_ask (c->name);
    out->source = GATEWAY_SOURCE_LAUNCHER;
    if (out->value)
        return;
    out->value = secrets_dir_ask (c->name);
    out->source = GATEWAY_SOURCE_FILE;
    if (out->value)
        return;
    pthread_mutex_lock (&c->lock);
    refresh (c);
    if (c->cached) {
        out->value = secret_copy (c->cached);
        out->source = GATEWAY_SOURCE_CONFIG;
    } else if (c->from_env) {
        out->value = secret_copy (c->from_env);
        out->source = GATEWAY_SOURCE_ENVIRONMENT;
    } else {
        out->why = c->why;
        out->source = GATEWAY_SOURCE_CONFIG;
    }
    pthread_mutex_unlock (&c->lock);
}

enum gateway_source
credential_source (struct credential *c)
{
    struct gateway_key key;
    credential_read (c, &key);
    enum gateway_source source = key.value ? key.source : GATEWAY_SOURCE_NONE;
    secret_freep (&key.value);
    return source;
}

void
credential_event (void *ctx, const struct gateway_event *e)
{
    static const char *const changes[] = { "rotated", "rejected", "unreadable" };
    struct credential *c = ctx;
    bool rotated = e->change == GATEWAY_ROTATED, rejected = e->change == GATEWAY_REJECTED;
    struct trace_gateway_credential line = {
        .artifact = c->artifact,
        .source = gateway_source_name (e->source),
        .credential = c->name,
        .change = changes[e->change],
        .trigger = ! rotated         ? NULL
                   : e->by_rejection ? "rejection"
                                     : "file_changed",
        .status = { rejected, e->status },
        .retried = { rejected, e->is_retried },
        .reason = e->change == GATEWAY_KEY_UNREADABLE ? gateway_unreadable_name (e->why) : NULL,
    };
    struct trace_writer *trace = c->session->trace;
    if (! c->is_inference) {
        trace_write (trace, TRACE_EVENT_gateway_credential, &line, NULL, NULL);
        return;
    }
    TRACE (trace, NULL, inference_credential, .source = line.source, .credential = line.credential,
           .change = line.change, .trigger = line.trigger, .status = line.status,
           .retried = line.retried, .reason = line.reason);
}

const char *
credential_name (const struct credential *c)
{
    return c->name;
}

const char *
credential_place (struct credential *c)
{
    if (! c->name)
        return "written in the manifest";
    if (c->is_controllers)
        return "supplied by a controller";
    switch (credential_source (c)) {
    case GATEWAY_SOURCE_CONFIG:
        return "of the configuration's credentials";
    case GATEWAY_SOURCE_FILE:
        return "of --secrets-dir";
    default:
        return "of the environment or .env";
    }
}
