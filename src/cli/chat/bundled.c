/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/bundled.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "fs/replace.h"
#include "home/paths.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char manifest[] =
    "# Written by `mur chat`, which found no murmur.yaml: an agent that answers from this script.\n"
    "name: hello\n"
    "version: \"0.1.0\"\n"
    "artifacts:\n"
    "  - {name: std/driver-scripted, version: \"0.1.0\", runtime: driver}\n"
    "  - {name: std/files, version: \"0.1.0\"}\n"
    "inference:\n"
    "  model: scripted\n"
    "  driver:\n"
    "    artifact: std/driver-scripted\n"
    "    config:\n"
    "      steps:\n"
    "        - thinking: Someone is new here. I write them a note first.\n"
    "          tool_calls:\n"
    "            - name: files\n"
    "              input: {action: write, path: welcome.txt, content: \"A capsule may touch its work "
    "folder, and nothing else.\\n\"}\n"
    "        - text: |-\n"
    "            You said: {{task}}\n"
    "\n"
    "            I play a script, so I need no network and no key. I just wrote welcome.txt into my "
    "work folder with a tool (I have {{tools}}); /trace shows what I did and /grants what I may do. "
    "A capsule of your own begins with: mur new agent NAME\n"
    "        - text: \"You said: {{task}}. More than this is not in my script.\"\n";

static char *
write_capsule (const char *name, const char *text, struct mur_error **err)
{
    _cleanup_free_ char *below = x_asprintf ("chat/%s", name);
    _cleanup_free_ char *path = x_asprintf ("%s/murmur.yaml", below);
    int dir = home_open_dir (below, err);
    if (dir < 0)
        return NULL;
    /* What it is made of comes with this program: pins of another one mean nothing. */
    (void)unlinkat (dir, "murmur.lock", 0);
    bool is_written = fs_replace_at (dir, "murmur.yaml", text, strlen (text), 0600, false, err);
    close (dir);
    return is_written ? home_path_below (path, err) : NULL;
}

char *
bundled_capsule (struct mur_error **err)
{
    return write_capsule ("hello", manifest, err);
}

/* --- with a model --- */

static const struct provider {
    const char *name, *driver, *endpoint, *key;
} providers[] = {
    { "anthropic", "driver-anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY" },
    { "openai", "driver-openai", "https://api.openai.com", "OPENAI_API_KEY" },
};

/* A text as YAML reads it. Owned. */
static char *
quoted (const char *text)
{
    _cleanup_json_ json_t *value = json_string (text);
    return json_dumps (value, JSON_ENCODE_ANY);
}

char *
bundled_agent (const char *with, const char *model, struct mur_error **err)
{
    struct provider p = { "local", "driver-openai", with, NULL };
    bool is_known = str_starts (with, "http://") || str_starts (with, "https://");
    for (size_t i = 0; i < ARRAY_LEN (providers); i++)
        if (str_eq (with, providers[i].name)) {
            p = providers[i];
            is_known = true;
        }
    if (! is_known) {
        mur_fail (err, E_IO_003, "--with names no provider: %s", with);
        mur_hint (err, "anthropic, openai, or the address of an OpenAI-compatible server, as in "
                       "http://127.0.0.1:11434");
        return NULL;
    }
    _cleanup_free_ char *endpoint = quoted (p.endpoint), *name = quoted (model);
    if (! endpoint || ! name) {
        mur_fail (err, E_IO_003, "--with and --model are text in UTF-8");
        return NULL;
    }
    _cleanup_free_ char *key =
        p.key ? x_asprintf ("api_key: \"${%s}\"", p.key) : x_strdup ("keyless: true");
    _cleanup_free_ char *text = x_asprintf (
        "# Written by `mur chat --with`.\nname: %s\nversion: \"0.1.0\"\nartifacts:\n"
        "  - {name: std/%s, version: \"0.1.0\", runtime: driver, gateway: {endpoint: %s, %s}}\n"
        "  - {name: std/files, version: \"0.1.0\"}\n"
        "inference:\n  model: %s\n  max_tokens: 4096\n  driver: {artifact: std/%s}\n",
        p.name, p.driver, endpoint, key, name, p.driver);
    return write_capsule (p.name, text, err);
}

void
bundled_tell_providers (void)
{
    for (size_t i = 0; i < ARRAY_LEN (providers); i++) {
        const char *key = getenv (providers[i].key);
        if (key && *key)
            diag_note ("%s is set: `mur chat --with %s --model NAME` talks to a model",
                       providers[i].key, providers[i].name);
    }
}
