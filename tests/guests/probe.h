/* SPDX-License-Identifier: Apache-2.0
 *
 * What a probe does: lines of `<word> <rest>`, each run in turn, its outcome appended as one line
 * or block of text.
 *
 * Shared by the script capsule `probe` and the tool `tool-probe`, each of which adds the words of
 * its own world. A word that fails says `<word>: error: <why>` and the next line is run, so that
 * one test sees many answers.
 *
 * - say TEXT, env, stdout TEXT, stderr TEXT, big BYTES
 * - read PATH, write PATH TEXT, append PATH TEXT, list PATH, mkdir PATH, remove PATH, stat PATH
 * - rename FROM TO, link TARGET PATH
 * - time, random COUNT, order PATH (as it is listed)
 * - fetch URL, post URL TEXT, fetch-with URL NAME VALUE (one header), slow-read URL MS
 * - sleep MS, spin, grow MIB, balloon MIB, recurse, trap, exit N
 */
#ifndef PROBE_H
#define PROBE_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "murmur_sdk.h"

#define PROBE_FILE_LIMIT (8u << 20)

extern char **environ;

/* Cuts the first word off; returns the rest, never NULL. */
static char *
probe_split (char *line)
{
    char *space = strchr (line, ' ');
    if (space == NULL)
        return line + strlen (line);
    *space = '\0';
    return space + 1;
}

static void
probe_errno (struct mur_text *out, const char *word, int result)
{
    if (result < 0)
        mur_text_printf (out, "%s: error: %s\n", word, strerror (errno));
    else
        mur_text_printf (out, "%s: ok\n", word);
}

static int
probe_by_text (const void *a, const void *b)
{
    return strcmp (*(char *const *)a, *(char *const *)b);
}

static void
probe_sorted (struct mur_text *out, char **lines, size_t count)
{
    qsort (lines, count, sizeof *lines, probe_by_text);
    for (size_t i = 0; i < count; i++)
        mur_text_printf (out, "%s\n", lines[i]);
}

static void
probe_say (struct mur_text *out, char *rest)
{
    mur_text_printf (out, "%s\n", rest);
}

static void
probe_env (struct mur_text *out, char *rest)
{
    char *copy[256];
    size_t count = 0;
    (void)rest;
    for (char **entry = environ; entry != NULL && *entry != NULL && count < 256; entry++)
        copy[count++] = *entry;
    probe_sorted (out, copy, count);
}

static void
probe_read (struct mur_text *out, char *rest)
{
    char *error = NULL;
    size_t len;
    char *text = mur_file_read (rest, PROBE_FILE_LIMIT, &len, &error);
    if (text != NULL)
        mur_text_add (out, text, len);
    mur_text_printf (out, text != NULL ? "\n" : "read: error: %s\n", error);
}

static void
probe_put (struct mur_text *out, const char *word, char *rest, bool is_append)
{
    char *text = probe_split (rest);
    FILE *file = fopen (rest, is_append ? "ab" : "wb");
    bool is_fine = file != NULL && fputs (text, file) >= 0;
    is_fine = file != NULL && fclose (file) == 0 && is_fine;
    probe_errno (out, word, is_fine ? 0 : -1);
}

static void
probe_write (struct mur_text *out, char *rest)
{
    probe_put (out, "write", rest, false);
}

static void
probe_append (struct mur_text *out, char *rest)
{
    probe_put (out, "append", rest, true);
}

static void
probe_list (struct mur_text *out, char *rest)
{
    DIR *folder = opendir (*rest != '\0' ? rest : ".");
    char *names[512];
    size_t count = 0;
    if (folder == NULL) {
        probe_errno (out, "list", -1);
        return;
    }
    for (struct dirent *entry; count < 512 && (entry = readdir (folder)) != NULL;)
        if (strcmp (entry->d_name, ".") != 0 && strcmp (entry->d_name, "..") != 0)
            names[count++] = mur_format ("%s%s", entry->d_name, entry->d_type == DT_DIR ? "/" : "");
    closedir (folder);
    probe_sorted (out, names, count);
}

static void
probe_order (struct mur_text *out, char *rest)
{
    DIR *folder = opendir (*rest != '\0' ? rest : ".");
    if (folder == NULL) {
        probe_errno (out, "order", -1);
        return;
    }
    for (struct dirent *entry; (entry = readdir (folder)) != NULL;)
        mur_text_printf (out, "%s\n", entry->d_name);
    closedir (folder);
}

