/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "base/alloc.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* Names and texts apart: a program that never explains a code does not carry the texts. */
static const char *const code_names[] = {
#define DIAG(id, code, meaning, remedy) code,
#include "base/diag_codes.def"
#undef DIAG
};

static const struct {
    const char *meaning, *remedy;
    bool is_unraised;
} code_texts[] = {
#define DIAG(id, code, meaning, remedy)          { meaning, remedy, false },
#define DIAG_UNRAISED(id, code, meaning, remedy) { meaning, remedy, true },
#include "base/diag_codes.def"
#undef DIAG
};

static void
set (struct mur_error **err, enum diag_code code, int errno_value, char *message)
{
    if (! err || *err) {
        free (message);
        return;
    }
    *err = x_new0 (struct mur_error);
    (*err)->code = code;
    (*err)->errno_value = errno_value;
    (*err)->message = message;
}

bool
mur_fail (struct mur_error **err, enum diag_code code, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    set (err, code, 0, x_vasprintf (fmt, ap));
    va_end (ap);
    return false;
}

/* What helps whatever was tried. */
static const struct {
    int error;
    const char *hint;
} remedies[] = {
    { ENOSPC, "the disk is full: free space on it, or use a place on another one" },
    { EDQUOT, "the quota of this user is used up: free space, or use a place on another disk" },
    { EROFS, "that place is mounted read-only: use another one" },
};

bool
mur_fail_errno (struct mur_error **err, enum diag_code code, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    char limit[LIMIT_NOTE_BYTES];
    (void)limit_note (saved, limit);
    set (err, code, saved, x_asprintf ("%s: %s%s", text, strerror (saved), limit));
    for (size_t i = 0; i < ARRAY_LEN (remedies); i++)
        if (remedies[i].error == saved)
            mur_hint (err, "%s", remedies[i].hint);
    errno = saved;
    return false;
}

bool
mur_context (struct mur_error **err, const char *fmt, ...)
{
    if (! err || ! *err)
        return false;
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    _cleanup_free_ char *old = (*err)->message;
    (*err)->message = x_asprintf ("%s: %s", text, old);
    return false;
}

bool
mur_hint (struct mur_error **err, const char *fmt, ...)
{
    if (! err || ! *err)
        return false;
    va_list ap;
    va_start (ap, fmt);
    free ((*err)->hint);
    (*err)->hint = x_vasprintf (fmt, ap);
    va_end (ap);
    return false;
}

bool
mur_propagate (struct mur_error **err, struct mur_error *caught)
{
    if (err && ! *err)
        *err = caught;
    else
        mur_error_free (caught);
    return false;
}

void
mur_error_free (struct mur_error *e)
{
    if (! e)
        return;
    free (e->message);
    free (e->hint);
    free (e);
}

const char *
diag_code_name (enum diag_code code)
{
    return code_names[code];
}

const char *
diag_code_meaning (enum diag_code code)
{
    return code_texts[code].meaning;
}

const char *
diag_code_remedy (enum diag_code code)
{
    return code_texts[code].remedy;
}

bool
diag_code_is_unraised (enum diag_code code)
{
    return code_texts[code].is_unraised;
}

bool
diag_code_find (const char *name, enum diag_code *code)
{
    for (size_t i = 0; i < ARRAY_LEN (code_names); i++)
        if (strcasecmp (code_names[i], name) == 0) {
            *code = (enum diag_code)i;
            return true;
        }
    return false;
}
