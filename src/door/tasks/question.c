/* SPDX-License-Identifier: Apache-2.0 */
#include "door/tasks/question.h"

#include "base/alloc.h"

#include <string.h>
#include <strings.h>

/* What people type for an answer. */
static const struct {
    const char *word, *answer;
} spoken[] = {
    { "y", "once" },     { "yes", "once" },  { "ok", "once" },        { "o", "once" },
    { "allow", "once" }, { "s", "session" }, { "always", "session" }, { "n", "no" },
    { "deny", "no" },    { "refuse", "no" }, { "v", "never" },
};

void
question_reply_clear (struct question_reply *r)
{
    free (r->text);
    free (r->by);
    *r = (struct question_reply){ 0 };
}

const char *
question_id (const json_t *data)
{
    return json_get_string (data, "question_id");
}

/* The answer of that spelling among those the question takes. */
static const char *
offered (const json_t *data, const char *word)
{
    size_t i;
    const json_t *answer;
    json_array_foreach (json_object_get (data, "answers"), i,
                        answer) if (strcasecmp (json_string_value (answer), word) ==
                                    0) return json_string_value (answer);
    return NULL;
}

static const char *
of_words (const json_t *data, const char *said)
{
    static const char blanks[] = " \t\r\n.!";
    said += strspn (said, blanks);
    size_t len = strlen (said);
    while (len && strchr (blanks, said[len - 1]))
        len--;
    _cleanup_free_ char *word = x_strndup (said, len);
    const char *answer = offered (data, word);
    for (size_t i = 0; ! answer && i < ARRAY_LEN (spoken); i++)
        if (strcasecmp (spoken[i].word, word) == 0)
            answer = offered (data, spoken[i].answer);
    return answer;
}

const char *
question_answer (const json_t *data, const char *said, const json_t *sent, char **why)
{
    const char *id = question_id (sent);
    if (id && ! str_eq (id, question_id (data))) {
        *why = x_asprintf ("%s is not the question that is open", id);
        return NULL;
    }
    const char *word = json_get_string (sent, "answer");
    const char *answer = word ? offered (data, word) : of_words (data, said);
    if (answer)
        return answer;
    _cleanup_buf_ struct buf names = { 0 };
    size_t i;
    const json_t *one;
    json_array_foreach (json_object_get (data, "answers"), i, one)
        buf_printf (&names, "%s%s", i ? ", " : "", json_string_value (one));
    *why = x_asprintf ("the answer is one of: %s", names.data ? names.data : "");
    return NULL;
}
