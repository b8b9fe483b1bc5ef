/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mur new` writes: the files of each template, as text in which @NAME@ is the new capsule's
 * name.
 */
#pragma once

struct template_file {
    const char *path; /* below the new folder; NULL ends the list */
    const char *text;
};

struct project_template {
    const char *name;
    const struct template_file *files;
    const char *next; /* what to type then, lines */
};

/* NULL when there is no such template. */
const struct project_template *project_template_find (const char *name);
