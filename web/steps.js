// SPDX-License-Identifier: Apache-2.0
//
// One line of a trace as a row: what kind it is, and what it says in a few words.

import { count, duration, line } from "./words.js";

export const refusedKinds = ["call_denied", "network_refused", "command_refused", "tool_input_refused", "protected_path_denied",
  "workdir_path_refused", "spend_ceiling_reached", "task_rejected", "control_refused"];

export const filters = [
  { name: "Everything", kinds: null },
  { name: "Turns", kinds: ["inference", "inference_retry", "compaction", "task_start", "task_end", "task_failed"] },
  { name: "Calls", kinds: ["tool_call", "skill_call", "shell", "shell_detached", "shell_completed", "delegation_start", "delegation",
    "member_call_start", "member_call", "plan_step"] },
  { name: "Refused", kinds: refusedKinds },
  { name: "Questions", kinds: ["approval_requested", "approval_answered", "approval_applied", "task_resumed"] },
];

const tokens = (e) => `${count(e.input_tokens_actual ?? e.input_tokens)} in, ${count(e.output_tokens_actual ?? e.output_tokens)} out`;
const where = (e) => line(e.host || e.target) + (e.port ? `:${e.port}` : "");

// type: [word, kind of row, what it says]
const table = {
  session_start: ["session", "quiet", (e) => `${line(e.capsule_name)}@${line(e.capsule_version)}, ${line(e.model)}`],
  session_end: ["session ends", "quiet", (e) => `${line(e.exit_status)}: ${count(e.total_turns)} turns, ${duration(e.duration_ms)}`],
  task_start: ["task", "task", (e) => `from ${line(e.source)}, ${count(e.message_parts_bytes)} bytes`],
  task_end: ["task ends", "task", (e) => `${line(e.exit_status)} after ${count(e.turns)} turns, ${duration(e.duration_ms)}`],
  task_failed: ["task fails", "bad", (e) => `${line(e.cause)}: ${line(e.reason)}`],
  task_canceled: ["cancelled", "bad", (e) => `in ${line(e.phase)}`],
  task_rejected: ["rejected", "refused", (e) => `${line(e.cause)}: ${line(e.reason)}`],
  inference: ["turn", "turn", (e) => `${line(e.decision)}${e.tool_name ? ` ${line(e.tool_name)}` : ""} (${tokens(e)})${e.error ? ` ${line(e.error)}` : ""}`],
  inference_retry: ["asked again", "bad", (e) => `${line(e.reason)}: ${line(e.error)}`],
  tool_call: ["call", "call", (e) => `${line(e.tool_name)} ${line(e.input, 120)}${e.status === "ok" ? "" : ` → ${line(e.status)} ${line(e.error)}`} (${duration(e.duration_ms)})`],
  shell: ["command", "call", (e) => `${line(e.command, 160)} → ${e.exit_code ?? line(e.resource_limit || "ended")} (${duration(e.duration_ms)})`],
  shell_detached: ["in background", "call", (e) => line(e.command, 160)],
  shell_completed: ["background ends", "call", (e) => `${line(e.command, 120)} → ${e.exit_code ?? line(e.status)}`],
  call_denied: ["refused", "refused", (e) => `${line(e.target)}: ${line(e.reason)} (hook ${line(e.hook_name)})`],
  network_refused: ["refused", "refused", (e) => `${where(e)}, ${count(e.count)}×: ${line(e.rule)}`],
  command_refused: ["refused", "refused", (e) => `${line(e.binary)}, ${count(e.count)}×: ${line(e.what)}`],
  tool_input_refused: ["refused", "refused", (e) => `${line(e.tool_name)}: ${line(e.reason)}`],
  protected_path_denied: ["refused", "refused", (e) => `${line(e.path)}: ${line(e.reason)}`],
  workdir_path_refused: ["refused", "refused", (e) => `${line(e.path)}: ${line(e.reason)}`],
  spend_ceiling_reached: ["ceiling", "refused", (e) => `${line(e.limit)}: ${count(e.used)} of ${count(e.ceiling)} tokens`],
  control_refused: ["refused", "refused", (e) => `${line(e.principal)}: ${line(e.reason)}`],
  approval_requested: ["asks", "asks", (e) => `${line(e.target)}: ${line(e.what)}`],
  approval_answered: ["answered", "asks", (e) => `${line(e.answer)} by ${line(e.by || "nobody")}: ${line(e.target)}`],
  approval_applied: ["answered before", "asks", (e) => `${line(e.answer)}: ${line(e.target)}`],
  delegation_start: ["delegates", "call", (e) => `to ${line(e.capsule)}@${line(e.version)}`],
  delegation: ["came back", "call", (e) => `${line(e.capsule)}: ${line(e.outcome)} (${duration(e.duration_ms)})`],
  member_call_start: ["asks member", "call", (e) => line(e.member)],
  member_call: ["member", "call", (e) => `${line(e.member)}: ${line(e.status)} ${line(e.output, 120)}`],
  compaction: ["compaction", "quiet", (e) => `${count(e.tokens_before)} → ${count(e.tokens_after)} tokens`],
  plan_step: ["plan step", "call", (e) => `${line(e.step_id)}: ${line(e.status)}`],
  a2a_task_received: ["received", "quiet", (e) => (e.principal ? `from ${line(e.principal)}` : "")],
  harness_failed: ["harness", "bad", (e) => line(e.message)],
};

const marks = {
  torn: "the last line is not whole: it is being written, or its writer died",
  malformed: "not a line of a trace",
  long: "too long to be shown here",
};

const common = new Set(["event_type", "event_id", "parent_id", "session_id", "timestamp", "task_id", "turn"]);

function rest(event) {
  return Object.entries(event).filter(([key, value]) => !common.has(key) && value !== null && typeof value !== "object")
    .slice(0, 4).map(([key, value]) => `${key} ${line(value, 60)}`).join(", ");
}

export function describe(row) {
  if (!row.event) return { word: row.mark, kind: "bad", text: `${marks[row.mark] || ""} ${line(row.text, 120)}`, at: 0 };
  const event = row.event;
  const known = table[event.event_type];
  const word = known ? known[0] : line(event.event_type, 40).replaceAll("_", " ");
  const isFailed = event.event_type === "tool_call" && event.status !== "ok";
  return {
    word: row.mark === "unknown" ? `${word} (unknown here)` : word,
    kind: isFailed ? "bad" : known ? known[1] : "quiet",
    text: known ? known[2](event) : rest(event),
    at: event.timestamp,
    turn: event.turn,
  };
}