static void
probe_time (struct mur_text *out, char *rest)
{
    struct timespec wall, monotonic;
    (void)rest;
    clock_gettime (CLOCK_REALTIME, &wall);
    clock_gettime (CLOCK_MONOTONIC, &monotonic);
    mur_text_printf (out, "time: %lld.%09ld %lld.%09ld\n", (long long)wall.tv_sec, wall.tv_nsec,
                     (long long)monotonic.tv_sec, monotonic.tv_nsec);
}

static void
probe_random (struct mur_text *out, char *rest)
{
    unsigned char bytes[256];
    size_t count = strtoul (rest, NULL, 10);
    if (count > sizeof bytes || getentropy (bytes, count) != 0) {
        probe_errno (out, "random", -1);
        return;
    }
    mur_text_puts (out, "random: ");
    for (size_t i = 0; i < count; i++)
        mur_text_printf (out, "%02x", bytes[i]);
    mur_text_puts (out, "\n");
}

static void
probe_mkdir (struct mur_text *out, char *rest)
{
    probe_errno (out, "mkdir", mkdir (rest, 0777));
}

static void
probe_remove (struct mur_text *out, char *rest)
{
    probe_errno (out, "remove", remove (rest));
}

static void
probe_rename (struct mur_text *out, char *rest)
{
    char *to = probe_split (rest);
    probe_errno (out, "rename", rename (rest, to));
}

static void
probe_link (struct mur_text *out, char *rest)
{
    char *path = probe_split (rest);
    probe_errno (out, "link", symlink (rest, path));
}

static void
probe_stat (struct mur_text *out, char *rest)
{
    struct stat facts;
    if (lstat (rest, &facts) < 0)
        probe_errno (out, "stat", -1);
    else
        mur_text_printf (out, "stat: %s %lld\n",
                         S_ISDIR (facts.st_mode)   ? "folder"
                         : S_ISLNK (facts.st_mode) ? "link"
                                                   : "file",
                         (long long)facts.st_size);
}

/* The status line and the body, or the error. With a pause, between any two reads of the body. */
static void
probe_request (struct mur_text *out, const char *word, const char *url,
               const struct mur_http_header *header, const char *body, uint64_t pause_ms)
{
    struct mur_http_request request = { .url = url,
                                        .headers = header,
                                        .header_count = header ? 1 : 0,
                                        .body = body,
                                        .body_len = body ? strlen (body) : 0 };
    struct mur_http_response response;
    char chunk[1024];
    char *error = NULL;
    long got;
    if (! mur_http_open (&request, &response, &error)) {
        mur_text_printf (out, "%s: error: %s\n", word, error);
        return;
    }
    mur_text_printf (out, "%s: %u\n", word, response.status);
    while ((got = mur_http_read (&response, chunk, sizeof chunk, &error)) > 0) {
        mur_text_add (out, chunk, (size_t)got);
        if (pause_ms > 0)
            mur_sleep_ms (pause_ms);
    }
    mur_text_printf (out, got < 0 ? "\n%s: error: %s\n" : "\n", word, error);
    mur_http_close (&response);
}

static void
probe_fetch (struct mur_text *out, char *rest)
{
    probe_request (out, "fetch", rest, NULL, NULL, 0);
}

static void
probe_fetch_with (struct mur_text *out, char *rest)
{
    char *name = probe_split (rest);
    struct mur_http_header header = { .name = name, .value = probe_split (name) };
    probe_request (out, "fetch-with", rest, &header, NULL, 0);
}

static void
probe_post (struct mur_text *out, char *rest)
{
    char *body = probe_split (rest);
    probe_request (out, "post", rest, NULL, body, 0);
}

static void
probe_slow_read (struct mur_text *out, char *rest)
{
    char *pause = probe_split (rest);
    probe_request (out, "slow-read", rest, NULL, NULL, strtoul (pause, NULL, 10));
}

static void
probe_sleep (struct mur_text *out, char *rest)
{
    uint64_t start = mur_monotonic_ms ();
    mur_sleep_ms (strtoul (rest, NULL, 10));
    mur_text_printf (out, "sleep: %llu\n", (unsigned long long)(mur_monotonic_ms () - start));
}

