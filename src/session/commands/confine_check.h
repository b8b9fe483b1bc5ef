/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether this capsule's native processes can be confined here, asked before any is started.
 */
#pragma once

#include "policy/policy.h"
#include "sandbox/run/confinement.h"

struct session;

/* True when some part of the staged session may start a native process. */
bool session_may_run_native (const struct session *s);
/* E-CAP-005 when it may and this host gives no network namespace. A staging step, and again once
 * artifacts are known. */
bool confine_check_host (const struct session *s, bool has_native_artifact, struct mur_error **err);
/* The limits a session's control group gets. The path is borrowed. */
void confine_cgroup_limits (const struct policy *p, const char *io_path, struct cgroup_limits *out);
/* Names of shell.allow a runtime is staged for: nothing is asked of them. NULL-terminated, in the
 * policy's arena. */
const char *const *confine_staged_names (const struct policy *p);
