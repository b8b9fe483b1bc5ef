/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool: writes a line of each file of the work folder that tells of a fault into "report", and says
 * how many. What a fault is called is a word of its code.
 */
#include "murmur_sdk.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static const char mark[] = "fault: ";

static int
look_into (const char *name, FILE *report)
{
    char line[256];
    int found = 0;
    FILE *file = fopen (name, "r");
    while (file != NULL && fgets (line, sizeof line, file) != NULL)
        if (strncmp (line, mark, sizeof mark - 1) == 0) {
            fprintf (report, "%s %s", name, line);
            found++;
        }
    if (file != NULL)
        fclose (file);
    return found;
}

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    (void)in;
    int found = 0;
    DIR *folder = opendir (".");
    FILE *report = fopen ("report", "w");
    for (struct dirent *entry; folder != NULL && (entry = readdir (folder)) != NULL;)
        if (strncmp (entry->d_name, "log-", 4) == 0)
            found += look_into (entry->d_name, report);
    if (folder != NULL)
        closedir (folder);
    fclose (report);
    mur_passed (out, "%d found", found);
}
