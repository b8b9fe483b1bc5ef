/* SPDX-License-Identifier: Apache-2.0
 *
 * Files, environment and results of a guest (murmur_sdk.h says what each function does). It needs
 * no bindings: the same source is compiled for the build machine by its tests.
 */
#include "murmur_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- Files --- */

/* The sandbox's refusals are about where a path leads, not about modes. */
char *
mur_path_error (const char *path)
{
#if defined(ENOTCAPABLE)
    bool is_outside = errno == EPERM || errno == EACCES || errno == ENOTCAPABLE;
#else
    bool is_outside = errno == EPERM || errno == EACCES;
#endif
    return mur_format ("%s: %s", path,
                       is_outside ? "outside of what may be reached here" : strerror (errno));
}

/* Opening a pipe or a device may wait for ever: only plain files are opened. */
static bool
is_special (const struct stat *facts)
{
    return ! S_ISREG (facts->st_mode) && ! S_ISDIR (facts->st_mode);
}

char *
mur_file_read (const char *path, size_t limit_bytes, size_t *len, char **error)
{
    struct stat facts;
    FILE *file = NULL;
    bool is_there = stat (path, &facts) == 0;
    if (is_there && is_special (&facts))
        return set_error (error, mur_format ("%s is no regular file", path)), NULL;
    if (! is_there || (! S_ISDIR (facts.st_mode) && (file = fopen (path, "rb")) == NULL))
        return set_error (error, mur_path_error (path)), NULL;
    if (file == NULL)
        return set_error (error, mur_format ("%s is a folder", path)), NULL;
    struct mur_text text = { 0 };
    char chunk[4096];
    size_t got;
    while ((got = fread (chunk, 1, sizeof chunk, file)) > 0 && text.len <= limit_bytes)
        mur_text_add (&text, chunk, got);
    bool is_bad = ferror (file) != 0;
    fclose (file);
    if (is_bad || text.len > limit_bytes) {
        mur_text_free (&text);
        set_error (error, is_bad ? mur_format ("%s: cannot be read", path)
                                 : mur_format ("%s is larger than %zu bytes", path, limit_bytes));
        return NULL;
    }
    if (len != NULL)
        *len = text.len;
    return text.data != NULL ? text.data : copy_bytes ("", 0);
}

static bool
make_parents (const char *path, char **error)
{
    char *partial = copy_bytes (path, strlen (path));
    bool is_fine = true;
    for (char *slash = strchr (partial + 1, '/'); slash != NULL && is_fine;
         slash = strchr (slash + 1, '/')) {
        *slash = '\0';
        struct stat facts;
        if (stat (partial, &facts) < 0 && mkdir (partial, 0777) < 0 && errno != EEXIST) {
            set_error (error, mur_path_error (partial));
            is_fine = false;
        }
        *slash = '/';
    }
    free (partial);
    return is_fine;
}

bool
mur_file_write (const char *path, const char *bytes, size_t len, bool make_folders, char **error)
{
    if (make_folders && ! make_parents (path, error))
        return false;
    struct stat facts;
    if (stat (path, &facts) == 0 && is_special (&facts)) {
        set_error (error, mur_format ("%s is no regular file", path));
        return false;
    }
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    bool is_fine = fd >= 0;
    for (size_t done = 0; is_fine && done < len;) {
        ssize_t wrote = write (fd, bytes + done, len - done);
        is_fine = wrote > 0;
        done += is_fine ? (size_t)wrote : 0;
    }
    if (! is_fine)
        set_error (error, mur_path_error (path));
    if (fd >= 0)
        close (fd);
    return is_fine;
}

/* --- Environment --- */

const char *
mur_env (const char *name, const char *fallback)
{
    const char *value = getenv (name);
    return value != NULL ? value : fallback;
}

struct mur_json *
mur_config (void)
{
    const char *text = getenv ("MURMUR_ARTIFACT_CONFIG");
    return text == NULL ? NULL : mur_json_parse (text, strlen (text));
}

void
mur_sleep_ms (uint64_t milliseconds)
{
    struct timespec left = { (time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000 };
    while (nanosleep (&left, &left) < 0 && errno == EINTR)
        continue;
}

uint64_t
mur_monotonic_ms (void)
{
    struct timespec now;
    clock_gettime (CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void
mur_log (const char *format, ...)
{
    struct mur_text line = { 0 };
    va_list arguments;
    va_start (arguments, format);
    mur_text_vprintf (&line, format, arguments);
    va_end (arguments);
    mur_text_puts (&line, "\n");
    for (size_t done = 0; done < line.len;) {
        ssize_t wrote = write (STDERR_FILENO, line.data + done, line.len - done);
        if (wrote <= 0)
            break;
        done += (size_t)wrote;
    }
    mur_text_free (&line);
}

/* --- Results --- */

static void
set_outcome (struct mur_result *out, enum mur_status status, struct mur_text *text)
{
    if (text->data == NULL)
        mur_text_add (text, "", 0);
    out->status = status;
    free (out->data);
    out->data = text->data;
    out->data_len = text->len;
    *text = (struct mur_text){ 0 };
}

void
mur_passed (struct mur_result *out, const char *format, ...)
{
    struct mur_text text = { 0 };
    va_list arguments;
    va_start (arguments, format);
    mur_text_vprintf (&text, format, arguments);
    va_end (arguments);
    set_outcome (out, MUR_PASSED, &text);
}

void
mur_failed (struct mur_result *out, const char *format, ...)
{
    struct mur_text text = { 0 };
    va_list arguments;
    va_start (arguments, format);
    mur_text_vprintf (&text, format, arguments);
    va_end (arguments);
    set_outcome (out, MUR_FAILED, &text);
}

void
mur_passed_text (struct mur_result *out, struct mur_text *text)
{
    set_outcome (out, MUR_PASSED, text);
}

void
mur_metadata (struct mur_result *out, const char *key, const char *value)
{
    if (out->metadata_count == MUR_MAX_METADATA)
        return;
    out->metadata[out->metadata_count].key = copy_bytes (key, strlen (key));
    out->metadata[out->metadata_count].value = copy_bytes (value, strlen (value));
    out->metadata_count++;
}
