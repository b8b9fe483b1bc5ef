/* SPDX-License-Identifier: Apache-2.0 */
#include "session/task/task_text.h"

#include "base/diag.h"
#include "base/text.h"
#include "session/stage.h"
#include "session/state/session.h"

#include <string.h>

#define TASK_FILE "task.md"

/* A harness reads its work folder itself, so that input.txt there is its own affair. */
static const struct {
    const char *name;
    bool is_for_harness;
} sources[] = { { "task.md", true }, { "input.txt", false } };

/* Copies one file when it is there; false when there is nothing by that name. */
static bool
import_file (struct session *s, const char *name)
{
    struct stat st;
    if (! fs_exists (s->places.work, name, &st))
        return false;
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    if (fs_read (s->places.work, name, TASK_TEXT_LIMIT_BYTES, &text, &err)) {
        text_form_normalise (&text);
        fs_write (s->places.runtime, TASK_FILE, text.data, text.len, 0666, false, &err);
    }
    if (err && err->code != E_RUN_050)
        diag_plain_warning ("%s of the work folder was not taken: %s", name, err->message);
    return true;
}

bool
task_text_import (struct session *s)
{
    struct stat st;
    bool is_harness = s->manifest->inference->transport == TRANSPORT_PROCESS;
    for (size_t i = 0; i < ARRAY_LEN (sources) && ! fs_exists (s->places.runtime, TASK_FILE, &st);
         i++)
        if ((sources[i].is_for_harness || ! is_harness) && import_file (s, sources[i].name))
            break;
    return fs_exists (s->places.runtime, TASK_FILE, &st);
}

bool
task_text_write (struct session *s, const char *text, size_t len, struct mur_error **err)
{
    return fs_create (s->places.runtime, TASK_FILE, text, len, 0666, false, err);
}

static bool
is_blank (const struct buf *text)
{
    for (size_t i = 0; i < text->len; i++)
        if (! strchr (" \t\r\n\v\f", text->data[i]) || text->data[i] == '\0')
            return false;
    return true;
}

bool
task_text_read (struct session *s, struct buf *out, struct mur_error **err)
{
    if (! fs_read (s->places.runtime, TASK_FILE, TASK_TEXT_LIMIT_BYTES, out, err))
        return mur_context (err, "the task's text");
    if (is_blank (out)) {
        mur_fail (err, E_RUN_007, "the task is blank");
        return mur_hint (err,
                         "give it with --task, in task.md of the work folder, or as a message");
    }
    return true;
}

bool
session_write_task (struct session *s, const char *text, size_t len, struct mur_error **err)
{
    return task_text_write (s, text, len, err);
}
