/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches one program run on the host, as the person who asked would run it, and notes which files
 * it and its children started and read: what a manifest has to grant where no recipe knows the
 * program. Nothing is contained here, and nothing is changed.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

struct observation {
    struct strv started;    /* canonical files, each once */
    struct strv read;       /* files and folders that were opened, not for writing */
    bool uses_unix_sockets; /* bound or connected one by a path */
    int exit_code;          /* 128 + signal */
    bool is_cut;            /* it touched more than is kept */
};

/* Runs <argv> (NULL-terminated; its first word is the file) to its end, its streams those of this
 * process. E-IO-003 when it cannot be started or watched. */
bool observe_run (char *const *argv, struct observation *out, struct mur_error **err);
void observation_free (struct observation *o);
