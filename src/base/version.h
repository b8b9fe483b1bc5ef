/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of this program, as `mur version`, the door and the lock file state it.
 * tests/unit/cli compares it with the build's own.
 */
#pragma once

#define MUR_VERSION "0.1.0"
