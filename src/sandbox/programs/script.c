/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/script.h"

#include "base/alloc.h"
#include "sandbox/programs/path_lists.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES   512 /* containment 12.5: no more is read */
#define SCRIPT_MAX_BYTES 65536
#define STARTED_MAX      16

static const char *
base_of (const char *path)
{
    const char *slash = strrchr (path, '/');
    return slash ? slash + 1 : path;
}

void
script_interpreters (const char *path, struct strv *out)
{
    char head[LINE_MAX_BYTES + 1];
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read (fd, head, LINE_MAX_BYTES);
    if (n < 2 || head[0] != '#' || head[1] != '!')
        return;
    head[n] = '\0';
    head[strcspn (head, "\n")] = '\0';
    char *rest = head + 2;
    bool was_env = false;
    for (char *word; (word = strsep (&rest, " \t\r"));) {
        if (! *word || (was_env && (*word == '-' || strchr (word, '='))))
            continue;
        strv_push (out, word);
        if (was_env || ! str_eq (base_of (word), "env"))
            return;
        was_env = true;
    }
}

bool
script_is_shell (const struct strv *interpreters)
{
    static const char *const shells[] = { "sh", "bash", "dash", "ash", "zsh", "ksh" };
    const char *last =
        interpreters->len ? base_of (interpreters->items[interpreters->len - 1]) : "";
    for (size_t i = 0; i < ARRAY_LEN (shells); i++)
        if (str_eq (shells[i], last))
            return true;
    return false;
}

/* Nothing that a shell would still expand. */
static bool
is_literal (const char *word)
{
    for (const char *c = word; *c; c++)
        if (! isalnum ((unsigned char)*c) && ! strchr ("_./+-", *c))
            return false;
    return *word != '\0' && *word != '-';
}

static void
take_line (char *line, struct strv *out)
{
    bool is_after_exec = false;
    for (char *word; (word = strsep (&line, " \t;&|()<>=\"'`"));) {
        if (! *word)
            continue;
        if (*word == '#')
            return;
        if (is_literal (word) && (*word == '/' || is_after_exec) && out->len < STARTED_MAX)
            strv_push_once (out, word);
        is_after_exec = str_eq (word, "exec");
    }
}

void
script_starts (const char *path, struct strv *out)
{
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    _cleanup_free_ char *text = x_malloc (SCRIPT_MAX_BYTES + 1);
    ssize_t n = fd < 0 ? -1 : read (fd, text, SCRIPT_MAX_BYTES);
    text[n > 0 ? n : 0] = '\0';
    char *rest = text;
    for (char *line; (line = strsep (&rest, "\n"));)
        take_line (line, out);
}
