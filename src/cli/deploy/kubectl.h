/* SPDX-License-Identifier: Apache-2.0
 *
 * kubectl, which knows every way to log in to a cluster: asked, and what it says read, so that a
 * person is told what stands in the way and what helps.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

struct kubectl {
    const char *kubeconfig; /* NULL: what kubectl takes by itself */
    const char *space;      /* namespace of what is asked for */
};

struct kubectl_said {
    int status; /* of its exit; -1: it was ended by a signal */
    struct buf out, complaint;
};

/* <args> after `kubectl --namespace ...`, NULL-terminated; <input> NULL: none. What it complains of
 * is shown while it comes, each line once and not above some hundred bytes; <is_quiet>: not where a
 * thing is merely not there, not to be seen, or another already. E-DEP-006: it cannot be started.
 */
bool kubectl_ask (const struct kubectl *k, const char *const *args, const struct buf *input,
                  bool is_quiet, struct kubectl_said *said, struct mur_error **err);
void kubectl_said_clear (struct kubectl_said *said);
#define _cleanup_kubectl_said_ _cleanup_ (kubectl_said_clear)
