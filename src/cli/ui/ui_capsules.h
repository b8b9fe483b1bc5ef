/* SPDX-License-Identifier: Apache-2.0
 *
 * What may be launched from the page: capsules of the folders it knows of, and installed ones.
 *
 * Always true: whatever a browser sends is compared with this list and is never a path that is
 * opened; a folder is known because mur ui was started there or in the folder around it and it is
 * this user's, or because a session on record ran from it.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

struct ui_capsule {
    char *id;     /* "folder:/abs" or "store:NAME@VERSION" */
    char *folder; /* absolute; holds murmur.yaml, or where one of a store works */
    char *name, *version;
    char *model; /* NULL: not known */
    char *text;  /* its manifest; NULL: of a store */
    size_t len;
    char *seen;    /* says which state of it somebody looked at */
    char *why_not; /* NULL, or why it cannot be launched */
};

struct ui_capsules {
    struct ui_capsule *items;
    size_t len, cap;
};

/* <workdir>: that folder instead of the current one, and records of it alone; NULL: all. Looks
 * anew. E-IO-003, E-IO-004. */
bool ui_capsules_read (const char *workdir, struct ui_capsules *c, struct mur_error **err);
/* The one of that id, or NULL. */
const struct ui_capsule *ui_capsules_find (const struct ui_capsules *c, const char *id);
/* As the page is told: no text of a manifest. Owned. */
json_t *ui_capsules_json (const struct ui_capsules *c);
void ui_capsules_clear (struct ui_capsules *c);
#define _cleanup_ui_capsules_ _cleanup_ (ui_capsules_clear)
