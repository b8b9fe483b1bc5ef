/* SPDX-License-Identifier: Apache-2.0
 *
 * A JSON document that can be changed: values in a tree, each with the text it was read from as
 * long as nothing in it changed. So a file keeps its own layout wherever it was not touched.
 */
#ifndef TREE_H
#define TREE_H

#include "murmur_sdk.h"

struct value {
    enum mur_json_kind kind;
    char *key;       /* inside an object, else NULL */
    char *text;      /* a string's */
    const char *raw; /* as read, within the document; NULL once something in it changed */
    size_t raw_len;
    bool is_one_line; /* a container that was written without line breaks */
    struct value *parent;
    struct value *first;
    struct value *last;
    struct value *next;
    size_t count;
};

/* A value of its own from a node; its parent is not set. The document must stay. */
struct value *value_new (const struct mur_json *json, mur_node node);
/* Forgets how it was written: it takes the layout of where it is put. */
void value_loosen (struct value *value);
struct value *value_copy (const struct value *from);
bool value_equals (const struct value *a, const struct value *b);
/* The value of a number. */
double value_number (const struct value *value);

struct value *value_member (const struct value *object, const char *key);
struct value *value_item (const struct value *array, size_t index);
/* Puts `child` under the key in place of what is there, or at the end. */
void value_set (struct value *object, const char *key, struct value *child);
/* Puts `child` before the item of that index; index <= count. */
void value_insert (struct value *array, size_t index, struct value *child);
/* Takes it out of its parent. */
void value_remove (struct value *child);
void value_replace (struct value *old, struct value *new);

/* Adds the JSON Pointer of a value. */
void value_pointer (const struct value *value, struct mur_text *text);
/* One part of a pointer without its escapes. */
char *pointer_part (const char *from, size_t len);
/* What the pointer leads to below root; NULL when there is none. */
struct value *value_find (struct value *root, const char *pointer);

struct layout {
    const char *indent; /* of one level; NULL: all in one line */
    bool is_spaced;     /* one space behind a colon, and behind a comma within a line */
    int depth_limit;    /* containers nested deeper are counted, not shown; 0: none are */
    bool is_fresh;      /* the layout of the file does not matter */
};

void value_write (const struct value *value, const struct layout *layout, struct mur_text *text);

#endif
