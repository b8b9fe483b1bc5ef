/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of bundles on any entries: what it refuses leaves nothing, what it takes lies below
 * its folder. An input is lines, each an entry: its name, a tab, its content; one that begins with
 * "PK" is the file itself.
 */
#include "tests/fuzz/fuzzing.h"

#include "artifact/package/zip.h"
#include "base/alloc.h"
#include "replay/bundle/bundle.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_ENTRIES 64

static char dir[] = "/dev/shm/fuzz-bundle-XXXXXX";
static char *bundle, *into;
static size_t seen;

static int
remove_one (const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    if (at->level > 0) {
        seen++;
        if (remove (path) != 0)
            abort ();
    }
    return 0;
}

/* How many things there were. */
static size_t
empty (const char *path)
{
    seen = 0;
    nftw (path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return seen;
}

static void
clear (void)
{
    empty (dir);
    rmdir (dir);
    free (bundle);
    free (into);
}

static void
begin (void)
{
    if (bundle)
        return;
    if (! mkdtemp (dir))
        abort ();
    bundle = x_asprintf ("%s/x.murtrace", dir);
    into = x_asprintf ("%s/into", dir);
    if (mkdir (into, 0700) != 0)
        abort ();
    atexit (clear);
}

static bool
pack (char *text, size_t size, struct buf *out)
{
    struct zip_source entries[MOST_ENTRIES];
    size_t count = 0;
    if (size >= 2 && memcmp (text, "PK", 2) == 0) {
        buf_append (out, text, size);
        return true;
    }
    for (char *line = text, *end = text + size; line < end && count < MOST_ENTRIES;) {
        char *stop = memchr (line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        char *tab = memchr (line, '\t', (size_t)(stop - line));
        if (tab && ! memchr (line, '\0', (size_t)(tab - line))) {
            *tab = '\0';
            entries[count++] = (struct zip_source){ line, tab + 1, (size_t)(stop - tab) - 1 };
        }
        line = stop + 1;
    }
    return count && zip_write (entries, count, out, NULL);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    _cleanup_buf_ struct buf packed = { 0 };
    begin ();
    if (pack (text, size, &packed)) {
        FILE *file = fopen (bundle, "w");
        if (! file || fwrite (packed.data, 1, packed.len, file) != packed.len || fclose (file) != 0)
            abort ();
        _cleanup_error_ struct mur_error *err = NULL;
        bool is_strict;
        bool is_good = bundle_unpack (bundle, into, &is_strict, &err);
        assert (bundle_is_one (bundle) && (is_good || err));
        size_t left = empty (into);
        assert (is_good ? left > 0 : left == 0);
    }
    free (text);
    return 0;
}
