/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/native.h"
#include "session/commands/limit_told.h"

#include "artifact/names/platform.h"
#include "base/alloc.h"
#include "base/fdio.h"
#include "sandbox/programs/elf_closure.h"
#include "sandbox/run/command.h"
#include "session/commands/confine.h"
#include "session/commands/processes_internal.h"
#include "session/commands/refusals_told.h"
#include "session/state/loop_lock.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>
#include <unistd.h>

#define OUTPUT_MAX (16u << 20) /* of a result worth reading */

/* --- staging --- */

static bool
is_native (const struct staged_artifact *a)
{
    return a->role == ROLE_TOOL && a->resolved && a->resolved->is_native;
}

static bool
native_write (struct session *s, struct staged_artifact *a, const struct buf *image,
              struct mur_error **err)
{
    _cleanup_free_ char *dir = x_asprintf ("tools/%s", a->tool_name);
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, a->tool_name);
    if (! fs_make_dirs (s->places.runtime, dir, 0777, false, err) ||
        ! fs_create (s->places.runtime, path, image->data, image->len, 0755, true, err))
        return false;
    a->native_path = x_asprintf ("%s/%s", s->places.dirs.runtime_path, path);
    /* From the bytes just written, never read back: nothing a capsule could change decides what may
     * be executed. */
    strv_push (&a->native_closure, a->native_path);
    elf_image_closure (image->data, image->len, s->places.work_path, &a->native_closure);
    return true;
}

bool
stage_native_tool (struct session *s, struct staged_artifact *a, struct mur_error **err)
{
    _cleanup_buf_ struct buf image = { 0 };
    return ! is_native (a) || (package_read_native (a->resolved->package, &image, err) &&
                               platform_check_binary (a->full_name, image.data, image.len, err) &&
                               native_write (s, a, &image, err));
}

bool
stage_native_tools (struct session *s, struct mur_error **err)
{
    struct buf *images = x_new_array (struct buf, s->kit.artifact_count + 1);
    bool is_good = true;
    for (size_t i = 0; i < s->kit.artifact_count && is_good; i++)
        if (is_native (&s->kit.artifacts[i]))
            is_good =
                package_read_native (s->kit.artifacts[i].resolved->package, &images[i], err) &&
                platform_check_binary (s->kit.artifacts[i].full_name, images[i].data, images[i].len,
                                       err);
    for (size_t i = 0; i < s->kit.artifact_count && is_good; i++)
        if (is_native (&s->kit.artifacts[i]))
            is_good = native_write (s, &s->kit.artifacts[i], &images[i], err);
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        buf_free (&images[i]);
    free (images);
    return is_good;
}

/* --- calling --- */

char *
native_stream_text (const struct command_stream *stream, size_t *len)
{
    if (stream->spill_fd < 0 || stream->total_bytes > OUTPUT_MAX) {
        *len = stream->kept.len;
        return x_strndup (stream->kept.data ? stream->kept.data : "", stream->kept.len);
    }
    char *text = x_malloc (stream->total_bytes + 1);
    size_t at = 0;
    while (at < stream->total_bytes) {
        ssize_t n = pread (stream->spill_fd, text + at, stream->total_bytes - at, (off_t)at);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    text[at] = '\0';
    *len = at;
    return text;
}

static enum tool_status
status_of (const char *word)
{
    return str_eq (word, "passed")   ? TOOL_PASSED
           : str_eq (word, "failed") ? TOOL_FAILED
                                     : TOOL_ERROR;
}

/* A member as text: strings as they are, anything else as JSON. NULL when absent or null. */
static char *
member_text (const json_t *o, const char *key)
{
    const json_t *v = json_object_get (o, key);
    if (! v || json_is_null (v))
        return NULL;
    return json_is_string (v) ? x_strdup (json_string_value (v)) : json_text (v, JSON_TEXT_SORTED);
}

static void
read_result (const char *name, const struct command_result *r, struct call_outcome *out)
{
    size_t len, err_len;
    _cleanup_free_ char *text = native_stream_text (&r->out, &len);
    _cleanup_json_ json_t *o = len ? json_loadb (text, len, 0, NULL) : NULL;
    if (json_is_object (o)) {
        _cleanup_free_ char *data = member_text (o, "data");
        _cleanup_free_ char *summary = member_text (o, "summary");
        const char *shown = data ? data : summary ? summary : "(the tool returned no data)";
        outcome_set_result (out, name, status_of (json_get_string (o, "status")), shown,
                            strlen (shown));
    } else if (len == 0) {
        _cleanup_free_ char *complaint = native_stream_text (&r->err, &err_len);
        outcome_set_result (out, name, r->exit_code == 0 ? TOOL_PASSED : TOOL_FAILED, complaint,
                            err_len);
    } else {
        outcome_set_result (out, name, r->exit_code == 0 ? TOOL_PASSED : TOOL_FAILED, text, len);
    }
    out->runtime_error = limit_told (name, r);
    if (r->resource_limit)
        buf_printf (&out->text, "\nresource_limit: %s — capabilities.resources.%s stopped the tool",
                    r->resource_limit, r->resource_limit);
}

static void
native_run (struct session *s, struct running_task *task, const struct staged_artifact *tool,
            const struct call *call, struct call_outcome *out)
{
    struct mur_error *err = NULL;
    _cleanup_json_ json_t *request = json_object ();
    json_set_string (request, "data", call->input_text);
    json_set_string (request, "log_path", NULL);
    _cleanup_free_ char *input = json_text (request, JSON_TEXT_SORTED);
    char *const argv[] = { tool->native_path, NULL };
    const struct command_start how = { .path = tool->native_path,
                                       .argv = argv,
                                       .env = s->rooms.processes->confined->env.items,
                                       .closure = &tool->native_closure,
                                       .nest = call->nest,
                                       .line = tool->tool_name,
                                       .input = input,
                                       .input_len = strlen (input) };
    _cleanup_ (command_unrefp) struct command *c =
        command_start (s->rooms.processes->confined->commands, &how, &err);
    if (! c) {
        outcome_set_error (out, "tool %s did not start: %s", tool->tool_name, err->message);
        if (err->code == E_RUN_014)
            task->fatal = steal_ptr (&err);
        mur_error_free (err);
        return;
    }
    loop_lock_release (&s->loop_lock);
    bool has_ended = command_wait (c, -1, call->stop ? call->stop : task->cancel);
    loop_lock_take (&s->loop_lock);
    if (! has_ended) {
        command_kill (c);
        command_wait (c, 5000, NULL);
        outcome_set_error (out, "tool %s was stopped: the task was cancelled", tool->tool_name);
        out->is_canceled = true;
        return;
    }
    struct command_result r = command_look (c);
    read_result (tool->tool_name, &r, out);
    size_t said_len, errors_len;
    _cleanup_free_ char *said = native_stream_text (&r.out, &said_len);
    _cleanup_free_ char *errors = native_stream_text (&r.err, &errors_len);
    _cleanup_strv_ struct strv lines = { 0 };
    const struct refused_command told = { tool->tool_name, NULL, said, errors, &r };
    refusals_tell (s, &told, &out->text, &lines);
}

void
native_call (struct session *s, struct running_task *task, const struct staged_artifact *tool,
             const struct call *call, struct call_outcome *out)
{
    struct mur_error *err = NULL;
    if (confine_check_size (s, &err)) {
        native_run (s, task, tool, call, out);
        return;
    }
    outcome_set_error (out, "%s", err->message);
    mur_error_free (err);
}
