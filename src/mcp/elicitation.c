/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/elicitation.h"

#include "base/alloc.h"

json_t *
mcp_elicitation_params (const char *text, const json_t *answers)
{
    json_t *answer = json_pack ("{s:s, s:s}", "type", "string", "description", "The answer.");
    if (json_array_size (answers))
        json_object_set (answer, "enum", (json_t *)(uintptr_t)answers);
    json_t *params =
        json_pack ("{s:s, s:{s:s, s:{s:o}, s:[s]}}", "mode", "form", "requestedSchema", "type",
                   "object", "properties", "answer", answer, "required", "answer");
    json_set_string (params, "message", text);
    return params;
}

/* A person who says no says so in the question's own words, where it has them. */
static const char *
word_for_no (const json_t *answers)
{
    for (size_t i = 0; i < json_array_size (answers); i++) {
        const char *word = json_string_value (json_array_get (answers, i));
        if (str_eq (word, "no") || str_eq (word, "deny"))
            return word;
    }
    return "The person declined to answer.";
}

char *
mcp_elicitation_answer (const json_t *response, const json_t *answers)
{
    const char *action = json_get_string (response, "action");
    const char *answer = json_get_string (json_object_get (response, "content"), "answer");
    if (str_eq (action, "decline") || str_eq (action, "cancel"))
        return x_strdup (word_for_no (answers));
    return str_eq (action, "accept") && answer ? x_strdup (answer) : NULL;
}
