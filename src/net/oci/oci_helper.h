/* SPDX-License-Identifier: Apache-2.0
 *
 * One question to a credential helper: the program `docker-credential-<name>`, `get`, a host on its
 * input, JSON on its output.
 */
#pragma once

#include "net/oci/oci_login.h"

/* True with an empty *out when it keeps nothing for <host>. E-REG-012. */
bool
oci_helper_ask (const char *name, const char *host, struct oci_login *out, struct mur_error **err);
