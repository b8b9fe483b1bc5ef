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

/* What a plain scalar of this text means. */
enum yaml_kind yaml_resolve (const char *text, size_t len);
