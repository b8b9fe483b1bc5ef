/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/bundled.h"

#include "fs/replace.h"
#include "home/paths.h"

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
    "work folder with my one tool, {{tools}}; /trace shows what I did and /grants what I may do. "
    "A capsule of your own begins with: mur new agent NAME\n"
    "        - text: \"You said: {{task}}. More than this is not in my script.\"\n";

char *
bundled_capsule (struct mur_error **err)
{
    int dir = home_open_dir ("chat/hello", err);
    if (dir < 0)
        return NULL;
    /* What it is made of comes with this program: pins of another one mean nothing. */
    (void)unlinkat (dir, "murmur.lock", 0);
    bool is_written =
        fs_replace_at (dir, "murmur.yaml", manifest, strlen (manifest), 0600, false, err);
    close (dir);
    return is_written ? home_path_below ("chat/hello/murmur.yaml", err) : NULL;
}
