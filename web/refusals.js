// SPDX-License-Identifier: Apache-2.0
//
// What was refused: no failure, a rule that held. Each with the key that decides it and what would change it.

import { get, subscribe } from "./link.js";
import { html, useEffect, useState } from "./parts.js";
import { refusedKinds } from "./steps.js";
import { clock, count, line, safe } from "./words.js";

// type: what was refused, by which key or rule, what would change it
const table = {
  network_refused: (e) => [`${line(e.host || e.target)}${e.port ? `:${e.port}` : ""}`, e.rule, e.remedy],
  command_refused: (e) => [`${line(e.binary)}: ${line(e.what)}`, e.rule || "capabilities.shell", e.remedy],
  call_denied: (e) => [line(e.target), `hook ${line(e.hook_name)}`, e.reason],
  tool_input_refused: (e) => [line(e.tool_name), "the tool's input_schema", e.reason],
  protected_path_denied: (e) => [line(e.path), e.rule, e.reason],
  workdir_path_refused: (e) => [line(e.path), `no link is followed (${line(e.operation)})`, e.reason],
  spend_ceiling_reached: (e) => [`${count(e.requested)} tokens more`, `${line(e.limit)}: ${count(e.ceiling)}`, `${count(e.used)} were used`],
  task_rejected: (e) => ["a task", e.cause, e.reason],
  control_refused: (e) => [`${line(e.kind || "a change")} by ${line(e.principal)}`, `HTTP ${e.status}`, e.reason],
};

export function Refusals({ session }) {
  const [answer, setAnswer] = useState(null);
  const [failure, setFailure] = useState(null);
  useEffect(() => {
    let isOurs = true;
    const read = () => get(`session/${session}/rows?tail=1&limit=500&kinds=${refusedKinds.join(",")}`)
      .then((found) => isOurs && setAnswer(found), (error) => isOurs && setFailure(error.message));
    read();
    const leave = subscribe((event) => event.kind === "rows" && event.session === session && read());
    return () => {
      isOurs = false;
      leave();
    };
  }, [session]);
  if (failure) return html`<p class="note bad">${safe(failure)}</p>`;
  if (!answer) return html`<p class="note">…</p>`;
  if (!answer.rows.length) return html`<p class="note">Nothing was refused.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table of refusals">
    ${answer.total > answer.rows.length && html`<p class="note">The last ${answer.rows.length} of ${count(answer.total)}.</p>`}
    <table class="list"><thead><tr><th scope="col">At</th><th scope="col">Refused</th><th scope="col">Rule</th><th scope="col">What would change it</th><th scope="col" class="number">Times</th></tr></thead>
    <tbody>${answer.rows.filter((row) => row.event && table[row.event.event_type]).map((row) => {
      const [what, rule, remedy] = table[row.event.event_type](row.event);
      return html`<tr key=${row.n}><td>${clock(row.event.timestamp)}</td><td dir="auto">${what}</td><td>${safe(rule)}</td><td dir="auto">${safe(remedy)}</td>
        <td class="number">${count(row.event.count ?? 1)}</td></tr>`;
    })}</tbody></table></div>`;
}
