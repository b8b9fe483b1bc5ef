/* SPDX-License-Identifier: Apache-2.0 */
#include "door/tasks/list_query.h"

#include "base/alloc.h"
#include "base/json.h"
#include "door/tasks/task_json.h"
#include "door/tasks/task_state.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

#define PAGE_SIZE      50
#define MOST_PAGE_SIZE 100

static bool
refuse (char **fault, const char *name, const char *why)
{
    *fault = x_asprintf ("Invalid params: %s %s", name, why);
    return false;
}

static bool
read_status (const json_t *params, struct list_query *q, char **fault)
{
    const json_t *status = json_object_get (params, "status");
    if (! status)
        return true;
    const char *text = json_string_value (status);
    if (str_eq (text, "TASK_STATE_UNSPECIFIED"))
        return true;
    if (str_eq (text, "TASK_STATE_AUTH_REQUIRED")) {
        q->matches_nothing = true;
        return true;
    }
    for (int state = TASK_SUBMITTED; state <= TASK_REJECTED; state++)
        if (str_eq (text, task_state_wire ((enum task_state)state))) {
            q->has_state = true;
            q->state = (enum task_state)state;
            return true;
        }
    return refuse (fault, "status", "must be a task state such as TASK_STATE_WORKING");
}

static bool
read_page (const json_t *params, struct list_query *q, char **cursor_id, char **fault)
{
    const json_t *size = json_object_get (params, "pageSize");
    q->page_size = PAGE_SIZE;
    if (size && (! json_is_integer (size) || json_integer_value (size) < 1))
        return refuse (fault, "pageSize", "must be an integer of at least 1");
    if (size) {
        json_int_t asked = json_integer_value (size);
        q->page_size = asked > MOST_PAGE_SIZE ? MOST_PAGE_SIZE : (unsigned)asked;
    }
    const json_t *token = json_object_get (params, "pageToken");
    if (token && ! json_is_string (token))
        return refuse (fault, "pageToken", "must be a string");
    if (token && json_string_length (token)) {
        if (! task_page_token_read (json_string_value (token), &q->cursor_revision, cursor_id))
            return refuse (fault, "pageToken", "is not one this door gave out");
        q->has_cursor = true;
        q->cursor_task_id = *cursor_id;
    }
    return true;
}

/* ".123456Z", "+02:00": the rest of an RFC 3339 time after its seconds. */
static bool
read_time_rest (const char *rest, int64_t *ms, int64_t *offset_s)
{
    *ms = *offset_s = 0;
    if (*rest == '.') {
        int64_t scale = 100;
        if (! isdigit ((unsigned char)*++rest))
            return false;
        for (; isdigit ((unsigned char)*rest); rest++, scale /= 10)
            *ms += (*rest - '0') * scale;
    }
    if (strcasecmp (rest, "Z") == 0)
        return true;
    int hours, minutes, used = 0;
    if ((*rest != '+' && *rest != '-') ||
        sscanf (rest + 1, "%2d:%2d%n", &hours, &minutes, &used) != 2 || used != 5 ||
        rest[6] != '\0' || hours > 23 || minutes > 59)
        return false;
    *offset_s = (hours * 60 + minutes) * 60 * (*rest == '-' ? -1 : 1);
    return true;
}

static bool
read_rfc3339 (const char *text, uint64_t *unix_ms)
{
    struct tm parts = { 0 };
    char separator = 0;
    int used = 0;
    if (sscanf (text, "%4d-%2d-%2d%c%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                &separator, &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &used) != 7 ||
        used != 19 || ! strchr ("Tt ", separator) || parts.tm_mon < 1 || parts.tm_mon > 12 ||
        parts.tm_mday < 1 || parts.tm_mday > 31 || parts.tm_hour > 23 || parts.tm_min > 59 ||
        parts.tm_sec > 60)
        return false;
    int64_t ms, offset_s;
    if (! read_time_rest (text + used, &ms, &offset_s))
        return false;
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    int64_t at = ((int64_t)timegm (&parts) - offset_s) * 1000 + ms;
    *unix_ms = at > 0 ? (uint64_t)at : 0;
    return true;
}

static bool
read_after (const json_t *params, struct list_query *q, char **fault)
{
    const json_t *after = json_object_get (params, "statusTimestampAfter");
    if (! after || json_is_null (after))
        return true;
    if (! json_is_string (after) || ! read_rfc3339 (json_string_value (after), &q->after_ms))
        return refuse (fault, "statusTimestampAfter", "must be an RFC 3339 time");
    q->has_after = true;
    return true;
}

bool
list_query_read (const json_t *params, struct list_query *q, char **cursor_id, char **fault)
{
    *q = (struct list_query){ 0 };
    const json_t *context = json_object_get (params, "contextId");
    if (context && ! json_is_string (context))
        return refuse (fault, "contextId", "must be a string");
    if (context && json_string_length (context))
        q->context_id = json_string_value (context);
    if (! read_status (params, q, fault) || ! read_page (params, q, cursor_id, fault) ||
        ! read_after (params, q, fault))
        return false;
    const json_t *artifacts = json_object_get (params, "includeArtifacts");
    if (artifacts && ! json_is_boolean (artifacts))
        return refuse (fault, "includeArtifacts", "must be a boolean");
    q->includes_artifacts = json_is_true (artifacts);
    return true;
}
