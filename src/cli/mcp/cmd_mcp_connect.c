/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur mcp connect`: what an MCP client needs to start `mur mcp serve` for a capsule, printed, or
 * put into that client's own file.
 *
 * Always true: a file that cannot be read as what it should be is refused and left as it is; what
 * else it holds stays.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/json_write.h"
#include "cli/line/args.h"
#include "cli/line/missing_manifest.h"
#include "cli/mcp/commands.h"
#include "fs/paths.h"
#include "fs/replace.h"
#include "fs/root.h"
#include "manifest/capsule/capsule.h"
#include "manifest/text/suggest.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MOST ((size_t)4 << 20)

enum place {
    IN_PROJECT, /* below the folder one stands in */
    IN_HOME,
};

struct client {
    const char *name;
    enum place place;
    const char *file;
    const char *member;  /* of the JSON file; NULL: a TOML file */
    bool says_transport; /* an entry says "type": "stdio" */
};

static const struct client clients[] = {
    { "claude-code", IN_PROJECT, ".mcp.json", "mcpServers", true },
    { "codex", IN_HOME, ".codex/config.toml", NULL, false },
    { "vscode", IN_PROJECT, ".vscode/mcp.json", "servers", true },
    { "cursor", IN_PROJECT, ".cursor/mcp.json", "mcpServers", false },
    { "claude-desktop", IN_HOME, ".config/Claude/claude_desktop_config.json", "mcpServers", false },
};

struct connection {
    const struct client *client;
    char *program;
    char *target; /* an absolute folder or manifest, or scope/name@version */
    char *name;   /* the server's, in the client */
    char *path;   /* of the client's file */
};

static void
connection_clear (struct connection *c)
{
    free (c->program);
    free (c->target);
    free (c->name);
    free (c->path);
}

/* --- what is connected --- */

static bool
read_folder (struct connection *c, const char *target, struct mur_error **err)
{
    struct stat st;
    bool is_folder = stat (target, &st) == 0 && S_ISDIR (st.st_mode);
    _cleanup_free_ char *manifest =
        is_folder ? x_asprintf ("%s/murmur.yaml", target) : x_strdup (target);
    _cleanup_ (capsule_manifest_freep) struct capsule_manifest *m =
        capsule_manifest_read (manifest, MANIFEST_SECRETLESS, err);
    if (! m && is_folder && access (manifest, F_OK) < 0)
        return missing_manifest_hint (target, "name the folder of the capsule that is served", err);
    if (! m)
        return false;
    if (! m->exports || ! m->exports->mcp) {
        mur_fail (err, E_MCP_010, "%s serves nothing to MCP clients", m->name);
        return mur_hint (err, "name what it serves in %s: exports: {mcp: {tools: [...]}}",
                         manifest);
    }
    c->name = x_strdup (m->name);
    c->target = fs_canonical_path (target, err);
    return c->target != NULL;
}

static bool
read_target (struct connection *c, const char *target, struct mur_error **err)
{
    struct stat st;
    const char *at = strrchr (target, '@'), *slash = strrchr (target, '/');
    if (stat (target, &st) == 0 || ! at || ! slash || at < slash)
        return read_folder (c, target, err);
    c->name = x_strndup (slash + 1, (size_t)(at - slash - 1));
    c->target = x_strdup (target);
    return true;
}

static bool
find_place (struct connection *c, struct mur_error **err)
{
    char self[4096];
    ssize_t n = readlink ("/proc/self/exe", self, sizeof self - 1);
    const char *home = getenv ("HOME");
    if (n <= 0)
        return mur_fail_errno (err, E_IO_003, "cannot tell where this program lies");
    self[n] = '\0';
    c->program = x_strdup (self);
    if (c->client->place == IN_HOME && ! (home && home[0] == '/'))
        return mur_fail (err, E_IO_003, "HOME is not set: %s keeps its servers there",
                         c->client->name);
    c->path = c->client->place == IN_HOME ? x_asprintf ("%s/%s", home, c->client->file)
                                          : x_strdup (c->client->file);
    return true;
}

/* --- the entry --- */

static json_t *
entry_json (const struct connection *c)
{
    json_t *o = json_object (), *args = json_array ();
    const char *const words[] = { "mcp", "serve", c->target };
    if (c->client->says_transport)
        json_set_string (o, "type", "stdio");
    json_set_string (o, "command", c->program);
    for (size_t i = 0; i < ARRAY_LEN (words); i++)
        json_array_append_new (args, json_string (words[i]));
    json_object_set_new (o, "args", args);
    return o;
}

/* JSON's quoting is TOML's, for what stands here. */
static char *
entry_toml (const struct connection *c)
{
    struct buf out = { 0 };
    buf_puts (&out, "[mcp_servers.");
    json_append_string (&out, c->name, strlen (c->name));
    buf_puts (&out, "]\ncommand = ");
    json_append_string (&out, c->program, strlen (c->program));
    buf_puts (&out, "\nargs = [\"mcp\", \"serve\", ");
    json_append_string (&out, c->target, strlen (c->target));
    buf_puts (&out, "]\n");
    return buf_steal (&out);
}

static char *
whole_json (const struct connection *c, json_t *whole)
{
    json_t *servers = json_object_get (whole, c->client->member);
    if (! servers) {
        servers = json_object ();
        json_object_set_new (whole, c->client->member, servers);
    }
    json_object_set_new (servers, c->name, entry_json (c));
    char *text = json_pretty (whole, JSON_TEXT_ORDERED);
    char *line = x_asprintf ("%s\n", text);
    free (text);
    return line;
}

/* --- into the client's file --- */

/* What the file holds; "" when there is none. */
static bool
read_present (const struct connection *c, struct buf *out, struct mur_error **err)
{
    struct stat st;
    if (stat (c->path, &st) != 0 && errno == ENOENT)
        return true;
    return fs_read_path (c->path, FILE_MOST, out, err);
}

static char *
merged_json (const struct connection *c, const struct buf *present, struct mur_error **err)
{
    bool is_empty = ! present->len;
    _cleanup_json_ json_t *whole =
        is_empty ? json_object ()
                 : json_parse (present->data, present->len, c->path, E_IO_003, err);
    if (! whole)
        return NULL;
    const json_t *servers = json_object_get (whole, c->client->member);
    if (! json_is_object (whole) || (servers && ! json_is_object (servers))) {
        mur_fail (err, E_IO_003, "%s: %s is not an object", c->path, c->client->member);
        mur_hint (err, "leave --write out and add what is printed by hand");
        return NULL;
    }
    return whole_json (c, whole);
}

/* A section of that name is replaced up to the next one; anything else is added at the end. */
static char *
merged_toml (const struct connection *c, const struct buf *present)
{
    struct buf out = { 0 };
    _cleanup_free_ char *entry = entry_toml (c), *bare = x_asprintf ("[mcp_servers.%s]", c->name);
    _cleanup_free_ char *quoted = x_asprintf ("[mcp_servers.\"%s\"]", c->name);
    bool is_ours = false;
    const char *text = present->data ? present->data : "";
    for (const char *line = text; *line;) {
        size_t len = strcspn (line, "\n"), whole = len + (line[len] == '\n');
        if (line[0] == '[')
            is_ours = (len == strlen (bare) && strncmp (line, bare, len) == 0) ||
                      (len == strlen (quoted) && strncmp (line, quoted, len) == 0);
        if (! is_ours)
            buf_append (&out, line, whole);
        line += whole;
    }
    if (out.len && out.data[out.len - 1] != '\n')
        buf_putc (&out, '\n');
    if (out.len && ! (out.len > 1 && out.data[out.len - 2] == '\n'))
        buf_putc (&out, '\n');
    buf_puts (&out, entry);
    return buf_steal (&out);
}

/* With the folders above it: a new home may have no ~/.config. */
static bool
make_folder (const char *folder, struct mur_error **err)
{
    _cleanup_free_ char *path = x_strdup (folder);
    for (char *slash = path; slash;) {
        slash = strchr (slash + 1, '/');
        if (slash)
            *slash = '\0';
        if (mkdir (path, 0755) != 0 && errno != EEXIST)
            return mur_fail_errno (err, E_IO_003, "cannot make %s", path);
        if (slash)
            *slash = '/';
    }
    return true;
}

static bool
put (const struct connection *c, const char *text, struct mur_error **err)
{
    _cleanup_free_ char *copy = x_strdup (c->path), *name_copy = x_strdup (c->path);
    const char *folder = dirname (copy);
    if (! make_folder (folder, err))
        return false;
    _cleanup_close_ int dir = open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", folder);
    struct stat st;
    mode_t mode = stat (c->path, &st) == 0 ? st.st_mode & 0777 : 0644;
    return fs_replace_at (dir, basename (name_copy), text, strlen (text), mode, true, err);
}

static bool
write_file (const struct connection *c, struct mur_error **err)
{
    _cleanup_buf_ struct buf present = { 0 };
    if (! read_present (c, &present, err))
        return false;
    _cleanup_free_ char *text =
        c->client->member ? merged_json (c, &present, err) : merged_toml (c, &present);
    if (! text || ! put (c, text, err))
        return false;
    diag_stdout_line ("%s: %s is a server of %s", c->path, c->name, c->client->name);
    return true;
}

static void
print (const struct connection *c)
{
    _cleanup_json_ json_t *whole = json_object ();
    _cleanup_free_ char *text = c->client->member ? whole_json (c, whole) : entry_toml (c);
    diag_stderr_line ("for %s, or let --write put it there:", c->path);
    out_write (text, strlen (text));
}

int
cmd_mcp_connect (const struct cli_args *args, struct mur_error **err)
{
    const char *name = cli_positional (args, "CLIENT"), *target = cli_positional (args, "CAPSULE");
    _cleanup_ (connection_clear) struct connection c = { 0 };
    for (size_t i = 0; i < ARRAY_LEN (clients); i++)
        if (str_eq (clients[i].name, name))
            c.client = &clients[i];
    if (! c.client) {
        mur_fail (err, E_IO_003, "%s is no client this program knows", name);
        struct suggestion near = { NULL, 0 };
        for (size_t i = 0; i < ARRAY_LEN (clients); i++)
            suggestion_offer (&near, name, clients[i].name);
        suggestion_hint (&near,
                         "claude-code, codex, vscode, cursor or claude-desktop; any other one is "
                         "told to run: mur mcp serve <CAPSULE>",
                         err);
        return CLI_FAILED;
    }
    if (! read_target (&c, target ? target : ".", err) || ! find_place (&c, err))
        return CLI_FAILED;
    if (cli_has (args, "--write"))
        return write_file (&c, err) ? CLI_OK : CLI_FAILED;
    print (&c);
    return CLI_OK;
}
