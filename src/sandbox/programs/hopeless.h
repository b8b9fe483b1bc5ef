/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that cannot do their work inside the walls, whatever is granted, and why: one sentence
 * each, with what to do instead.
 */
#pragma once

/* By the last part of a path or a name; NULL: none of them. Static. */
const char *hopeless_why (const char *program);
