/* SPDX-License-Identifier: Apache-2.0
 *
 * The YAML tree reader on any text: a tree or an error, never both or neither; a tree's JSON can be read back.
 */
#include "tests/fuzz/fuzzing.h"

#include "base/json.h"
#include "manifest/yaml.h"

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
        if (yaml_put_json (&json, root, E_MAN_002, NULL))
            json_decref (json_parse (json.data, json.len, "fuzz.json", E_MAN_002, NULL));
    }
    free (text);
    return 0;
}
