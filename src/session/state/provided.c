/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of runtime-provided tools. See provided.h.
 */
#include "session/state/provided.h"

#include "session/commands/background.h"
#include "session/state/session.h"

#include <string.h>

static bool
is_agent (const struct session *s)
{
    return s->manifest->inference != NULL;
}

const struct provided_tool provided_tools[] = {
    { "session-status",
      "Tells where this session stands: time used and left, turns, tokens, spend, and how full the "
      "context is. Takes no input.",
      "{\"properties\":{},\"type\":\"object\"}", "inference", is_agent, provided_session_status },
    { "background-command",
      "Asks after a command that moved to the background: its state and the end of its output, or "
      "waits for it, or stops it.",
      background_parameters, "capabilities.shell.allow", background_is_offered, background_call },
    { "pull-artifact",
      "Fetches a tool or skill this capsule may install: <scope>/<name> for the newest that fits, "
      "<scope>/<name>@<version>, or a pattern ending in * to list what there is.",
      pull_parameters, "capabilities.install", pull_is_offered, provided_pull },
    { "remove-artifact", "Takes a tool or skill away again that this capsule pulled.",
      pull_parameters, "capabilities.install", pull_is_offered, provided_remove },
    { "delegate-task", delegate_description, NULL, "capabilities.spawn.allow", delegate_is_offered,
      provided_delegate, delegate_parameters },
    { "submit-plan",
      "Runs a plan: steps that call tools, run commands or have other capsules work, each as soon as "
      "the steps it depends on are done, and answers once with what every step gave. Any string of a "
      "step's input that is exactly $<step id>.output or $<step id>.status is replaced by that "
      "step's output or status.",
      plan_parameters, "capabilities.plan.submit", plan_is_offered, provided_plan },
    { "switch-driver",
      "Selects the model that goes on from the next inference call on. The conversation stays.",
      NULL, "control.agent_settings with inference.driver", switch_driver_is_offered,
      provided_switch_driver, switch_driver_parameters },
    { "share-file",
      "Makes a handle with which one other capsule, and nobody else, may fetch one file of this "
      "capsule for a while. Give the handle to that capsule in a message.",
      share_file_parameters, "exports.peer_files", share_file_is_offered, provided_share_file },
    { "call-member",
      "Hands a task to another member of this formation, which works on it beside you. Returns once "
      "the member holds its task, or is busy and will be asked again; never with its answer. Make "
      "every call you mean to, then end your turn: your task waits and goes on with the answers.",
      NULL, "a formation that lets this member call another", members_are_offered,
      provided_call_member, call_member_parameters },
    { "end-without-answer",
      "Ends the task another member asked for when there is no answer to give. Takes effect after "
      "the calls of this turn.",
      end_without_answer_parameters, "a formation that lets this member call another",
      members_are_offered, provided_end_without_answer },
    { "fetch-peer-file",
      "Fetches the file a handle of another capsule names and stores it in the work folder. "
      "Answers where it is, its size and its SHA-256, not its contents.",
      fetch_peer_file_parameters, "capabilities.peer_fetch", fetch_peer_file_is_offered,
      provided_fetch_peer_file },
};
const size_t provided_tool_count = ARRAY_LEN (provided_tools);

const struct provided_tool *
provided_find (const char *name)
{
    for (size_t i = 0; i < provided_tool_count; i++)
        if (strcmp (provided_tools[i].name, name) == 0)
            return &provided_tools[i];
    return NULL;
}
