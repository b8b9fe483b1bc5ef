/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/tape/tape.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/json.h"
#include "trace/lines/blobs.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define SMALL_BODY 512 /* lies in its line: a file costs more */

struct tape {
    struct fs_root *records;
    int fd;
    unsigned char seed[TAPE_SEED_BYTES];
    pthread_mutex_t lock;
    bool is_broken;
    uint64_t lines;
    struct sha256 *digest; /* of all lines so far */
};

struct tape *
tape_new (struct fs_root *records, const unsigned char seed[TAPE_SEED_BYTES],
          struct mur_error **err)
{
    int fd = fs_open_append (records, TAPE_FILE, 0600, err);
    if (fd < 0)
        return NULL;
    struct tape *t = x_new0 (struct tape);
    t->records = records;
    t->fd = fd;
    memcpy (t->seed, seed, sizeof t->seed);
    t->digest = sha256_new ();
    pthread_mutex_init (&t->lock, NULL);
    return t;
}

const unsigned char *
tape_seed (const struct tape *t)
{
    return t->seed;
}

void
tape_key (const unsigned char seed[TAPE_SEED_BYTES], const char *place, unsigned char out[32])
{
    hmac_sha256 (seed, TAPE_SEED_BYTES, place, strlen (place), out);
}

/* Under the lock. */
static void
give_up (struct tape *t)
{
    if (! t->is_broken)
        diag_plain_warning ("%s/" TAPE_FILE " cannot be written any more: this session can be "
                            "replayed up to here",
                            fs_root_path (t->records));
    t->is_broken = true;
}

static void
append (struct tape *t, const char *text, size_t len)
{
    if (t->is_broken)
        return;
    if (! fd_write_all (t->fd, text, len)) {
        give_up (t);
        return;
    }
    t->lines++;
    sha256_add (t->digest, text, len);
}

void
tape_write (struct tape *t, const char *kind, json_t *line)
{
    json_set_string (line, "kind", kind);
    _cleanup_free_ char *text = json_text (line, JSON_TEXT_SORTED);
    _cleanup_free_ char *whole = x_asprintf ("%s\n", text);
    json_decref (line);
    pthread_mutex_lock (&t->lock);
    append (t, whole, strlen (whole));
    pthread_mutex_unlock (&t->lock);
}

bool
tape_body (struct tape *t, const void *data, size_t len, char sha[SHA256_HEX_LEN + 1])
{
    sha256_hex (data ? data : "", len, sha);
    if (trace_blob_store (t->records, sha, data ? data : "", len, NULL))
        return true;
    pthread_mutex_lock (&t->lock);
    give_up (t);
    pthread_mutex_unlock (&t->lock);
    return false;
}

void
tape_put (struct tape *t, json_t *line, const char *key, const void *data, size_t len)
{
    char sha[SHA256_HEX_LEN + 1];
    if (len > SMALL_BODY || (len && memchr (data, 0, len)) ||
        ! utf8_is_valid (data ? data : "", len)) {
        if (tape_body (t, data, len, sha))
            json_set_string (line, key, sha);
        return;
    }
    _cleanup_free_ char *inline_key = x_asprintf ("%s_text", key);
    json_set_string_n (line, inline_key, data ? data : "", len);
}

/* No end line is written where the digest would vouch for a tape that is not whole. */
void
tape_close (struct tape *t)
{
    if (! t)
        return;
    char sha[SHA256_HEX_LEN + 1];
    sha256_finish (steal_ptr (&t->digest), sha);
    _cleanup_free_ char *line = x_asprintf ("{\"kind\":\"end\",\"lines\":%llu,\"sha256\":\"%s\"}\n",
                                            (unsigned long long)t->lines, sha);
    if (! t->is_broken)
        (void)! fd_write_all (t->fd, line, strlen (line));
    close (t->fd);
    pthread_mutex_destroy (&t->lock);
    free (t);
}
