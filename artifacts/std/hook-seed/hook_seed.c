/* SPDX-License-Identifier: Apache-2.0
 *
 * std/hook-seed: notes and files before each task (README.md says its config).
 */
#include <stdlib.h>
#include <string.h>

#include "murmur_hook.h"

#define FILE_LIMIT_BYTES (256u << 10)

static void
seed (struct mur_hook_output *out, const char *text)
{
    mur_hook_seed (out, &(struct mur_message){ .role = "user", .content = text });
}

static void
seed_file (struct mur_hook_output *out, const char *path)
{
    size_t len = 0;
    char *error = NULL, *bytes = mur_file_read (path, FILE_LIMIT_BYTES, &len, &error);
    if (bytes == NULL) {
        mur_log ("std/hook-seed: %s: passed over", error);
    } else if (len > 0) {
        struct mur_text text = { 0 };
        mur_text_printf (&text, "%s:\n\n", path);
        mur_text_utf8 (&text, bytes, len);
        seed (out, text.data);
        mur_text_free (&text);
    }
    free (bytes);
    free (error);
}

void
mur_on_task_start (const struct mur_task_start_event *event, struct mur_hook_output *out)
{
    struct mur_json *config = mur_config ();
    mur_node files = mur_json_get (config, 0, "files");
    char *text = mur_json_text (config, mur_json_get (config, 0, "text"));
    (void)event;
    if (text != NULL && *text != '\0')
        seed (out, text);
    for (mur_node n = mur_json_first (config, files); n >= 0; n = mur_json_next (config, n)) {
        char *path = mur_json_text (config, n);
        if (path != NULL)
            seed_file (out, path);
        free (path);
    }
    free (text);
    mur_json_free (config);
}
