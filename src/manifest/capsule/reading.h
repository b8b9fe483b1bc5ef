/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that judge a capsule manifest share: the reading they are part of, and how they
 * refuse.
 */
#pragma once

#include "manifest/capsule/capsule.h"

struct reading {
    struct schema_reader r;
    struct capsule_manifest *m;
    enum manifest_reading how;
};

/* Fails about <path> with E-MAN-003 and its position. Always false. */
bool refuse_value (const struct reading *rd, struct mur_error **err, const char *path,
                   const char *fmt, ...) _printf_ (4, 5);
/* A path in the arena. */
char *path_of (const struct reading *rd, const char *fmt, ...) _printf_ (2, 3);
/* Texts to look up in, whatever their number. */
struct text_set {
    const char **sorted;
    size_t len;
};
struct text_set text_set_of (const struct reading *rd, const char *const *items, size_t len);
bool text_set_has (const struct text_set *set, const char *text);
/* Index of the first element equal to an earlier one, or len. */
size_t find_repeat (const char *const *items, size_t len);

/* A map of names to texts, at most 64, or E-MAN-003. NULL is none. */
bool read_text_pairs (const struct reading *rd, const struct yaml_node *n, const char *path,
                      struct name_value **items, size_t *len, struct mur_error **err);
