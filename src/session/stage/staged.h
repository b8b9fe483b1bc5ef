/* SPDX-License-Identifier: Apache-2.0
 *
 * What staging hands to the launch alone.
 */
#pragma once

struct component;
struct door_auth;
struct session;

struct staged {
    struct door_auth *auth;   /* NULL: a public door */
    struct component *script; /* script capsules */
    char *effective_grants;   /* JSON text */
    char *host_facts;         /* JSON text */
};

void staged_new (struct session *s);
void staged_free (struct session *s);
