/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/ship/s3_profile.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fdio.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>

#define FILE_MAX ((size_t)1 << 20)

static const char *
variable (const char *name, const char *usual)
{
    const char *value = getenv (name);
    return value && *value ? value : usual;
}

static char *
file_path (void)
{
    const char *named = variable ("AWS_SHARED_CREDENTIALS_FILE", NULL);
    return named ? x_strdup (named) : x_asprintf ("%s/.aws/credentials", variable ("HOME", ""));
}

static const char *
profile_name (void)
{
    return variable ("AWS_PROFILE", "default");
}

char *
s3_profile_words (void)
{
    _cleanup_free_ char *path = file_path ();
    return x_asprintf ("profile %s of %s", profile_name (), path);
}

/* Without the blanks on either side. */
static char *
trimmed (char *text)
{
    while (isspace ((unsigned char)*text))
        text++;
    for (size_t len = strlen (text); len && isspace ((unsigned char)text[len - 1]); len--)
        text[len - 1] = '\0';
    return text;
}

/* "[name]"; NULL: no head of a profile. */
static const char *
head_of (char *line)
{
    char *end = *line == '[' ? strchr (line, ']') : NULL;
    if (! end)
        return NULL;
    *end = '\0';
    return trimmed (line + 1);
}

struct secret *
s3_profile_value (const char *name)
{
    _cleanup_free_ char *path = file_path ();
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    _cleanup_buf_ struct buf text = { 0 };
    struct secret *found = NULL;
    if (fd < 0 || ! fd_read_all (fd, FILE_MAX, &text))
        return NULL;
    buf_append (&text, "", 0);
    bool is_ours = false;
    for (char *rest = text.data, *line; ! found && (line = strsep (&rest, "\n"));) {
        line = trimmed (line);
        const char *head = head_of (line);
        if (head)
            is_ours = str_eq (head, profile_name ());
        char *value = head || ! is_ours ? NULL : strchr (line, '=');
        if (! value)
            continue;
        *value++ = '\0';
        value = trimmed (value);
        if (*value && strcasecmp (trimmed (line), name) == 0)
            found = secret_new (value, strlen (value));
    }
    secret_wipe (text.data, text.len);
    return found;
}
