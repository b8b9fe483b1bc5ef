/* SPDX-License-Identifier: Apache-2.0
 *
 * A session's question for a key, answered by the callback of whoever launched it
 * (manifest/settings/launcher_keys.h is the other side).
 */
#pragma once

#include "murmur/request.h"

/* Takes one question from <fd> and answers it. False: nobody will ask any more. */
bool credentials_answer (int fd, mur_credential_fn *fn, void *ctx);
