/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secret.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/digest.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

struct secret {
    size_t len;
    char bytes[];
};

struct secret *
secret_new (const char *text, size_t len)
{
    struct secret *s = x_calloc (1, sizeof *s + len + 1);
    (void)mlock (s, sizeof *s + len + 1); /* best effort: RLIMIT_MEMLOCK may be 0 */
    s->len = len;
    memcpy (s->bytes, text, len);
    return s;
}

struct secret *
secret_copy (const struct secret *s)
{
    return secret_new (s->bytes, s->len);
}

void
secret_wipe (void *p, size_t len)
{
    explicit_bzero (p, len);
}

void
secret_free (struct secret *s)
{
    if (! s)
        return;
    size_t size = sizeof *s + s->len + 1;
    secret_wipe (s, size);
    (void)munlock (s, size);
    free (s);
}

size_t
secret_len (const struct secret *s)
{
    return s->len;
}

const char *
secret_reveal (const struct secret *s)
{
    return s->bytes;
}

bool
secret_equal (const struct secret *a, const struct secret *b)
{
    return a->len == b->len && bytes_equal_ct (a->bytes, b->bytes, a->len);
}

struct redactor {
    pthread_mutex_t lock;
    struct secret **values;
    size_t len;
    size_t cap;
};

struct redactor *
redactor_new (void)
{
    struct redactor *r = x_new0 (struct redactor);
    pthread_mutex_init (&r->lock, NULL);
    return r;
}

void
redactor_free (struct redactor *r)
{
    if (! r)
        return;
    for (size_t i = 0; i < r->len; i++)
        secret_free (r->values[i]);
    free (r->values);
    pthread_mutex_destroy (&r->lock);
    free (r);
}

void
redactor_add (struct redactor *r, const struct secret *s)
{
    if (s->len < 4)
        return;
    pthread_mutex_lock (&r->lock);
    bool is_known = false;
    for (size_t i = 0; i < r->len && ! is_known; i++)
        is_known = secret_equal (r->values[i], s);
    if (! is_known) {
        x_grow (r->values, r->len, r->cap);
        r->values[r->len++] = secret_copy (s);
    }
    pthread_mutex_unlock (&r->lock);
}

/* Longest known value that starts at <at>, else NULL: a value that contains another must go whole.
 */
static const struct secret *
match_at (const struct redactor *r, const char *at, size_t left)
{
    const struct secret *best = NULL;
    for (size_t i = 0; i < r->len; i++) {
        const struct secret *s = r->values[i];
        if (s->len <= left && memcmp (at, s->bytes, s->len) == 0 && (! best || s->len > best->len))
            best = s;
    }
    return best;
}

char *
redactor_apply (struct redactor *r, const char *text)
{
    size_t len = strlen (text);
    struct buf out = { 0 };
    pthread_mutex_lock (&r->lock);
    for (size_t i = 0; i < len;) {
        const struct secret *s = match_at (r, text + i, len - i);
        if (s) {
            buf_puts (&out, "[redacted]");
            i += s->len;
        } else {
            buf_putc (&out, text[i++]);
        }
    }
    pthread_mutex_unlock (&r->lock);
    return buf_steal (&out);
}
