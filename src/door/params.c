/* SPDX-License-Identifier: Apache-2.0 */
#include "door/params.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <string.h>

enum shape {
    SHAPE_OBJECT,
    SHAPE_BOOL,
    SHAPE_TEXTS,
    SHAPE_COUNT,
};

static const char *const wanted[] = {
    [SHAPE_OBJECT] = "an object",
    [SHAPE_BOOL] = "a boolean",
    [SHAPE_TEXTS] = "an array of strings",
    [SHAPE_COUNT] = "an integer of at least 0",
};

#define OF(method) (1u << METHOD_##method)
#define OF_SENDS   (OF (SEND_MESSAGE) | OF (SEND_STREAMING_MESSAGE))

static const struct {
    unsigned methods;
    const char *path; /* members with dots between; "*": each element */
    enum shape shape;
} rules[] = {
    { OF_SENDS, "configuration", SHAPE_OBJECT },
    { OF_SENDS, "configuration.acceptedOutputModes", SHAPE_TEXTS },
    { OF_SENDS, "configuration.historyLength", SHAPE_COUNT },
    { OF_SENDS, "configuration.returnImmediately", SHAPE_BOOL },
    { OF_SENDS, "metadata", SHAPE_OBJECT },
    { OF_SENDS, "message.metadata", SHAPE_OBJECT },
    { OF_SENDS, "message.extensions", SHAPE_TEXTS },
    { OF_SENDS, "message.parts.*.metadata", SHAPE_OBJECT },
    { OF (GET_TASK) | OF (LIST_TASKS), "historyLength", SHAPE_COUNT },
    { OF (CANCEL_TASK), "metadata", SHAPE_OBJECT },
};

static bool
has_shape (const json_t *value, enum shape shape)
{
    switch (shape) {
    case SHAPE_OBJECT:
        return json_is_object (value);
    case SHAPE_BOOL:
        return json_is_boolean (value);
    case SHAPE_COUNT:
        return json_is_integer (value) && json_integer_value (value) >= 0 &&
               json_integer_value (value) <= INT32_MAX;
    case SHAPE_TEXTS:
        break;
    }
    size_t i;
    json_t *one;
    json_array_foreach (value, i, one) if (! json_is_string (one)) return false;
    return json_is_array (value);
}

/* Whether all that <path> names below <value> has the shape; what is not there has. */
static bool
is_good (const json_t *value, const char *path, enum shape shape)
{
    if (! value || json_is_null (value))
        return true;
    if (! *path)
        return has_shape (value, shape);
    size_t len = strcspn (path, ".");
    const char *rest = path + len + (path[len] == '.');
    if (*path != '*') {
        _cleanup_free_ char *name = x_strndup (path, len);
        return is_good (json_object_get (value, name), rest, shape);
    }
    size_t i;
    json_t *one;
    json_array_foreach (value, i, one) if (! is_good (one, rest, shape)) return false;
    return true;
}

char *
params_fault (enum door_method method, const json_t *params)
{
    for (size_t i = 0; i < ARRAY_LEN (rules); i++)
        if ((rules[i].methods & 1u << method) && ! is_good (params, rules[i].path, rules[i].shape))
            return x_asprintf ("Invalid params: %s must be %s", rules[i].path,
                               wanted[rules[i].shape]);
    return NULL;
}
