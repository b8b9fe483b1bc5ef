/* SPDX-License-Identifier: Apache-2.0
 *
 * Every work folder that has records below ~/.murmur/records, and the sessions in each.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

struct ui_groups {
    struct ui_group {
        char *work_root, *path; /* absolute */
        struct strv names;      /* "ses_...", newest first */
    } * items;
    size_t len, cap;
    struct strv unreadable; /* folders that could not be listed */
};

/* Lists them, following no link. <only>: this work root alone (canonical; NULL: all). E-IO-004. */
bool ui_groups_read (struct ui_groups *g, const char *only, struct mur_error **err);
void ui_groups_clear (struct ui_groups *g);
