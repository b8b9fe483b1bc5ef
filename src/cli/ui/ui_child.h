/* SPDX-License-Identifier: Apache-2.0
 *
 * Another command of this program, run for the page: what it prints is the answer.
 *
 * In a process of its own, so that reading two whole traces costs the server nothing for long.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

struct ui_child_result {
    int status;          /* of its exit; 128 + a signal */
    struct buf out, err; /* at most UI_CHILD_BYTES of each */
    bool is_late;        /* it was ended because its time was over */
    bool is_cut;
};

#define UI_CHILD_BYTES ((size_t)8 << 20)

/* Runs it and waits at most <timeout_ms>; ended earlier when <stop_fd> becomes readable (-1:
 * never). <words> are its arguments without the program; NULL ends them. E-IO-003. */
bool ui_child_run (const char *const *words, uint64_t timeout_ms, int stop_fd,
                   struct ui_child_result *result, struct mur_error **err);
void ui_child_result_clear (struct ui_child_result *result);
