/* SPDX-License-Identifier: Apache-2.0
 *
 * A script capsule: greets whoever its task names.
 */
#include <stdlib.h>
#include <string.h>

#include "murmur_sdk.h"

void
mur_capsule (void)
{
    char *error = NULL;
    char *task = mur_file_read ("murmur-runtime/task.md", 1 << 20, NULL, NULL);
    const char *name = task != NULL && *task != '\0' ? task : "nobody in particular";
    char *greeting = mur_format ("Hello, %.*s!\n", (int)strcspn (name, "\n"), name);
    if (! mur_file_write ("out/result.txt", greeting, strlen (greeting), true, &error)) {
        mur_log ("%s", error);
        abort ();
    }
}
