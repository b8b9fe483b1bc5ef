/* SPDX-License-Identifier: Apache-2.0 */
#include "door/card/card.h"

#include "manifest/capsule/door_methods.h"

#include <string.h>

/* The enum follows the table; GetExtendedAgentCard, which needs no scope, comes after it. */
_Static_assert((int)METHOD_GET_EXTENDED_AGENT_CARD == DOOR_METHOD_COUNT, "enum door_method");
static const char extended_card[] = "GetExtendedAgentCard";

static const char *const push_methods[] = {
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
};

static const char *const frames[] = {
    "text", "thinking", "tool-call-started", "tool-call-progress", "artifact",
    "gap",  "lagged",   "connection-ack",    "capsule-closed",
};

enum door_method
door_method_find (const char *name)
{
    for (size_t i = 0; i < DOOR_METHOD_COUNT; i++)
        if (strcmp (name, door_methods[i].name) == 0)
            return (enum door_method)i;
    if (strcmp (name, extended_card) == 0)
        return METHOD_GET_EXTENDED_AGENT_CARD;
    for (size_t i = 0; i < ARRAY_LEN (push_methods); i++)
        if (strcmp (name, push_methods[i]) == 0)
            return METHOD_PUSH_CONFIG;
    return METHOD_UNKNOWN;
}

const char *
door_method_name (enum door_method method)
{
    return method < DOOR_METHOD_COUNT                 ? door_methods[method].name
           : method == METHOD_GET_EXTENDED_AGENT_CARD ? extended_card
                                                      : NULL;
}

bool
door_method_is_served (enum door_method method, const struct card_facts *facts)
{
    if (method < DOOR_METHOD_COUNT)
        return facts->acceptance != ACCEPT_NONE || ! door_methods[method].needs_tasks;
    return method == METHOD_GET_EXTENDED_AGENT_CARD && facts->is_authenticated;
}

/* --- parts of the card --- */

static json_t *
texts (const char *const *items, size_t len)
{
    json_t *array = json_array ();
    for (size_t i = 0; i < len; i++)
        json_array_append_new (array, json_string (items[i]));
    return array;
}

static json_t *
served_methods (const struct card_facts *facts)
{
    json_t *array = json_array ();
    for (int method = 0; method <= METHOD_GET_EXTENDED_AGENT_CARD; method++)
        if (door_method_is_served ((enum door_method)method, facts))
            json_array_append_new (array,
                                   json_string (door_method_name ((enum door_method)method)));
    return array;
}

static json_t *
planes (const struct card_facts *facts)
{
    json_t *array = json_array ();
    if (facts->exports_files)
        json_array_append_new (array, json_string ("files"));
    if (facts->exports_peer_files)
        json_array_append_new (array, json_string ("peer_files"));
    return array;
}

static json_t *
extension (const char *uri, const char *description, json_t *params)
{
    return json_pack ("{s:s, s:s, s:b, s:o}", "uri", uri, "description", description, "required", 0,
                      "params", params);
}

static json_t *
extensions (const struct card_facts *facts, bool shows_capsule)
{
    json_t *array = json_array ();
    json_t *params = json_pack ("{s:o, s:b}", "methods", served_methods (facts), "peerTasks",
                                facts->accepts_peer_tasks);
    json_array_append_new (
        array, extension (CARD_DOOR_URI, "Which methods this door serves, and to whom", params));
    if (shows_capsule) {
        params = json_pack ("{s:s, s:o, s:b, s:b, s:o}", "sessionId", facts->session_id, "tools",
                            texts (facts->tools, facts->tool_count), "shell", facts->has_shell,
                            "network", facts->has_network, "planes", planes (facts));
        json_array_append_new (
            array,
            extension (CARD_CAPSULE_URI, "The session behind this door and its reach", params));
    }
    params = json_pack ("{s:o}", "frames", texts (frames, ARRAY_LEN (frames)));
    json_array_append_new (
        array,
        extension (CARD_STREAM_URI, "Frames beyond the protocol's own stream events", params));
    return array;
}

static json_t *
bearer_requirement (const char *scope)
{
    json_t *list = json_array ();
    if (scope)
        json_array_append_new (list, json_string (scope));
    return json_pack ("{s:{s:{s:o}}}", "schemes", "bearer", "list", list);
}

static json_t *
skills (const struct card_facts *facts)
{
    json_t *array = json_array ();
    if (! door_method_is_served (METHOD_SEND_MESSAGE, facts))
        return array;
    json_t *skill =
        json_pack ("{s:s, s:s, s:s, s:[s]}", "id", "task", "name", "Task", "description",
                   "Carries out the task a message describes", "tags", "task");
    if (facts->is_authenticated) {
        json_t *requirements = json_array ();
        for (size_t i = 0; i < DOOR_METHOD_COUNT; i++)
            if (door_methods[i].starts_tasks)
                json_array_append_new (requirements, bearer_requirement (door_methods[i].name));
        json_object_set_new (skill, "securityRequirements", requirements);
    }
    json_array_append_new (array, skill);
    return array;
}

static void
set_security (json_t *card, const struct card_facts *facts)
{
    json_t *schemes = json_object (), *requirements = json_array ();
    if (facts->is_authenticated) {
        json_object_set_new (schemes, "bearer",
                             json_pack ("{s:{s:s, s:s}}", "httpAuthSecurityScheme", "scheme",
                                        "Bearer", "description",
                                        "A door token of this session (mur token)"));
        json_array_append_new (requirements, bearer_requirement (NULL));
    }
    json_object_set_new (card, "securitySchemes", schemes);
    json_object_set_new (card, "securityRequirements", requirements);
}

char *
card_text (const struct card_facts *facts, bool is_extended)
{
    static const char *const modes[] = { "text/plain", "application/json" };
    _cleanup_json_ json_t *card = json_object ();
    _cleanup_buf_ struct buf line = { 0 };
    json_set_string (card, "name", facts->capsule_name);
    buf_printf (&line, "Murmur capsule %s %s", facts->capsule_name, facts->capsule_version);
    json_set_string (card, "description", line.data);
    json_set_string (card, "version", facts->capsule_version);
    buf_truncate (&line, 0);
    if (facts->public_url)
        buf_puts (&line, facts->public_url);
    else
        buf_printf (&line, "http://localhost:%u", facts->port);
    json_object_set_new (card, "supportedInterfaces",
                         json_pack ("[{s:s, s:s, s:s}]", "url", line.data, "protocolBinding",
                                    "JSONRPC", "protocolVersion", "1.0"));
    json_t *capabilities = json_object ();
    json_set_bool (capabilities, "streaming",
                   door_method_is_served (METHOD_SEND_STREAMING_MESSAGE, facts));
    json_set_bool (capabilities, "pushNotifications", false);
    json_set_bool (capabilities, "extendedAgentCard", facts->is_authenticated);
    bool shows_capsule = is_extended || ! facts->is_authenticated;
    json_object_set_new (capabilities, "extensions", extensions (facts, shows_capsule));
    json_object_set_new (card, "capabilities", capabilities);
    set_security (card, facts);
    json_object_set_new (card, "defaultInputModes", texts (modes, ARRAY_LEN (modes)));
    json_object_set_new (card, "defaultOutputModes", texts (modes, ARRAY_LEN (modes)));
    json_object_set_new (card, "skills", skills (facts));
    return json_text (card, JSON_TEXT_SORTED);
}
