/* SPDX-License-Identifier: Apache-2.0
 *
 * The files a session began with, as lines that can be left away.
 */
#pragma once

#include "replay/record/record.h"

struct start_file {
    char *path; /* relative */
    mode_t mode;
    struct buf data;
    size_t *ends; /* of lines */
    size_t line_count;
    bool is_kept;
    bool *keeps; /* by line */
};
struct start_files {
    struct start_file *items;
    size_t len, cap;
};

/* The files of a recorded moment; links are left away. E-RPL-004, E-IO-003. */
bool start_files_read (const struct record *r, const char *tree_sha, struct start_files *out,
                       struct mur_error **err);
void start_files_clear (struct start_files *f);
/* Writes what is kept into <dir>, an empty folder. E-IO-003. */
bool start_files_write (const struct start_files *f, const char *dir, struct mur_error **err);
size_t start_files_lines (const struct start_files *f);
