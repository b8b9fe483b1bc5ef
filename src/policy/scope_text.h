/* SPDX-License-Identifier: Apache-2.0
 *
 * The grants report as text for a person. See scope_report.h; the facts are those of the JSON form.
 */
#pragma once

#include "policy/scope_report.h"

/* The text report, ending with a newline. */
void scope_report_text (const struct policy *p, const struct report_facts *facts, struct buf *out);

/* Pieces of the text report, for `mur doctor`: what each artifact finds at ".", the protected
 * paths, the install grant. */
void
scope_text_preopens (const struct policy *p, const struct report_facts *facts, struct buf *out);
void scope_text_read_only (const struct policy *p, struct buf *out);
void scope_text_install (const struct policy *p, struct buf *out);
/* The blocks "Runtime directory", "Records directory" and "Temporary folder", a blank line after
 * each. */
void scope_text_directories (const struct report_facts *facts, struct buf *out);
