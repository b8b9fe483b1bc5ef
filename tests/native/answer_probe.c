/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of a provider read from standard input, what a driver makes of each written to standard
 * output: one line of JSON an answer.
 *
 *     answer_probe REQUEST_FILE
 *
 * An answer is a line "STATUS PIECE BROKEN LENGTH CONTENT-TYPE" (the type may be empty) and so many
 * bytes.
 */
#include "tests/native/driver_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
main (int argc, char **argv)
{
    static char request[1 << 20];
    FILE *file = argc == 2 ? fopen (argv[1], "r") : NULL;
    if (file == NULL)
        return fprintf (stderr, "usage: answer_probe REQUEST_FILE\n"), 2;
    request[fread (request, 1, sizeof request - 1, file)] = '\0';
    fclose (file);
    setenv ("MURMUR_INFERENCE_ENDPOINT", "http://provider.example/v1", 1);
    char type[200];
    struct native_answer answer = { 0 };
    int broken;
    while (scanf ("%u %zu %d %zu%199[^\n]", &answer.status, &answer.piece, &broken, &answer.len,
                  type) == 5) {
        char *body = malloc (answer.len + 1);
        if (body == NULL || getchar () != '\n' || fread (body, 1, answer.len, stdin) != answer.len)
            return 2;
        answer.body = body;
        answer.is_broken = broken != 0;
        answer.content_type = type[1] != '\0' ? type + 1 : NULL;
        struct native_outcome outcome = native_call (request, &answer);
        printf ("{\"failed\":%s,\"transient\":%d,\"requests\":%zu,\"answer\":%s}\n",
                outcome.is_failed ? "true" : "false", outcome.transient, outcome.requests,
                outcome.json);
        native_outcome_free (&outcome);
        free (body);
    }
    return 0;
}
