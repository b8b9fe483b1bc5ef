/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies the recipes (recipe_table.h) and the rules that hold for every program: a folder of its
 * own below /usr/lib is its own, and so is the version it was installed as.
 */
#pragma once

#include "sandbox/programs/exec_allowlist.h"

struct recipe_use {
    struct exec_allowlist *list;
    struct exec_name *owner; /* the listed name it is granted for */
    const char *name;        /* as it was looked up */
    const char *program;     /* canonical */
    const char *candidate;   /* before links were resolved */
    bool is_own;             /* it is the listed program, or what runs its script */
    bool is_shell_script;
    /* grants another program, by name or by path, with its own parts */
    void (*add_helper) (void *ctx, const char *name);
    void *ctx;
};

void recipes_apply (const struct recipe_use *use);

/* The folder above the program's bin folder when nothing else lives there: a package's, or one
 * version of a version manager. Owned; NULL: none. */
char *recipes_own_prefix (const char *program);

/* What every program may read of this host, and the links (pairs, exec_allowlist.h) by which it is
 * found. */
void recipes_public (struct strv *out, struct strv *links);
