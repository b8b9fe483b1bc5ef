/* SPDX-License-Identifier: Apache-2.0
 *
 * Which files capabilities.shell.allow lets a command execute, and what those need to start
 * (spec/containment.md 8.1, 8.2).
 *
 * Resolved once a session. A name that resolves to nothing contributes nothing; a binary created
 * later under an allowed name gains nothing.
 */
#pragma once

#include "base/buf.h"
#include "sandbox/programs/recipe_table.h"

struct exec_name {
    char *name; /* as listed */
    char *path; /* canonical path of the first match on PATH, NULL when there is none */
    /* the first match before links were resolved: what is executed, NULL likewise */
    char *unlinked;
    bool is_interpreter; /* it was asked for its import path */
    struct strv derived; /* what its answer granted, read only */
    struct strv parts;   /* what its recipes granted, in words, for the report */
};

struct exec_allowlist {
    struct exec_name *names;
    size_t name_count;
    struct strv files;     /* executable: the binaries, their interpreters and libraries; canonical,
                              each once */
    struct strv run_trees; /* folders of helpers: executable, readable and listable */
    struct strv readable;  /* read only: derived interpreter directories, archives and libraries */
    struct strv links;     /* pairs: a link on the way to a program, and its text */
    struct strv asked;     /* families whose questions were answered, by folder: once is enough */
    struct strv env;       /* NAME=value for commands, {home} and {tmp} not yet filled in */
    char *path;            /* PATH as commands have it: a version's folder before its shims */
    enum recipe_sockets sockets; /* the most that a listed program's recipe asks for */
    bool reads_interfaces;       /* some listed program's recipe does */
    struct strv notes;           /* one line for each derivation that failed */
    struct strv lost;            /* one line for each name that cannot start, and why */
};

/* <names> is NULL-terminated; <path> a PATH value (NULL: none). Files at or below one of
 * <writable_roots> (NULL-terminated; the first is the work folder) are never run and nothing is
 * derived from them, nor from the names among <unasked> (NULL-terminated, may be NULL), which have
 * a runtime staged for them. */
void
exec_allowlist_resolve (struct exec_allowlist *list, const char *const *names, const char *path,
                        const char *const *writable_roots, const char *const *unasked);
/* What scripts of the work are started by, where they may run at all: env and sh. */
void exec_allowlist_add_starters (struct exec_allowlist *list);
void exec_allowlist_free (struct exec_allowlist *list);
const struct exec_name *exec_allowlist_find (const struct exec_allowlist *list, const char *name);

/* The first executable of this name on <path>, as found; the caller owns it, NULL: none. */
char *exec_find_candidate (const char *name, const char *path);
/* The first executable of this name on <path>, links resolved; the caller owns it, NULL: none. */
char *exec_find_on_path (const char *name, const char *path);
