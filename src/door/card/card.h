/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent card (spec/door.md 3) and the method table (spec/door.md 7) it lists.
 */
#pragma once

#include "base/json.h"
#include "manifest/capsule/capsule.h"

#define CARD_DOOR_URI    "https://docs.murmur.nexus/reference/agent-card/#murmur-door-v1"
#define CARD_CAPSULE_URI "https://docs.murmur.nexus/reference/agent-card/#murmur-capsule-v1"
#define CARD_STREAM_URI  "https://docs.murmur.nexus/reference/streaming-protocol/#murmur-stream-v1"

struct card_facts {
    const char *capsule_name;
    const char *capsule_version;
    const char *session_id;
    unsigned port;
    const char *public_url; /* where others reach the door; NULL: the port of this host */
    const char *const
        *tools; /* installed artifacts the model sees, "local/echo-tool", manifest order */
    size_t tool_count;
    bool has_shell;   /* shell.allow non-empty */
    bool has_network; /* network.allow non-empty */
    bool exports_files;
    bool exports_peer_files;
    bool accepts_peer_tasks;
    bool is_authenticated;
    bool has_harness; /* transport: process: a message may ask to forget its session */
    enum task_acceptance acceptance;
};

/* The card as compact JSON with sorted keys; owned. <is_extended>: the one GetExtendedAgentCard
 * answers, and the public one of a public door. */
char *card_text (const struct card_facts *facts, bool is_extended);

enum door_method {
    METHOD_SEND_MESSAGE,
    METHOD_SEND_STREAMING_MESSAGE,
    METHOD_WATCH_SESSION,
    METHOD_GET_TASK,
    METHOD_LIST_TASKS,
    METHOD_CANCEL_TASK,
    METHOD_SUBSCRIBE_TO_TASK,
    METHOD_STOP_SESSION,
    METHOD_GET_EXTENDED_AGENT_CARD,
    METHOD_PUSH_CONFIG, /* the four, never served */
    METHOD_UNKNOWN,
};

/* Finds a method by its exact name. */
enum door_method door_method_find (const char *name);
const char *door_method_name (enum door_method method);
bool door_method_is_served (enum door_method method, const struct card_facts *facts);
