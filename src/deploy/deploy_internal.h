/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of each target share.
 */
#pragma once

#include "base/json.h"
#include "deploy/deploy.h"
#include "deploy/object_name.h"

#define DEPLOY_GRACE_SECS 25 /* above the 20 s a session takes to end */
#define DEPLOY_USER       10001

/* What every target reads of a request. */
struct deploy_facts {
    const struct deploy_request *request;
    char *name;            /* "mur-<capsule>", as a name of Kubernetes */
    bool stays;            /* after_task: sleep */
    unsigned port;         /* of the door; 0: chosen at each launch */
    bool is_port_ours;     /* the manifest declares none, or not where a referee looks */
    bool fills_in;         /* the target puts values for $(NAME) in arguments */
    uint64_t memory_bytes; /* of commands and the runtime beside them */
    unsigned cpu_percent;  /* 0: not bounded */
    struct strv keys;      /* names of credentials, sorted */
    bool has_login;        /* a token may stand beside the keys of its store */
};

/* True when the formation, if it is one, is all in this pod. */
static inline bool
deploy_is_in_one_pod (const struct deploy_request *r)
{
    return r->formation && ! r->formation->is_spread;
}

/* No key is written in the manifest. E-DEP-004. */
bool deploy_check_keys (const struct capsule_manifest *m, struct mur_error **err);
/* A file of these name parts, to be written to. */
struct buf *deploy_file_new (struct deploy_files *files, const char *name);
/* An object as YAML in a file named after its kind. Takes the object. */
void deploy_file_object (struct deploy_files *files, json_t *object);
/* JSON as YAML, keys sorted. */
void deploy_yaml (struct buf *out, const json_t *value);
/* Arguments of `mur` there; <work>, <keys>: where the folders lie (NULL: none). */
json_t *deploy_arguments (const struct deploy_facts *f, const char *capsule, const char *work,
                          const char *keys);
/* The object of an account (taken, returned) becomes one that may nothing of its own. <role>: what
 * a cluster of Amazon's gives its pods the token of; NULL: none. */
json_t *deploy_as_account (json_t *object, const char *role);

void deploy_kubernetes (const struct deploy_facts *f, struct deploy_files *out);
void deploy_sandbox (const struct deploy_facts *f, struct deploy_files *out);
void deploy_kagent (const struct deploy_facts *f, struct deploy_files *out);
void deploy_nomad (const struct deploy_facts *f, struct deploy_files *out);
void deploy_systemd (const struct deploy_facts *f, struct deploy_files *out);
void deploy_quadlet (const struct deploy_facts *f, struct deploy_files *out);
