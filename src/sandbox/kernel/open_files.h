/* SPDX-License-Identifier: Apache-2.0
 *
 * Files without a name that a control group's processes hold open: they fill a disk and no folder
 * shows them.
 */
#pragma once

#include "sandbox/kernel/cgroup.h"

#include <sys/types.h>

/* Their bytes on any of <devices>, each file once. */
uint64_t
open_files_unlinked_bytes (const struct cgroup_scope *scope, const dev_t *devices, size_t count);
