/* SPDX-License-Identifier: Apache-2.0 */
#include "session/stage/provided_table.h"

#include "base/alloc.h"

extern const struct provided_tool provided_session_status, provided_background_command,
    provided_pull_artifact, provided_remove_artifact, provided_delegate_task, provided_submit_plan,
    provided_switch_driver, provided_share_file, provided_call_member, provided_end_without_answer,
    provided_fetch_peer_file;

const struct provided_tool *const provided_table[] = {
    &provided_session_status,     &provided_background_command, &provided_pull_artifact,
    &provided_remove_artifact,    &provided_delegate_task,      &provided_submit_plan,
    &provided_switch_driver,      &provided_share_file,         &provided_call_member,
    &provided_end_without_answer, &provided_fetch_peer_file,
};
const size_t provided_table_len = ARRAY_LEN (provided_table);
