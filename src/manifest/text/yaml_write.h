/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing YAML the runtime generates: the lock, tool manifests, config files.
 *
 * Always true: what is written reads back as the same values, by this reader and by readers of
 * YAML 1.1.
 */
#pragma once

#include "manifest/text/yaml.h"

/* Appends one scalar on one line, quoted whenever a reader could take it for anything but this
 * text. */
void yaml_put_text (struct buf *out, const char *text);

/* Block-style writer. Keys are given inside maps and NULL inside lists. An empty map or list
 * becomes {} or []. */
struct yaml_writer {
    struct buf out;
    unsigned depth;
    struct {
        bool is_list;
        bool is_empty;
    } level[16];
};

void yaml_writer_init (struct yaml_writer *w); /* opens the root map */
void yaml_open_map (struct yaml_writer *w, const char *key);
void yaml_open_list (struct yaml_writer *w, const char *key);
void yaml_close (struct yaml_writer *w);
void yaml_add_text (struct yaml_writer *w, const char *key,
                    const char *text); /* NULL text adds nothing */
void yaml_add_u64 (struct yaml_writer *w, const char *key, uint64_t value);
void yaml_add_bool (struct yaml_writer *w, const char *key, bool value);
/* Copies a tree that was read (no comments, no anchors). */
void yaml_add_node (struct yaml_writer *w, const char *key, const struct yaml_node *n);
/* Closes what is open and hands the text out; the writer is empty after it. */
char *yaml_writer_finish (struct yaml_writer *w);
