/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of /proc/self/mountinfo (proc_pid_mountinfo(5)).
 */
#pragma once

#include <stdbool.h>

struct mountinfo_line {
    const char *mount_point; /* escapes undone */
    const char *type;
    const char *source;        /* escapes undone */
    const char *super_options; /* "" without */
};

/* Takes the next well-formed line off <*rest>, which is changed in place; false at the end. The
 * fields point into it. */
bool mountinfo_next (char **rest, struct mountinfo_line *out);
