/* SPDX-License-Identifier: Apache-2.0
 *
 * The data set of `mur eval run`: JSON lines, one case each (spec/records.md 9).
 *
 * Always true: a case that was read can be run: its folders hold plain files only and its check is
 * a command; whether the task's file exists is looked at when it runs.
 */
#pragma once

#include "base/digest.h"
#include "fs/root.h"

struct eval_case {
    char *case_id;
    char *task_path;
    char *start;                           /* as written; NULL: the work folder begins empty */
    char start_sha256[SHA256_HEX_LEN + 1]; /* "" without start */
    struct fs_root *start_root;            /* NULL without start */
    char *check;                           /* command line; NULL: nothing is checked */
    char *check_files;                     /* as written; NULL: none */
    struct fs_root *files_root;
    uint64_t timeout_secs;
    char *record; /* bundle of the session it was made from; NULL: none */
};

struct eval_cases {
    struct eval_case *items;
    size_t len, cap;
};

/* Reads and judges a data set; paths are relative to the current directory. False: E-IO-001 (no
 * such file), E-IO-003 (unreadable, empty), E-EVAL-001 (<path>:<line>), E-EVAL-003 (a case that
 * cannot be run). */
bool eval_cases_read (const char *path, struct eval_cases *out, struct mur_error **err);
/* Every case has the record it was made from. E-EVAL-003. */
bool eval_cases_check_records (const struct eval_cases *cases, struct mur_error **err);
void eval_cases_clear (struct eval_cases *cases);
