/* SPDX-License-Identifier: Apache-2.0
 *
 * The symbolic links a path leads through, each as it lies on the host: where only parts of the
 * host are shown, a program must be found by the same names, or it looks for its own parts in
 * another folder.
 */
#pragma once

#include "base/buf.h"

/* Pushes pairs to <out>: a link (its own folder canonical) and the text it holds. <path> is
 * absolute. A pair that is there already is not pushed again. */
void link_chain_of (const char *path, struct strv *out);
