/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys as files of one folder, each named like the credential it is: a Secret volume of Kubernetes,
 * systemd's $CREDENTIALS_DIRECTORY, a secrets folder of Nomad.
 *
 * Always true: a value is read when it is needed and never kept, so a file that was replaced holds
 * from then on.
 */
#pragma once

#include "base/error.h"
#include "base/secret.h"

#define SECRETS_DIR_VARIABLE "MURMUR_SECRETS_DIR"

/* Once, before there is a second thread: the folder keys are asked of from here on, this program's
 * children included. NULL: what the variable names, if anything. E-IO-003. */
bool secrets_dir_use (const char *path, struct mur_error **err);
/* The value of a name without the line end that follows it, owned. NULL: there is no folder, no
 * such file, or nothing in it. Any thread. */
struct secret *secrets_dir_ask (const char *name);
