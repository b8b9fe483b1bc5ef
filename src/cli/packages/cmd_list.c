/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur list`: what the stores hold (spec/artifacts.md 10).
 */
#include "artifact/store/store.h"
#include "artifact/store/store_list.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/line/text_table.h"
#include "cli/packages/commands.h"
#include "cli/packages/signer.h"

#include <string.h>

static const char none[] = "—";

static bool
has_contract (const struct strv *names, const char *prefix, struct strv *found)
{
    for (size_t i = 0; i < names->len; i++)
        if (str_starts (names->items[i], prefix) && ! strv_contains (found, names->items[i]))
            strv_push (found, names->items[i]);
    return found->len > 0;
}

static void
add_joined (struct text_table *t, const struct strv *items)
{
    _cleanup_free_ char *text = strv_join (items, ", ");
    text_table_add (t, items->len ? text : none);
}

static void
add_row (struct text_table *t, const struct store_row *row, bool shows_store, const char *signer,
         const struct strv *contracts)
{
    if (shows_store)
        text_table_add (t, store_kind_name (row->kind));
    text_table_add (t, row->name);
    text_table_add (t, row->version);
    text_table_add (t, row->role && row->role[0] ? row->role : none);
    add_joined (t, &row->platforms);
    if (signer)
        text_table_add (t, signer);
    if (contracts)
        add_joined (t, contracts);
}

/* Who signed each row, for a column there is only when one is signed. False: no row is. */
static bool
find_signers (const struct stores *stores, const struct store_rows *rows, struct strv *signers)
{
    bool is_any = false;
    for (size_t i = 0; i < rows->len; i++) {
        const struct store_row *row = &rows->items[i];
        char *signer = store_signer (&stores->at[row->kind], row->name, row->version);
        is_any |= signer != NULL;
        strv_take (signers, signer ? signer : x_strdup (none));
    }
    return is_any;
}

static void
print_rows (const struct stores *stores, const struct store_rows *rows, bool shows_store,
            const char *prefix)
{
    _cleanup_text_table_ struct text_table t = { 0 };
    _cleanup_strv_ struct strv signers = { 0 };
    bool is_any_signed = find_signers (stores, rows, &signers);
    if (shows_store)
        text_table_column (&t, "STORE");
    text_table_column (&t, "NAME");
    text_table_column (&t, "VERSION");
    text_table_column (&t, "RUNTIME");
    text_table_column (&t, "PLATFORMS");
    if (is_any_signed)
        text_table_column (&t, "SIGNER");
    if (prefix)
        text_table_column (&t, "CONTRACTS");
    for (size_t i = 0; i < rows->len; i++) {
        const struct store_row *row = &rows->items[i];
        _cleanup_strv_ struct strv contracts = { 0 };
        if (prefix) {
            has_contract (&row->contracts.exports, prefix, &contracts);
            has_contract (&row->contracts.imports, prefix, &contracts);
            if (! contracts.len)
                continue;
            strv_sort (&contracts);
        }
        add_row (&t, row, shows_store, is_any_signed ? signers.items[i] : NULL,
                 prefix ? &contracts : NULL);
    }
    if (text_table_is_empty (&t))
        out_puts ("No artifacts found.\n");
    else
        text_table_print (&t);
}

/* What comes with mur is usable everywhere and in no store of one's own. */
static bool
tell_bundled (const struct stores *stores, struct mur_error **err)
{
    _cleanup_rows_ struct store_rows rows = { 0 };
    if (! store_list (&stores->at[STORE_BUNDLED], &rows, err))
        return false;
    _cleanup_strv_ struct strv names = { 0 };
    for (size_t i = 0; i < rows.len; i++)
        strv_printf (&names, "%s@%s", rows.items[i].name, rows.items[i].version);
    _cleanup_free_ char *list = strv_join (&names, ", ");
    if (names.len)
        diag_note ("these come with mur and need no install: %s", list);
    return true;
}

int
cmd_list (const struct cli_args *args, struct mur_error **err)
{
    bool shows_all = cli_has (args, "--all");
    _cleanup_free_ char *root = cli_has (args, "--global") ? NULL : project_root_find (".");
    _cleanup_stores_ struct stores *stores = stores_new (root, err);
    if (! stores)
        return CLI_FAILED;
    _cleanup_rows_ struct store_rows rows = { 0 };
    for (int kind = 0; kind < STORE_COUNT; kind++) {
        bool is_chosen = shows_all || kind == (root ? STORE_PROJECT : STORE_GLOBAL);
        if (is_chosen && ! store_list (&stores->at[kind], &rows, err))
            return CLI_FAILED;
    }
    print_rows (stores, &rows, shows_all, cli_value (args, "--contract"));
    if (! shows_all && ! cli_has (args, "--contract") && ! tell_bundled (stores, err))
        return CLI_FAILED;
    return CLI_OK;
}
