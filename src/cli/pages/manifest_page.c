/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the reference of murmur.yaml from the schema tables, on standard output, while murmur is
 * built: `markdown` for docs/manifest.md, `man` for murmur.yaml(5).
 *
 * Always true: every key that is not hidden is on it, once a block; a block that stands in several
 * places is described at the first.
 */
#include "base/alloc.h"
#include "base/version.h"
#include "cli/pages/roff.h"
#include "manifest/capsule/capsule.h"
#include "manifest/capsule/capsule_schema.h"

#include <inttypes.h>
#include <string.h>

struct block {
    const struct schema *schema;
    char *path; /* "capabilities.shell", "" for the file itself */
};

struct page {
    struct buf out;
    bool is_man;
    struct block blocks[128];
    size_t len;
};

/* --- words --- */

static void
put_words (struct buf *out, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        buf_printf (out, "%s%s", i ? ", " : "one of ", words[i]);
}

static const char *
number_words (const struct schema_key *k)
{
    return k->rule == RULE_POSITIVE ? "number, 1 or more" : "number";
}

static const char *
text_words (const struct schema_key *k)
{
    return k->rule == RULE_DURATION ? "duration, such as 10m"
           : k->rule == RULE_SIZE   ? "size, such as 64Mi"
                                    : "text";
}

static const char *const type_words[] = {
    [KEY_BOOL] = "true or false",    [KEY_TEXTS] = "list of text",       [KEY_BLOCK] = "block",
    [KEY_BLOCKS] = "list of blocks", [KEY_BLOCK_MAP] = "blocks by name", [KEY_NODE] = "map",
    [KEY_SCALAR] = "text",
};

/* "number, 1 to 10" and so on. Owned. */
static char *
value_words (const struct schema_key *k)
{
    struct buf out = { 0 };
    bool is_number = k->type == KEY_U16 || k->type == KEY_U32 || k->type == KEY_U64;
    if (k->words)
        put_words (&out, k->words);
    else if (is_number && k->rule == RULE_RANGE)
        buf_printf (&out, "number, %" PRIu64 " to %" PRIu64, k->min, k->max);
    else if (is_number)
        buf_puts (&out, number_words (k));
    else if (k->type == KEY_FLOAT)
        buf_puts (&out,
                  k->rule == RULE_FRACTION_ABOVE_0 ? "fraction, above 0 to 1" : "fraction, 0 to 1");
    else if (k->type < ARRAY_LEN (type_words) && type_words[k->type])
        buf_puts (&out, type_words[k->type]);
    else
        buf_puts (&out, text_words (k));
    return buf_steal (&out);
}

static bool
is_round (uint64_t n, unsigned shift)
{
    return n >> shift && ! (n & ((UINT64_C (1) << shift) - 1));
}

/* The value of an absent key, "" when there is none worth naming. Owned. */
static char *
default_words (const struct schema_key *k)
{
    struct buf out = { 0 };
    uint64_t n = k->fallback;
    if (k->type == KEY_ENUM)
        buf_puts (&out, k->words[n]);
    else if (k->type == KEY_BOOL && n)
        buf_puts (&out, "true");
    else if (k->type == KEY_FLOAT && k->fallback_fraction > 0)
        buf_printf (&out, "%.2f", k->fallback_fraction);
    else if (k->type == KEY_U16 || k->type == KEY_U32 || k->type == KEY_U64) {
        if (is_round (n, 30))
            buf_printf (&out, "%" PRIu64 " (%" PRIu64 " GiB)", n, n >> 30);
        else if (is_round (n, 20))
            buf_printf (&out, "%" PRIu64 " (%" PRIu64 " MiB)", n, n >> 20);
        else if (n)
            buf_printf (&out, "%" PRIu64, n);
    }
    return buf_steal (&out);
}

static bool
is_shown (const struct schema_key *k)
{
    return k->type != KEY_IGNORED && ! (k->flags & KEY_HIDDEN);
}

/* --- blocks --- */

static const struct block *
find_block (const struct page *p, const struct schema *schema)
{
    for (size_t i = 0; i < p->len; i++)
        if (p->blocks[i].schema == schema)
            return &p->blocks[i];
    return NULL;
}

static char *
child_path (const char *path, const struct schema_key *k)
{
    return x_asprintf ("%s%s%s%s", path, *path ? "." : "", k->name,
                       k->type == KEY_BLOCKS      ? "[]"
                       : k->type == KEY_BLOCK_MAP ? ".<name>"
                                                  : "");
}

/* True for a block of the top level: described there, also when it stands deeper too. */
static bool
is_top_level (const struct schema *schema)
{
    for (const struct schema_key *k = capsule_schema ()->keys; k->name; k++)
        if (k->block == schema)
            return true;
    return false;
}

