/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's part of the grants report: what allowed interpreters and the certificate store add,
 * and how the limit on I/O fares (spec/containment.md 8.2, 14.2, 16). The report itself is
 * policy/'s.
 *
 * Callers: launch.c for session_start, cli/run/cmd_run.c for --explain-scope.
 */
#pragma once

#include "policy/scope_report.h"
#include "session/state/session.h"

/* For --explain-scope: looks at this host and makes nothing that stays; the I/O limit is tried on a
 * control group made and removed for it. <work_root> need not exist. */
void grants_look (struct policy *p, const char *work_root, bool may_run_native,
                  struct report_facts *facts);
/* Sets s->effective_grants, and s->host_facts, from what the session really runs under. */
void grants_record (struct session *s);
