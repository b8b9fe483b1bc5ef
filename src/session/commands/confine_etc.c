/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/confine_etc.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "fs/replace.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define GITCONFIG_MAX 65536

static bool
etc_write (int dir_fd, const char *name, const char *text, struct mur_error **err)
{
    return fs_replace_at (dir_fd, name, text, strlen (text), 0644, false, err);
}

/* "localhost" and the machine's own name lead to the loopback addresses; whom else the host's file
 * names is its own business. */
static const char *
hosts_text (struct arena *a)
{
    char name[HOST_NAME_MAX + 1] = "";
    if (gethostname (name, sizeof name - 1) < 0 || strpbrk (name, " \t\r\n#"))
        name[0] = '\0';
    return arena_printf (a,
                         "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n%s%s%s",
                         name[0] ? "127.0.1.1\t" : "", name, name[0] ? "\n" : "");
}

static const char nsswitch_text[] = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
                                    "networks: files\nservices: files\nprotocols: files\n";

/* Sections of git's system configuration that hold neither addresses nor helpers nor keys; of
 * `core` and `filter` the values that are plain switches or name git-lfs. */
static bool
may_show_section (const char *line)
{
    static const char *const sections[] = { "[core]",           "[init]",   "[safe]",  "[color",
                                            "[pull]",           "[push]",   "[fetch]", "[merge]",
                                            "[branch]",         "[rebase]", "[diff]",  "[advice]",
                                            "[filter \"lfs\"]", "[gc]",     "[pack]",  "[index]",
                                            "[feature]" };
    for (size_t i = 0; i < ARRAY_LEN (sections); i++)
        if (strncasecmp (line, sections[i], strlen (sections[i])) == 0)
            return true;
    return false;
}

static bool
may_show_value (const char *line, bool is_lfs)
{
    static const char *const hidden[] = { "askpass",        "sshcommand",
                                          "hookspath",      "fsmonitor",
                                          "gitproxy",       "excludesfile",
                                          "attributesfile", "editor",
                                          "pager",          "tool",
                                          "external",       "driver",
                                          "textconv",       "alternaterefscommand",
                                          "worktree" };
    for (size_t i = 0; i < ARRAY_LEN (hidden); i++)
        if (strncasecmp (line, hidden[i], strlen (hidden[i])) == 0)
            return false;
    return ! strstr (line, "://") && (! is_lfs || strstr (line, "git-lfs") || ! strstr (line, "/"));
}

static char *
gitconfig_text (void)
{
    struct buf out = { 0 };
    _cleanup_close_ int fd = open ("/etc/gitconfig", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    _cleanup_free_ char *text = x_malloc (GITCONFIG_MAX + 1);
    ssize_t n = fd < 0 ? -1 : read (fd, text, GITCONFIG_MAX);
    text[n > 0 ? n : 0] = '\0';
    char *rest = text;
    bool is_shown = false, is_lfs = false, is_continued = false;
    for (char *line; (line = strsep (&rest, "\n"));) {
        line += strspn (line, " \t\r");
        if (*line == '[' && ! is_continued) {
            is_shown = may_show_section (line) && ! strchr (line, '=');
            is_lfs = strncasecmp (line, "[filter", strlen ("[filter")) == 0;
            if (is_shown)
                buf_printf (&out, "%s\n", line);
            continue;
        }
        bool was_continued = is_continued;
        is_continued = str_ends (line, "\\");
        if (is_shown && *line && *line != '#' && *line != ';' && ! was_continued &&
            ! is_continued && may_show_value (line, is_lfs))
            buf_printf (&out, "\t%s\n", line);
    }
    return buf_steal (&out);
}

const char *
confine_write_etc (struct arena *a, const char *dir, const char *home, struct mur_error **err)
{
    if (strpbrk (home, ":\n"))
        return mur_fail (err, E_RUN_014,
                         "the home %s of the commands holds a colon or a newline, which no "
                         "passwd file can",
                         home),
               NULL;
    _cleanup_close_ int fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", dir), NULL;
    unsigned uid = geteuid (), gid = getegid ();
    const char *passwd = uid == 0 ? arena_printf (a, "root:x:0:0:root:%s:/bin/sh\n", home)
                                  : arena_printf (a,
                                                  "root:x:0:0:root:/root:/bin/sh\n"
                                                  "capsule:x:%u:%u:Murmur capsule:%s:/bin/sh\n",
                                                  uid, gid, home);
    const char *group =
        gid == 0 ? "root:x:0:\n" : arena_printf (a, "root:x:0:\ncapsule:x:%u:\n", gid);
    _cleanup_free_ char *gitconfig = gitconfig_text ();
    const char *const files[][2] = { { "passwd", passwd },
                                     { "group", group },
                                     { "hosts", hosts_text (a) },
                                     { "nsswitch.conf", nsswitch_text },
                                     { "gitconfig", gitconfig } };
    for (size_t i = 0; i < ARRAY_LEN (files); i++)
        if (! etc_write (fd, files[i][0], files[i][1], err))
            return NULL;
    return arena_strdup (a, dir);
}
