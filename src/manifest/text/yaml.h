/* SPDX-License-Identifier: Apache-2.0
 *
 * YAML as a tree with positions, and a small writer for the files the runtime generates.
 *
 * Reads one document by the rules of spec/manifest.md 2: 1.2 core scalars, duplicate keys refused,
 * aliases shared (never copied) and counted, nesting and size bounded. Readers of murmur.yaml,
 * roster.yaml, the lock, config files and packed manifests stand on it. Nodes live in the arena
 * they were read into; aliased nodes are shared, so the tree is read-only.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>
#include <stdint.h>

#define YAML_LEVELS_MAX 128                /* nested lists and maps, the root included */
#define YAML_NODES_MAX  500000             /* after expanding aliases */
#define YAML_BYTES_MAX  (8u * 1024 * 1024) /* of one file */

enum yaml_kind {
    YAML_NULL,
    YAML_BOOL,
    YAML_INT,
    YAML_FLOAT,
    YAML_STRING,
    YAML_LIST,
    YAML_MAP,
};

struct yaml_node;

struct yaml_pair {
    struct yaml_node *key; /* a scalar, nearly always */
    struct yaml_node *value;
};

struct yaml_node {
    uint8_t kind;    /* enum yaml_kind: what a plain scalar means; quoted ones are strings */
    bool is_plain;   /* scalar written without quotes */
    uint8_t levels;  /* nested levels below and including this one */
    uint32_t line;   /* 1-based */
    uint32_t column; /* 1-based, in characters */
    uint32_t start;  /* first character's offset in the text, in characters */
    uint32_t end;    /* offset after the last character */
    uint32_t len;    /* bytes of the scalar, elements of the list, pairs of the map */
    uint32_t weight; /* nodes below and including this one, aliases expanded */
    const char *tag; /* NULL, or a tag outside the core schema as written ("!secret") */
    union {
        char *text; /* scalar exactly as written (quotes and escapes resolved), NUL-terminated */
        struct yaml_node **items;
        struct yaml_pair *pairs;
    };
};

/* Reads a file's text for yaml_parse: E-IO-001 (absent), <too_large> above YAML_BYTES_MAX (nothing
 * is read then), E-IO-003 (anything else). */
bool yaml_read_text (const char *path, enum diag_code too_large, struct buf *out,
                     struct mur_error **err);
/* Reads one document from memory into <arena>. <name> is what messages call the file; <code> is
 * what a fault is reported under, E-MAN-002 for manifests. A text without a document yields an
 * empty map. Returns NULL on failure, the message beginning "<name>:<line>:<column>: ". */
struct yaml_node *yaml_parse (struct arena *arena, const char *text, size_t len, const char *name,
                              enum diag_code code, struct mur_error **err);
/* The same of a file on an ordinary path. E-IO-001 (absent), E-IO-003 (anything else), or <code>.
 */
struct yaml_node *
yaml_read_file (struct arena *arena, const char *path, enum diag_code code, struct mur_error **err);

/* --- looking --- */

static inline bool
yaml_is_scalar (const struct yaml_node *n)
{
    return n->kind <= YAML_STRING;
}

/* "null" ... "map": for messages. Static. */
const char *yaml_kind_name (const struct yaml_node *n);
/* The value of a key of a map, or NULL (also when <map> is NULL or no map). Last-resort linear
 * search. */
struct yaml_node *yaml_get (const struct yaml_node *map, const char *key);
/* Follows a dotted path with indexes ("artifacts[2].name") as far as it exists; never NULL when
 * root is not. */
const struct yaml_node *yaml_find_nearest (const struct yaml_node *root, const char *path);
/* The scalar's text when it is a scalar that is not null, else NULL. */
const char *yaml_text (const struct yaml_node *n);
bool yaml_as_bool (const struct yaml_node *n, bool *value);
/* A non-negative integer in 64 bits (decimal, 0x, 0o, 0b; plain scalars only). */
bool yaml_as_u64 (const struct yaml_node *n, uint64_t *value);
/* A plain number, fractions and .inf/.nan included. */
bool yaml_as_double (const struct yaml_node *n, double *value);

/* Compact-able JSON of a node: key order kept, scalar keys become text, numbers kept as written
 * where JSON can hold them
 * ("1.0" stays 1.0), NaN and infinities null, a foreign tag {"!tag": value}. A list or map as a key
 * fails with <code>. The caller owns the result. */
json_t *yaml_to_json (const struct yaml_node *n, enum diag_code code, struct mur_error **err);
/* The same as compact text, floats in their shortest form. On failure <out> holds a part and must
 * be dropped. */
bool yaml_put_json (struct buf *out, const struct yaml_node *n, enum diag_code code,
                    struct mur_error **err);
/* What a plain scalar of this text means. */
enum yaml_kind yaml_resolve (const char *text, size_t len);

/* --- writing --- */

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
