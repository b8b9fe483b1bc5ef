/* SPDX-License-Identifier: Apache-2.0
 *
 * Schema tables: what keys a block has, of which type, where each lands in a C struct, and the
 * simple rule on its value.
 *
 * Two passes over the same tables. schema_read checks YAML types (E-MAN-002), fills structs in the
 * arena and collects unknown keys; schema_check judges values (E-MAN-003) block by block, so that
 * the reader of a file can keep its order of refusals. The manifest reference is printed from the
 * same tables.
 */
#pragma once

#include "manifest/text/yaml.h"

struct opt_bool {
    bool value; /* the default when not set */
    bool is_set;
};

struct opt_u64 {
    uint64_t value; /* the default when not set */
    bool is_set;
};

struct opt_double {
    double value;
    bool is_set;
};

/* A list of strings, elements as written. NULL-terminated when not empty. */
struct str_list {
    const char **items;
    size_t len;
    bool is_set; /* the key was there */
};

bool str_list_has (const struct str_list *list, const char *entry);

/* Every list of blocks has this layout: LIST_OF (struct x). */
#define LIST_OF(type)                                                                              \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t len;                                                                                \
        bool is_set;                                                                               \
    }

enum schema_type {
    KEY_TEXT,      /* const char *: scalar text as written; null is absent */
    KEY_TRIMMED,   /* const char *: outer whitespace removed, blank is absent */
    KEY_TRIM_KEPT, /* const char *: outer whitespace removed, blank kept as "" */
    KEY_BOOL,      /* struct opt_bool */
    KEY_U16,       /* struct opt_u64 within 16 bits */
    KEY_U32,
    KEY_U64,
    KEY_FLOAT,     /* struct opt_double */
    KEY_TEXTS,     /* struct str_list */
    KEY_ENUM,      /* struct opt_u64: index into words; a bad word is E-MAN-002 */
    KEY_BLOCK,     /* pointer to a struct of the block's size */
    KEY_BLOCKS,    /* LIST_OF (struct) */
    KEY_BLOCK_MAP, /* LIST_OF (struct): a map of free names to blocks, sorted by name; the struct's
                      first member is the name */
    KEY_NODE,      /* const struct yaml_node *: kept as it is, NULL when absent */
    KEY_SCALAR,    /* the same, but a list or map is a type error */
    KEY_IGNORED,   /* accepted, no meaning */
};

enum schema_flag {
    KEY_NULL_IS_ERROR = 1,  /* an explicit null is E-MAN-002 */
    KEY_NULL_IS_EMPTY = 2,  /* null is an empty block */
    KEY_NULL_IS_ABSENT = 4, /* list only: an explicit null is absent */
    KEY_REQUIRED = 8,       /* absent is E-MAN-002 */
    KEY_HIDDEN = 16, /* a refused or retired key: a suggestion candidate, not in the reference */
    KEY_TRIM_ITEMS = 32, /* list only: elements trimmed */
    KEY_PROSE = 64,      /* text for a reader: direction marks are part of it */
};

/* What schema_check asks of a set value. */
enum schema_rule {
    RULE_NONE,
    RULE_POSITIVE, /* at least 1 */
    RULE_RANGE,    /* min..max, integers */
    RULE_WORDS,    /* text: one of words */
    RULE_FRACTION, /* 0.0 <= x <= 1.0 */
    RULE_FRACTION_ABOVE_0,
    RULE_DURATION, /* text: a duration above 0 */
    RULE_SIZE,     /* text: a byte size above 0 */
};

struct schema;

struct schema_key {
    const char *name;
    enum schema_type type;
    uint32_t offset;
    const struct schema *block; /* KEY_BLOCK, KEY_BLOCKS, KEY_BLOCK_MAP */
    unsigned flags;
    enum schema_rule rule;
    union {
        uint64_t fallback; /* default of KEY_U*, KEY_ENUM and KEY_BOOL */
        double fallback_fraction;
    };
    uint64_t min, max;
    const char *const *words; /* NULL-terminated */
    const char *doc;          /* one sentence for the reference */
};

/* A block's keys in the order that breaks suggestion ties; ends with a NULL name. */
struct schema {
    const struct schema_key *keys;
    size_t size; /* of the struct */
};

/* An unknown key, for W-SEC-019. */
struct unknown_key {
    const char *key;        /* as spelled */
    const char *path;       /* the block, "" at the top level */
    const char *suggestion; /* NULL when no known key is near */
};

struct schema_reader {
    struct arena *arena;
    const char *file; /* what messages call it */
    const struct yaml_node *root;
    enum diag_code code;                  /* of type errors: E-MAN-002 for manifests */
    LIST_OF (struct unknown_key) unknown; /* malloc'd */
    size_t unknown_cap;
    size_t unknown_total;    /* also those beyond the 1000 that are kept */
    struct mur_error *fault; /* the type error nearest the top of the file so far */
    uint32_t fault_line, fault_column;
};

/* Reads <map> (a map, or NULL for an absent root) by <schema> into <out>. Type errors are kept in
 * r->fault, the one nearest the top; call schema_take_fault once everything is read. */
void schema_read (struct schema_reader *r, const struct schema *schema, const struct yaml_node *map,
                  const char *path, void *out);
/* Moves r->fault into err. Returns true when there was none. */
bool schema_take_fault (struct schema_reader *r, struct mur_error **err);
/* Frees what the reader itself owns (nothing of the arena). */
void schema_reader_clear (struct schema_reader *r);
/* Judges the values of a block and the blocks below it, in the order of the tables. E-MAN-003, or
 * r->code when that is not E-MAN-002. */
bool schema_check (const struct schema_reader *r, const struct schema *schema, const void *block,
                   const char *path, struct mur_error **err);

/* Fails with "<file>:<line>:<column>: <path>: <text>", the position being that of <path> or of what
 * is nearest to it in the file. Always returns false. */
bool schema_fail (const struct schema_reader *r, struct mur_error **err, enum diag_code code,
                  const char *path, const char *fmt, ...) _printf_ (5, 6);

/* "a, b, c" of a NULL-terminated word list, in the arena. */
char *schema_words (struct arena *a, const char *const *words);
