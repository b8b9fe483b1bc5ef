// SPDX-License-Identifier: Apache-2.0
//
// All sessions: what asks first, what runs, then what is on record.

import { html, useLayoutEffect, useState } from "./parts.js";
import { allSessions, facts, isRunning, pace, readOlder } from "./store.js";
import { count, day, duration, line, short } from "./words.js";

export function State({ session }) {
  const word = session.state === "ended" ? session.exit_status || "ended" : session.state;
  const kind = { asks: "asks", works: "good", waits: "quiet", "no answer": "bad", lost: "bad" }[session.state] ||
    (word === "ok" ? "quiet" : "bad");
  return html`<span class=${`state ${kind}`}>${line(word, 30)}</span>`;
}

function spent(session) {
  if (typeof session.tokens_in !== "number") return "";
  return `${count(session.tokens_in)} / ${count(session.tokens_out)}`;
}

function Line({ session, isSelected }) {
  const speed = isRunning(session) ? pace(session.id) : null;
  return html`<tr class=${isSelected ? "selected" : ""} aria-selected=${isSelected ? "true" : undefined}>
    <td><${State} session=${session} /></td>
    <td><a href=${`#/s/${session.id}`}>${line(session.capsule_name || "?", 60)}</a><span class="dim"> ${line(session.capsule_version, 20)}</span>
      ${session.spawned_by && html`<span class="dim"> ← ${short(session.spawned_by)}</span>`}
      ${session.formation_member && html`<span class="dim"> member ${line(session.formation_member, 30)}</span>`}
      ${session.replay_of && html`<span class="dim"> replay of ${short(session.replay_of.session_id)}</span>`}</td>
    <td class="mono">${short(session.id)}</td>
    <td>${day(session.started_ms)}</td>
    <td class="number">${spent(session)}</td>
    <td class="number">${speed !== null ? count(speed) : session.duration_ms !== undefined ? duration(session.duration_ms) : ""}</td>
    <td class="dim wide">${line(session.work_root, 80)}</td>
  </tr>`;
}

export function List() {
  const sessions = allSessions();
  const [selected, setSelected] = useState(null);
  // Before the next key: what is on the screen is what a key means.
  useLayoutEffect(() => {
    const onKey = (event) => {
      if (event.target !== document.body || event.ctrlKey || event.metaKey || event.altKey) return;
      const at = sessions.findIndex((session) => session.id === selected);
      const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
      if (step && sessions.length) {
        const next = sessions[Math.max(0, Math.min(sessions.length - 1, at < 0 ? 0 : at + step))];
        setSelected(next.id);
        event.preventDefault();
      } else if (event.key === "Enter" && selected) location.hash = `#/s/${selected}`;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  return html`<main>
    <h1>Sessions <span class="dim">${facts.isRead ? count(facts.total) : ""}</span></h1>
    ${facts.failure && html`<p class="note bad" role="alert">${facts.failure}</p>`}
    ${facts.unreadable.map((path) => html`<p class="note bad" key=${path}>cannot be read: ${line(path)}</p>`)}
    ${facts.isRead && !sessions.length && html`<p class="note">No session yet. In a terminal: <code>mur chat</code>, or <code>mur run</code> in the folder of a capsule.</p>`}
    ${sessions.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Table of sessions"><table class="list">
      <thead><tr><th scope="col">State</th><th scope="col">Capsule</th><th scope="col">Session</th><th scope="col">Started</th>
        <th scope="col" class="number">Tokens in / out</th><th scope="col" class="number">A minute, took</th><th scope="col" class="wide">Work folder</th></tr></thead>
      <tbody>${sessions.map((session) => html`<${Line} key=${session.id} session=${session} isSelected=${session.id === selected} />`)}</tbody>
    </table></div>`}
    ${facts.older > 0 && html`<button onClick=${readOlder}>${count(facts.older)} older</button>`}
    <p class="dim">In a terminal: <code>mur top</code>, <code>mur trace list</code></p>
  </main>`;
}
