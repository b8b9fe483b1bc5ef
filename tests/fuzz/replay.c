/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for libFuzzer where there is none: hands every file below the folders it is given to
 * the fuzzer's entry point, once. With it the kept inputs are a unit test of every build, and a
 * fuzzer cannot fall behind what it calls.
 *
 *   fuzz_NAME [FOLDER...]
 */
#include "tests/fuzz/fuzzing.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

static int
replay (const char *path, const struct stat *st, int type)
{
    if (type != FTW_F)
        return 0;
    size_t len = (size_t)st->st_size;
    uint8_t *bytes = malloc (len + 1);
    FILE *f = fopen (path, "re");
    assert (bytes && f && fread (bytes, 1, len, f) == len);
    fclose (f);
    LLVMFuzzerTestOneInput (bytes, len);
    free (bytes);
    return 0;
}

int
main (int argc, char **argv)
{
    (void)LLVMFuzzerTestOneInput ((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++)
        if (ftw (argv[i], replay, 8) != 0) {
            perror (argv[i]);
            return 1;
        }
    return 0;
}
