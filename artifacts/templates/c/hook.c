/* SPDX-License-Identifier: Apache-2.0 */
/* A whole hook: calls whose input holds a word of `config: {words: [...]}` are refused, and
 * counted. One instance serves a session. murmur_hook.h says which events and answers there are. */
#include <stdlib.h>
#include <string.h>

#include "murmur_hook.h"

static unsigned refused;

void
mur_on_tool_call (const struct mur_tool_event *event, struct mur_hook_output *out)
{
    struct mur_json *config = mur_config ();
    mur_node words = mur_json_get (config, 0, "words");
    for (mur_node n = mur_json_first (config, words); n >= 0; n = mur_json_next (config, n)) {
        char *word = mur_json_text (config, n);
        /* With an outcome the call is over: it can be looked at, no longer refused. */
        if (event->outcome == NULL && word != NULL && strstr (event->input, word) != NULL) {
            mur_hook_deny (out, "no call may hold %s (refusal %u)", word, ++refused);
            free (word);
            break;
        }
        free (word);
    }
    mur_json_free (config);
}
