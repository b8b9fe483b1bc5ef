/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock reader on any text: what it accepts, it writes in a form it accepts again, and that form
 * is stable; a pin changes its own entry alone.
 */
#include "tests/fuzz/fuzzing.h"

#include "artifact/store/lock.h"

/* An operator and a session pin over whatever the lock holds; the lock stays one that can be read.
 */
static void
pin_and_drop (struct lock *lock, const char *platform, enum lock_origin origin)
{
    const char *hash = "9b1d0000000000000000000000000000000000000000000000000000000000ff";
    const char *name = lock->count ? lock->entries[0].name : "ana/new";
    char *own_name = strdup (name);
    struct lock_pin pin = { .name = own_name,
                            .version = "1.0.0",
                            .sha256 = hash,
                            .platform = platform,
                            .origin = origin,
                            .session = "ses_1",
                            .has_owner_id = true,
                            .owner_id = 7 };
    size_t before = lock->count;
    bool was_there = lock_find (lock, own_name) != NULL;
    (void)lock_check_conflict (lock, &pin, NULL);
    char *session = NULL;
    lock_pin (lock, &pin, &session);
    free (session);
    assert (lock->count == before + ! was_there);
    struct lock_entry *e = lock_find (lock, own_name);
    assert (strcmp (lock_entry_hash (e, platform ? platform : "x"), hash) == 0);
    assert (lock_check_conflict (lock, &pin, NULL));
    free (lock_entry_platforms (e));
    (void)lock_check_owner (lock, "ana", 7, NULL);
    (void)lock_check_owner (lock, "ana", 8, NULL);
    char *text = lock_text (lock);
    _cleanup_lock_ struct lock *again = lock_parse (text, strlen (text), "murmur.lock", NULL);
    assert (again && again->count == lock->count);
    free (text);
    free (own_name);
}

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
        pin_and_drop (lock, NULL, LOCK_RUNTIME);
        pin_and_drop (lock, "linux-x86_64", LOCK_OPERATOR);
        pin_and_drop (lock, "darwin-aarch64", LOCK_OPERATOR);
        while (lock->count)
            assert (lock_drop (lock, lock->entries[lock->count - 1].name));
        assert (! lock_drop (lock, "ana/none"));
    }
    free (text);
    return 0;
}
