/* SPDX-License-Identifier: Apache-2.0
 *
 * Recipes: what a known program needs beside its own file, so that its name in shell.allow means
 * the program with its parts. Data alone; programs/recipes.c applies it.
 *
 * Always true: no row grants a credential, a folder of the person's own settings, or a place where
 * a person installs things. <never> names what a reader might expect and does not get.
 */
#pragma once

#include <stdbool.h>

#define RECIPE_WORDS 40

/* A question the program answers itself; its output is one path, or several between NUL bytes. */
struct recipe_question {
    const char *argv[4]; /* after the program's name */
    enum recipe_answer {
        ANSWER_NONE,
        ANSWER_PROGRAM,     /* a program it starts */
        ANSWER_RUN_TREE,    /* a folder whose files it starts */
        ANSWER_READ_TREE,   /* a folder it reads */
        ANSWER_READ_PARENT, /* a file whose folder it reads */
    } answer;
};

/* Unix sockets by which it talks to its own parts. */
enum recipe_sockets {
    SOCKETS_NONE,
    SOCKETS_WHERE_SEALED, /* where nothing of the host is shown anyway; else it does without */
    SOCKETS_WITH_A_ROOT,  /* it does not work without: worth a composed root below sealed */
};

struct recipe {
    const char *family;
    const char *programs[RECIPE_WORDS]; /* names it is known by */
    /* Programs it starts, by name; "@shell" stands for sh and the tools of shell scripts. */
    const char *helpers[RECIPE_WORDS];
    /* What it starts (patterns of folders with programs, or of programs), and what it reads.
     * {prefix} is the folder above the one that holds the real program, {bin} the folder it was
     * found in. */
    const char *run[8];
    const char *read[12];
    struct recipe_question ask[12];
    /* NAME=value for every command of the session; {home} and {tmp} are the session's. */
    const char *env[6];
    const char *never;
    enum recipe_sockets sockets;
    bool reads_interfaces; /* it asks the kernel for the addresses of its own network, and stops
                              where it is refused */
};

extern const struct recipe recipes[];
extern const unsigned recipe_count;

/* sh and what scripts of everyday programs call; NULL-terminated. */
extern const char *const recipe_shell[];

/* What every program may read, public on every host; NULL-terminated patterns. */
extern const char *const recipe_public[];
