/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/eval_verdict.h"

#include "base/buf.h"

const char *
eval_verdict (const json_t *run, bool is_recorded)
{
    const char *scores = json_get_string (run, "scores_overall");
    const char *check = json_get_string (run, "check_result");
    const char *replay = json_get_string (run, "replay");
    if (! is_recorded)
        return scores;
    bool is_good = (str_eq (replay, "same") || str_eq (replay, "incomplete")) &&
                   (! check || str_eq (check, "pass")) && ! str_eq (scores, "fail");
    return is_good ? "pass" : "fail";
}

size_t
eval_verdict_count (const json_t *record, bool is_recorded, size_t *total)
{
    size_t i, n, passed = 0;
    const json_t *c, *run;
    *total = 0;
    json_array_foreach (json_object_get (record, "cases"), i, c)
        json_array_foreach (json_object_get (c, "runs"), n, run)
    {
        *total += 1;
        passed += str_eq (eval_verdict (run, is_recorded), "pass");
    }
    return passed;
}
