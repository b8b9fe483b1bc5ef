/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock reader on any text: what it accepts, it writes in a form it accepts again, and that form is stable.
 */
#include "tests/fuzz/fuzzing.h"

#include "artifact/lock.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    _cleanup_lock_ struct lock *lock = lock_parse (text, size, "murmur.lock", NULL);
    if (lock) {
        char *once = lock_text (lock);
        _cleanup_lock_ struct lock *again = lock_parse (once, strlen (once), "murmur.lock", NULL);
        assert (again);
        char *twice = lock_text (again);
        assert (strcmp (once, twice) == 0);
        free (once);
        free (twice);
    }
    free (text);
    return 0;
}
