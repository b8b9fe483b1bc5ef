/* SPDX-License-Identifier: Apache-2.0
 *
 * The sections of `mur trace show`, each of which appends itself to the report, or nothing where
 * the trace holds nothing of it.
 */
#pragma once

#include "trace/tell/show_parts.h"

/* show_session.c */
show_section_fn show_session, show_harness, show_hook_failures, show_retention, show_context;
/* show_turns.c */
show_section_fn show_turns, show_tokens, show_wire, show_tool_calls, show_redundant, show_skills;
show_section_fn show_pulled, show_shell, show_background, show_compaction, show_call_settings;
/* show_events.c */
show_section_fn show_endings, show_status, show_cancelled, show_rejected, show_failed, show_reopens;
show_section_fn show_denied, show_approvals, show_protected, show_resources, show_choices,
    show_control;
show_section_fn show_peer_files;
/* show_peers.c */
show_section_fn show_delegations, show_member_calls, show_plans, show_a2a, show_tasks;