static void
probe_spin (struct mur_text *out, char *rest)
{
    (void)out;
    (void)rest;
    for (volatile unsigned turns = 0;; turns++)
        continue;
}

/* Grows the memory a MiB at a time and touches each page of it; how many it got. */
static unsigned long
probe_grow_to (unsigned long wanted)
{
    unsigned long got = 0;
    for (; got < wanted; got++) {
        size_t old = __builtin_wasm_memory_grow (0, 16);
        if (old == SIZE_MAX)
            break;
        for (size_t at = old << 16; at < (old + 16) << 16; at += 4096)
            *(volatile char *)at = 1;
    }
    return got;
}

static void
probe_grow (struct mur_text *out, char *rest)
{
    mur_text_printf (out, "grow: %lu MiB\n", probe_grow_to (strtoul (rest, NULL, 10)));
}

/* Like a program that cannot go on without the memory: traps when it is refused. */
static void
probe_balloon (struct mur_text *out, char *rest)
{
    unsigned long wanted = strtoul (rest, NULL, 10);
    if (probe_grow_to (wanted) < wanted)
        __builtin_trap ();
    mur_text_printf (out, "balloon: %lu MiB\n", wanted);
}

static int
probe_deeper (volatile int *depth)
{
    volatile char frame[512];
    frame[0] = (char)*depth;
    if (++*depth < 0)
        return 0;
    return probe_deeper (depth) + frame[0];
}

static void
probe_recurse (struct mur_text *out, char *rest)
{
    volatile int depth = (int)strlen (rest);
    mur_text_printf (out, "recurse: %d\n", probe_deeper (&depth));
}

static void
probe_trap (struct mur_text *out, char *rest)
{
    (void)out;
    (void)rest;
    __builtin_trap ();
}

static void
probe_exit (struct mur_text *out, char *rest)
{
    (void)out;
    exit (atoi (rest));
}

static void
probe_stdout (struct mur_text *out, char *rest)
{
    printf ("%s\n", rest);
    fflush (stdout);
    mur_text_puts (out, "stdout: ok\n");
}

static void
probe_stderr (struct mur_text *out, char *rest)
{
    mur_log ("%s", rest);
    mur_text_puts (out, "stderr: ok\n");
}

static void
probe_big (struct mur_text *out, char *rest)
{
    for (unsigned long left = strtoul (rest, NULL, 10); left > 0; left--)
        mur_text_add (out, left % 80 == 0 ? "\n" : "x", 1);
    mur_text_puts (out, "\n");
}

struct probe_word {
    const char *name;
    void (*run) (struct mur_text *out, char *rest);
};

static const struct probe_word probe_words[] = {
    { "say", probe_say },         { "env", probe_env },
    { "read", probe_read },       { "write", probe_write },
    { "append", probe_append },   { "list", probe_list },
    { "order", probe_order },     { "time", probe_time },
    { "random", probe_random },   { "mkdir", probe_mkdir },
    { "remove", probe_remove },   { "rename", probe_rename },
    { "link", probe_link },       { "stat", probe_stat },
    { "fetch", probe_fetch },     { "fetch-with", probe_fetch_with },
    { "post", probe_post },       { "slow-read", probe_slow_read },
    { "sleep", probe_sleep },     { "spin", probe_spin },
    { "grow", probe_grow },       { "balloon", probe_balloon },
    { "recurse", probe_recurse }, { "trap", probe_trap },
    { "exit", probe_exit },       { "stdout", probe_stdout },
    { "stderr", probe_stderr },   { "big", probe_big },
};

/* Runs every line. `own` holds the words of the caller's world, ended by a row without a name. */
static void
probe_run (struct mur_text *out, char *script, const struct probe_word *own)
{
    for (char *line = script, *next; line != NULL; line = next) {
        next = strchr (line, '\n');
        if (next != NULL)
            *next++ = '\0';
        char *rest = probe_split (line);
        const struct probe_word *found = NULL;
        for (size_t i = 0; i < sizeof probe_words / sizeof *probe_words; i++)
            if (strcmp (line, probe_words[i].name) == 0)
                found = &probe_words[i];
        for (const struct probe_word *word = own; word->name != NULL; word++)
            if (strcmp (line, word->name) == 0)
                found = word;
        if (found != NULL)
            found->run (out, rest);
        else if (*line != '\0')
            mur_text_printf (out, "%s: error: no such word\n", line);
    }
}

#endif
