/* SPDX-License-Identifier: Apache-2.0
 *
 * A question of ours as an elicitation: one text, or one of the words it takes.
 */
#pragma once

#include "base/json.h"

/* Parameters of elicitation/create. <answers>: the words it takes (NULL: any text). A new object.
 */
json_t *mcp_elicitation_params (const char *text, const json_t *answers);
/* What an elicitation's result says. Owned; NULL: it is none. */
char *mcp_elicitation_answer (const json_t *response, const json_t *answers);
