/* SPDX-License-Identifier: Apache-2.0
 *
 * The filter of system calls a node puts on a pod of ours, in place of its runtime's default: what
 * murmur and its commands use, the making of namespaces and mounts among it, and nothing else.
 *
 * Always true: what is denied to every command (syscall_filter_denied) is in it only where murmur
 * itself builds its walls with it. The same bytes always.
 */
#pragma once

#include "base/buf.h"

/* Where a node keeps it, below its folder of profiles (/var/lib/kubelet/seccomp). */
#define SECCOMP_PROFILE_NAME "murmur.json"

/* A file for that folder, as the OCI runtime specification has filters. */
void seccomp_profile_json (struct buf *out);
/* The same as an object of the Security Profiles Operator, as YAML, which puts it on every node as
 * operator/<namespace>/murmur.json. */
void seccomp_profile_object (struct buf *out, const char *namespace);
