/* SPDX-License-Identifier: Apache-2.0
 *
 * The YAML tree reader on any text: a tree or an error, never both or neither; a tree's JSON can be
 * read back, and so can the YAML its writer makes of it.
 */
#include "tests/fuzz/fuzzing.h"

#include "base/json.h"
#include "manifest/text/yaml.h"
#include "manifest/text/yaml_tree.h"
#include "manifest/text/yaml_write.h"

/* Every scalar of the tree, asked for as everything it could be. */
static void
ask_scalars (const struct yaml_node *n)
{
    uint64_t whole;
    double wide;
    bool truth;
    (void)yaml_kind_name (n);
    if (yaml_is_scalar (n)) {
        assert (! yaml_text (n) || strlen (yaml_text (n)) == n->len);
        if (yaml_as_u64 (n, &whole))
            assert (n->kind == YAML_INT && yaml_as_double (n, &wide));
        (void)yaml_as_bool (n, &truth);
        return;
    }
    for (uint32_t i = 0; i < n->len; i++)
        ask_scalars (n->kind == YAML_LIST ? n->items[i] : n->pairs[i].value);
}

/* A tree that is written reads back as the same JSON. Only maps whose keys are texts are ever
 * written. */
static void
write_back (struct arena *arena, const struct yaml_node *root, const char *json)
{
    struct yaml_writer w;
    yaml_writer_init (&w);
    yaml_add_node (&w, "root", root);
    yaml_add_u64 (&w, "number", root->len);
    yaml_add_bool (&w, "flag", true);
    char *written = yaml_writer_finish (&w);
    struct yaml_node *again =
        yaml_parse (arena, written, strlen (written), "again.yaml", E_MAN_002, NULL);
    assert (again && yaml_get (again, "root"));
    _cleanup_buf_ struct buf text = { 0 };
    assert (yaml_put_json (&text, yaml_get (again, "root"), E_MAN_002, NULL));
    assert (strcmp (text.data, json) == 0);
    free (written);
}

static bool
may_be_written (const struct yaml_node *n)
{
    if (n->tag || n->levels > 8)
        return false;
    if (yaml_is_scalar (n))
        return true;
    for (uint32_t i = 0; i < n->len; i++) {
        if (n->kind == YAML_MAP && n->pairs[i].key->kind != YAML_STRING)
            return false;
        if (! may_be_written (n->kind == YAML_LIST ? n->items[i] : n->pairs[i].value))
            return false;
    }
    return true;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    _cleanup_error_ struct mur_error *err = NULL;
    char *text = fuzz_text (data, size);
    struct yaml_node *root = yaml_parse (arena, text, size, "fuzz.yaml", E_MAN_002, &err);
    assert ((root == NULL) == (err != NULL));
    if (root) {
        _cleanup_buf_ struct buf json = { 0 };
        if (yaml_put_json (&json, root, E_MAN_002, NULL)) {
            json_decref (json_parse (json.data, json.len, "fuzz.json", E_MAN_002, NULL));
            if (may_be_written (root) && root->weight < 1000)
                write_back (arena, root, json.data);
        }
        json_decref (yaml_to_json (root, E_MAN_002, NULL));
        assert (yaml_find_nearest (root, "artifacts[1].name"));
        assert (yaml_find_nearest (root, "a.b[0].c"));
        if (root->weight < 10000)
            ask_scalars (root);
    }
    free (text);
    return 0;
}
