/* SPDX-License-Identifier: Apache-2.0
 *
 * Included before each source of a process driver: what it keeps from line to line lies in a
 * section of its own, which process_host.c clears when a run is over.
 */
#pragma once

#pragma clang section bss = "mur_state"
