/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session was staged with: its artifacts, and the tools the model sees of them.
 *
 * Filled by staging, read-only afterwards but for members named "live": those belong to the task
 * loop's thread.
 */
#pragma once

#include "base/digest.h"
#include "engine/engine.h"
#include "manifest/settings/artifact_manifest.h"
#include "manifest/settings/hook_contract.h"
#include "net/allow.h"
#include "session/stage.h"

struct credential;
struct gateway;
struct provided_tool;
struct server_offer;
struct session;
struct staged_server;

/* What the model may call: one entry of tools/. Sorted by name. */
struct tool_entry {
    const char *name;
    const char *description; /* NULL: none */
    const char *parameters;  /* compact JSON object text */
    struct strv required;    /* borrowed: top-level required names of the schema */
    bool is_schema_malformed;
    bool is_skill;
    bool is_provided;                 /* provided by the runtime */
    struct staged_artifact *artifact; /* NULL for a provided tool */
    const char *output_schema;        /* NULL: none */
};

/* What the model is shown of a tool. */
struct shown_tool {
    char *description;
    char *parameters;
    char *output_schema; /* compact JSON, of type object; NULL: none, or of plain text */
    struct strv required;
    bool is_schema_malformed;
};

/* How a guest of an artifact is made. */
struct guest_making {
    char *config_env; /* "MURMUR_ARTIFACT_CONFIG=...", or NULL */
    struct allow_list allow;
    int scope_fd; /* "." when scoped, else -1 */
    int state_fd; /* "state", else -1 */
    struct gateway *gateway;
    struct credential *credential;
    struct strv env; /* once the URL is known */
};

struct staged_artifact {
    const struct artifact_entry *entry;
    const struct artifact_grant *grant;
    const char *tool_name;
    const char *full_name;
    char *version;
    char sha256[SHA256_HEX_LEN + 1]; /* of its archive, a local skill's of its text; "": neither */
    enum artifact_role role;
    bool is_prompt; /* bound as the system prompt: not offered */
    enum lock_origin origin;
    char *pulled_by;           /* session of a runtime pin */
    struct resolved *resolved; /* NULL for a local skill; dropped once its files are written */
    char *manifest_text;       /* of tools/<name>/murmur.yaml */
    size_t manifest_len;
    struct buf skill_text;
    struct component *component; /* WASM tools and drivers */
    char *native_path;           /* native tools: tools/<n>/<n>, absolute; NULL else */
    struct strv native_closure;  /* further files its start needs */
    struct shown_tool shown;
    bool is_upstream_none;
    bool is_removed; /* live: pulled and taken away again; the name answers as removed */
    struct hook_contract contract; /* hooks */
    struct staged_server *server;  /* servers of tools; NULL else */
    struct guest_making guest;
};

struct kit {
    struct staged_artifact *artifacts;
    size_t artifact_count;
    size_t artifact_cap;      /* places: pulled artifacts never move the others */
    struct tool_entry *tools; /* what the model sees, sorted by name */
    size_t tool_count;
    uint64_t tools_generation; /* live: grows when a pull or a removal changed the inventory */
    /* Hears of that, under the loop lock; NULL: nobody wants to. */
    void (*tools_changed) (struct session *s);
    const struct provided_tool *const *provided; /* what the runtime may provide, by row */
    size_t provided_count;
    struct remote *sources;   /* what pulls have learnt of the sources; NULL: nothing yet */
    uint64_t sources_read_ms; /* monotonic: when that began */
    struct strv guest_env;    /* the runtime's own list for every guest */
};

/* By name: the order of kit.tools. */
int tool_entry_compare (const void *a, const void *b);
/* The tool of that name the model sees, or NULL. */
const struct tool_entry *session_tool (const struct session *s, const char *name);
/* The artifact of that tool name that is there now, or NULL. */
struct staged_artifact *session_artifact (const struct session *s, const char *tool_name);
/* The same by its full name. */
struct staged_artifact *session_artifact_full (const struct session *s, const char *full_name);
/* True when an artifact of that tool name was pulled and removed again, and none is there now. */
bool session_has_removed (const struct session *s, const char *tool_name);
/* True when some hook may answer on-compaction. */
bool session_has_compaction_hook (const struct session *s);