/* Lists a block and those below it, each schema once. */
static void
collect (struct page *p, const struct schema *schema, char *path)
{
    if (find_block (p, schema) || p->len == ARRAY_LEN (p->blocks)) {
        free (path);
        return;
    }
    p->blocks[p->len++] = (struct block){ schema, path };
    for (const struct schema_key *k = schema->keys; k->name; k++)
        if (k->block && is_shown (k) && ! (*path && is_top_level (k->block)))
            collect (p, k->block, child_path (path, k));
}

/* Where the block of a key is described when that is not here: "see capabilities". Owned. */
static char *
elsewhere (const struct page *p, const char *path, const struct schema_key *k)
{
    const struct block *b = k->block ? find_block (p, k->block) : NULL;
    _cleanup_free_ char *here = k->block ? child_path (path, k) : NULL;
    if (! b || strcmp (b->path, here) == 0)
        return x_strdup ("");
    return x_asprintf (" The keys are those of %s.", b->path);
}

/* --- the two forms --- */

static void
put_cell (struct buf *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '|' || *c == '<')
            buf_putc (out, '\\');
        buf_putc (out, *c);
    }
}

static void
markdown_key (struct page *p, const char *path, const struct schema_key *k)
{
    _cleanup_free_ char *value = value_words (k), *fallback = default_words (k);
    _cleanup_free_ char *rest = elsewhere (p, path, k);
    buf_printf (&p->out, "| `%s` | ", k->name);
    put_cell (&p->out, value);
    buf_puts (&p->out, " | ");
    put_cell (&p->out, k->flags & KEY_REQUIRED ? "required" : fallback);
    buf_puts (&p->out, " | ");
    put_cell (&p->out, k->doc ? k->doc : "");
    put_cell (&p->out, rest);
    buf_puts (&p->out, " |\n");
}

static void
markdown_block (struct page *p, const struct block *b)
{
    if (*b->path)
        buf_printf (&p->out, "\n## `%s`\n", b->path);
    buf_puts (&p->out, "\n| Key | Value | Default | Meaning |\n|---|---|---|---|\n");
    for (const struct schema_key *k = b->schema->keys; k->name; k++)
        if (is_shown (k))
            markdown_key (p, b->path, k);
}

static void
man_key (struct page *p, const char *path, const struct schema_key *k)
{
    _cleanup_free_ char *value = value_words (k), *fallback = default_words (k);
    _cleanup_free_ char *rest = elsewhere (p, path, k);
    buf_puts (&p->out, ".TP\n\\fB");
    roff_put (&p->out, k->name);
    buf_puts (&p->out, "\\fR (");
    roff_put (&p->out, value);
    buf_puts (&p->out, k->flags & KEY_REQUIRED ? "; required" : "");
    if (*fallback) {
        buf_puts (&p->out, "; default ");
        roff_put (&p->out, fallback);
    }
    buf_puts (&p->out, ")\n");
    roff_put (&p->out, k->doc ? k->doc : "");
    roff_put (&p->out, rest);
    buf_putc (&p->out, '\n');
}

static void
man_block (struct page *p, const struct block *b)
{
    roff_line (&p->out, "SS", *b->path ? b->path : "The file");
    for (const struct schema_key *k = b->schema->keys; k->name; k++)
        if (is_shown (k))
            man_key (p, b->path, k);
}

static const char example[] = "name: acme/greeter\n"
                              "version: 0.1.0\n"
                              "artifacts:\n"
                              "  - name: std/driver-anthropic\n"
                              "    version: \"0.1.0\"\n"
                              "    runtime: driver\n"
                              "    gateway:\n"
                              "      endpoint: https://api.anthropic.com\n"
                              "      api_key: ${ANTHROPIC_API_KEY}\n"
                              "  - name: std/files\n"
                              "    version: \"0.1.0\"\n"
                              "    runtime: tool\n"
                              "    capabilities:\n"
                              "      filesystem: {scope: drafts}\n"
                              "inference:\n"
                              "  model: claude-sonnet-4-5\n"
                              "  driver: {artifact: std/driver-anthropic}\n"
                              "  max_turns: 20\n";

