/* SPDX-License-Identifier: Apache-2.0
 *
 * Build lints. Each is one line, then its hints and where to read on.
 */
#include "artifact/package/build_lint.h"

#include "artifact/package/zip.h"
#include "base/diag.h"

#include <string.h>

static void warn (enum diag_code code, const char *hint, const char *fmt, ...) _printf_ (3, 4);

static void
warn (enum diag_code code, const char *hint, const char *fmt, ...)
{
    _cleanup_buf_ struct buf text = { 0 };
    va_list ap;
    va_start (ap, fmt);
    buf_vprintf (&text, fmt, ap);
    va_end (ap);
    diag_stderr_line ("warning[%s]: %s", diag_code_name (code), text.data);
    diag_stderr_line ("  → %s", hint);
    diag_stderr_line ("  → mur explain %s", diag_code_name (code));
}

void
build_lint_redundant (const struct strv *declared)
{
    for (size_t i = 0; i < declared->len; i++)
        warn (W_BLD_001, "remove it from requires_files",
              "requires_files names \"%s\", which is packed already", declared->items[i]);
}

void
build_lint_shadowed (const struct build_plan *plan)
{
    _cleanup_strv_ struct strv others = { 0 };
    bool has_capsule = false;
    for (size_t i = 0; i < plan->len; i++) {
        const char *name = plan->items[i].name;
        if (strcmp (name, "capsule.wasm") == 0)
            has_capsule = true;
        else if (zip_name_is_root (name) && str_ends (name, ".wasm"))
            strv_push (&others, name);
    }
    if (! has_capsule || ! others.len)
        return;
    strv_sort (&others);
    _cleanup_free_ char *list = strv_join (&others, ", ");
    warn (W_BLD_002, "leave them out, or move them below a folder",
          "capsule.wasm is what runs; these are packed beside it and never do: %s", list);
}

static bool
is_build_input (const char *name)
{
    const char *base = strrchr (name, '/');
    base = base ? base + 1 : name;
    if (strcmp (base, "Cargo.toml") == 0 || strcmp (base, "Cargo.lock") == 0 ||
        str_ends (base, ".rs"))
        return true;
    for (const char *at = name; *at;) {
        size_t len = strcspn (at, "/");
        if (len == 6 && memcmp (at, "target", 6) == 0)
            return true;
        at += len + (at[len] != '\0');
    }
    return false;
}

void
build_lint_inputs (const struct build_plan *plan)
{
    _cleanup_strv_ struct strv inputs = { 0 };
    for (size_t i = 0; i < plan->len; i++)
        if (is_build_input (plan->items[i].name))
            strv_push (&inputs, plan->items[i].name);
    if (! inputs.len)
        return;
    _cleanup_free_ char *list = strv_join (&inputs, ", ");
    warn (W_BLD_003, "only what runs belongs in requires_files", "build inputs are packed: %s",
          list);
}
