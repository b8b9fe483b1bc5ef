/* SPDX-License-Identifier: Apache-2.0 */
#include "host/task_io.h"

#include "base/buf.h"

#include <string.h>

static const char *const error_names[] = {
    [TASK_IO_NOT_GRANTED] = "not-granted",
    [TASK_IO_NO_TASK] = "no-task",
    [TASK_IO_NO_OUTPUT] = "no-output",
    [TASK_IO_OUT_OF_RANGE] = "out-of-range",
};

static void
answer_error (struct arena *arena, enum task_io_error error, struct value *result)
{
    struct value payload = value_enum (error_names[error]);
    *result = value_err (arena, &payload);
}

static enum task_io_error
text_of (void *ctx, enum task_io_text which, struct arena *arena, const char **text, size_t *len)
{
    const struct task_io_host *host = ctx;
    return host ? host->text (host->ctx, which, arena, text, len) : TASK_IO_NOT_GRANTED;
}

static enum task_io_text
form_of (const struct value *form)
{
    return strcmp (form->variant.name, "original") == 0 ? TASK_IO_ORIGINAL : TASK_IO_AS_GIVEN;
}

static bool
answer_len (void *ctx, struct arena *arena, enum task_io_text which, struct value *result)
{
    const char *text = NULL;
    size_t len = 0;
    enum task_io_error error = text_of (ctx, which, arena, &text, &len);
    struct value value = value_u64 (len);
    if (error)
        answer_error (arena, error, result);
    else
        *result = value_ok (arena, &value);
    return true;
}

/* The longest piece from <offset> within <max> bytes that ends on a character boundary. */
static bool
answer_piece (void *ctx, struct arena *arena, enum task_io_text which, uint64_t offset,
              uint64_t max, struct value *result)
{
    const char *text = NULL;
    size_t len = 0;
    enum task_io_error error = text_of (ctx, which, arena, &text, &len);
    bool is_inside = ! error && offset < len && ((unsigned char)text[offset] & 0xc0) == 0x80;
    if (! error && (offset > len || is_inside))
        error = TASK_IO_OUT_OF_RANGE;
    if (error) {
        answer_error (arena, error, result);
        return true;
    }
    size_t left = len - (size_t)offset;
    size_t size = utf8_cut (text + offset, left, max < left ? (size_t)max : left);
    struct value piece = value_string_n (arena, text + offset, size);
    *result = value_ok (arena, &piece);
    return true;
}

/* input-len: func (form: task-input-form) -> result<u64, io-error> */
static bool
input_len (void *ctx, struct arena *arena, const struct value *args, size_t arg_count _unused_,
           struct value *result, struct mur_error **err _unused_)
{
    return answer_len (ctx, arena, form_of (&args[0]), result);
}

/* read-input: func (form: task-input-form, offset: u64, max-bytes: u64) -> result<string, io-error>
 */
static bool
read_input (void *ctx, struct arena *arena, const struct value *args, size_t arg_count _unused_,
            struct value *result, struct mur_error **err _unused_)
{
    return answer_piece (ctx, arena, form_of (&args[0]), args[1].u, args[2].u, result);
}

/* output-len: func () -> result<u64, io-error> */
static bool
output_len (void *ctx, struct arena *arena, const struct value *args _unused_,
            size_t arg_count _unused_, struct value *result, struct mur_error **err _unused_)
{
    return answer_len (ctx, arena, TASK_IO_OUTPUT, result);
}

/* read-output: func (offset: u64, max-bytes: u64) -> result<string, io-error> */
static bool
read_output (void *ctx, struct arena *arena, const struct value *args, size_t arg_count _unused_,
             struct value *result, struct mur_error **err _unused_)
{
    return answer_piece (ctx, arena, TASK_IO_OUTPUT, args[0].u, args[1].u, result);
}

static const struct host_function functions[] = {
    { "input-len", input_len },
    { "read-input", read_input },
    { "output-len", output_len },
    { "read-output", read_output },
};

const struct host_interface host_task_io = {
    "murmur:task-io/read@0.1.0",
    functions,
    ARRAY_LEN (functions),
};
