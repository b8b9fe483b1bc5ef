/* SPDX-License-Identifier: Apache-2.0
 *
 * Access to a cluster: which API server, whom to believe there, and who we are.
 *
 * From a kubeconfig's current context (a token, a file with one, or a client certificate), or from
 * what a pod's service account is given. Programs that fetch a login (`exec`, `auth-provider`) are
 * refused by name: nothing is started here.
 */
#pragma once

#include "base/error.h"

struct kube_access {
    char *server;          /* "https://10.0.0.1:6443", no slash at its end */
    char *namespace;       /* "default" where nothing names one */
    char *ca, *cert, *key; /* PEM texts; NULL: none */
    char *token;           /* NULL: none, or in the file */
    char *token_file;      /* read again for each call: it is renewed; NULL: none */
};

/* <kubeconfig> NULL: the pod's own account where there is one, else $KUBECONFIG, else
 * ~/.kube/config. E-KUB-001, E-IO-003. */
bool kube_access_read (const char *kubeconfig, struct kube_access *out, struct mur_error **err);
void kube_access_clear (struct kube_access *a);
