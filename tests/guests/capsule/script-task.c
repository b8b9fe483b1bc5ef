/* SPDX-License-Identifier: Apache-2.0
 *
 * Script capsule: writes the task it was given into out/result.txt, as `task: <text>`.
 */
#include <stdlib.h>

#include "murmur_sdk.h"

void
mur_capsule (void)
{
    char *error = NULL;
    struct mur_text result = { 0 };
    char *task = mur_file_read ("murmur-runtime/task.md", 1 << 20, NULL, &error);
    mur_text_printf (&result, "task: %s", task != NULL ? task : error);
    if (! mur_file_write ("out/result.txt", result.data, result.len, true, &error)) {
        mur_log ("%s", error);
        abort ();
    }
}