/* The keys that mur build reads: what is packed says them of itself. */
static const struct {
    const char *key, *value, *meaning;
} packed_keys[] = {
    { "name", "text", "Required. Without a scope: whoever publishes gives it one." },
    { "version", "text", "Required: three numbers, such as \"0.1.0\"." },
    { "runtime", "tool, driver, hook, skill, capsule", "Required: what it is." },
    { "execution", "wasm, native, static",
      "How it is packed; follows from the rest where it is left out. An agent, which has no "
      "component of its own, says static." },
    { "implementation", "native",
      "A native program, packed as bin/<name>, in place of a component." },
    { "requires_files", "list of text",
      "The files of the folder that are packed beside murmur.yaml; nothing else is." },
    { "description", "text", "What a model, mur search and an index are told." },
    { "input_schema", "map", "Of a tool: what its input must be, as JSON Schema." },
    { "output_schema", "map", "Of a tool: what its output is, as JSON Schema." },
    { "tags", "list of text", "Words for an index." },
    { "models", "map", "Of a driver: each model's max_output_tokens and context_window." },
    { "upstream_auth", "map", "Of a driver: the header its provider wants the key in." },
    { "upstream", "none", "Of a driver that calls no provider." },
    { "binding", "map", "Of a hook: the events it is asked about." },
};

static const char packed_intro[] =
    "A folder that mur build packs has a murmur.yaml with these keys at its top level; one of an "
    "agent has the keys above beside them.";

static void
markdown_packed (struct page *p)
{
    buf_printf (
        &p->out,
        "\n## A manifest that is packed\n\n%s\n\n| Key | Value | Meaning |\n|---|---|---|\n",
        packed_intro);
    for (size_t i = 0; i < ARRAY_LEN (packed_keys); i++) {
        buf_printf (&p->out, "| `%s` | %s | ", packed_keys[i].key, packed_keys[i].value);
        put_cell (&p->out, packed_keys[i].meaning);
        buf_puts (&p->out, " |\n");
    }
}

static void
man_packed (struct page *p)
{
    buf_puts (&p->out, ".SH A MANIFEST THAT IS PACKED\n");
    roff_put (&p->out, packed_intro);
    buf_putc (&p->out, '\n');
    for (size_t i = 0; i < ARRAY_LEN (packed_keys); i++) {
        buf_puts (&p->out, ".TP\n.B ");
        roff_put (&p->out, packed_keys[i].key);
        buf_puts (&p->out, "\n(");
        roff_put (&p->out, packed_keys[i].value);
        buf_puts (&p->out, ") ");
        roff_put (&p->out, packed_keys[i].meaning);
        buf_putc (&p->out, '\n');
    }
}

static void
markdown_page (struct page *p)
{
    buf_puts (
        &p->out,
        "# murmur.yaml\n\n"
        "<!-- Written from the tables of src/manifest/capsule/capsule_schema.c: "
        "build/src/cli/write-manifest-page markdown > docs/manifest.md -->\n\n"
        "The manifest says what a capsule is made of and what it may do. What is not granted "
        "is denied. A key that is not\nhere is named by a warning (W-SEC-019) with the nearest "
        "one that is; a wrong value is refused with its place in the file.\n"
        "`mur run --explain-scope` shows what a manifest grants, `mur doctor` what it needs. "
        "The same text is `man murmur.yaml`.\n\n```yaml\n");
    buf_puts (&p->out, example);
    buf_puts (&p->out, "```\n");
    for (size_t i = 0; i < p->len; i++)
        markdown_block (p, &p->blocks[i]);
    markdown_packed (p);
}

static void
man_page (struct page *p)
{
    buf_puts (&p->out,
              ".TH MURMUR.YAML 5 \"\" \"murmur " MUR_VERSION "\"\n"
              ".SH NAME\nmurmur.yaml \\- what a capsule is made of and what it may do\n"
              ".SH DESCRIPTION\n"
              "What is not granted is denied. A key that is not here is named by a warning "
              "(W\\-SEC\\-019) with the nearest one that is; a wrong value is refused with "
              "its place in the file. \\fBmur run \\-\\-explain\\-scope\\fR shows what a "
              "manifest grants, \\fBmur doctor\\fR what it needs.\n"
              ".SH EXAMPLE\n.nf\n");
    roff_put (&p->out, example);
    buf_puts (&p->out, ".fi\n.SH KEYS\n");
    for (size_t i = 0; i < p->len; i++)
        man_block (p, &p->blocks[i]);
    man_packed (p);
    buf_puts (&p->out, ".SH SEE ALSO\n.BR mur (1)\n");
}

int
main (int argc, char **argv)
{
    struct page p = { .is_man = argc > 1 && strcmp (argv[1], "man") == 0 };
    collect (&p, capsule_schema (), x_strdup (""));
    if (p.is_man)
        man_page (&p);
    else
        markdown_page (&p);
    fwrite (p.out.data, 1, p.out.len, stdout);
    buf_free (&p.out);
    for (size_t i = 0; i < p.len; i++)
        free (p.blocks[i].path);
    return fflush (stdout) == 0 ? 0 : 1;
}
