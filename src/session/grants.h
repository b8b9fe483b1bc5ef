/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's part of the grants report: what allowed interpreters and the certificate store add,
 * and how the limit on I/O fares (docs/spec/containment.md 8.2, 14.2, 16). The report itself is
 * policy/'s.
 */
#pragma once

#include "policy/scope_report.h"

/* For --explain-scope: looks at this host and makes nothing that stays; the I/O limit is tried on a
 * control group made and removed for it. <work_root> need not exist. */
void grants_look (struct policy *p, const char *work_root, bool may_run_native,
                  struct report_facts *facts);
/* E-CAP-006 under a sealed floor: every name of shell.allow that is a script the composed root
 * would hold no interpreter for. A staging step, and a concern of `mur doctor`. */
bool confine_check_entries (const struct policy *p, struct mur_error **err);
