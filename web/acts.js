// SPDX-License-Identifier: Apache-2.0
//
// What a person does to a session: everything that cannot be undone asks once, and says what became of it.

import { act } from "./link.js";
import { html, useRef, useState } from "./parts.js";
import { facts } from "./store.js";
import { safe } from "./words.js";

// Runs one act at a time: a second press while the first is under way is none.
export function useAct() {
  const [said, setSaid] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const guard = useRef(false);
  const run = async (session, name, asked) => {
    if (guard.current) return null;
    guard.current = true;
    setBusy(true);
    setSaid(null);
    try {
      return await act(session, name, asked);
    } catch (error) {
      setSaid({ isBad: true, text: error.message });
      return null;
    } finally {
      guard.current = false;
      setBusy(false);
    }
  };
  return { run, said, setSaid, isBusy };
}

export function Said({ said }) {
  return html`<div role="status" class="said">${said && html`<pre class=${said.isBad ? "note bad" : "note"}>${safe(said.text)}</pre>`}</div>`;
}

// A button that asks "sure?" in its own place.
export function Careful({ word, question, onSure, isBusy }) {
  const [asks, setAsks] = useState(false);
  if (!asks) return html`<button onClick=${() => setAsks(true)} disabled=${isBusy}>${word}</button>`;
  const go = () => {
    setAsks(false);
    onSure();
  };
  return html`<span class="careful" role="group" aria-label=${question}><span>${question}</span>
    <button class="bad" onClick=${go} disabled=${isBusy}>Yes, ${word.toLowerCase()}</button>
    <button onClick=${() => setAsks(false)}>No</button></span>`;
}

export function NewTask({ session }) {
  const [text, setText] = useState("");
  const { run, said, setSaid, isBusy } = useAct();
  const send = async (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    const context = session.context_id ? { context: session.context_id } : {};
    const answer = await run(session.id, "task", { text, ...context });
    if (!answer) return;
    setText("");
    setSaid({ text: `sent: ${answer.task}` });
  };
  if (facts.readOnly) return null;
  return html`<form class="task" onSubmit=${send}>
    <label for="task-text">New task</label>
    <textarea id="task-text" rows="2" value=${text} onInput=${(event) => setText(event.target.value)}
      onKeyDown=${(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && send(event)}></textarea>
    <button type="submit" disabled=${isBusy || !text.trim()}>Send</button>
    <${Said} said=${said} />
  </form>`;
}

// Cancel one task, stop the session.
export function Ends({ session }) {
  const { run, said, setSaid, isBusy } = useAct();
  if (facts.readOnly) return null;
  const done = (answer) => answer && setSaid({ isBad: answer.status !== 0, text: answer.output + answer.errors });
  return html`<div class="ends">
    ${(session.tasks || []).map((task) => html`<${Careful} key=${task.id} word="Cancel task" question=${`Cancel ${task.id.slice(-8)}?`} isBusy=${isBusy}
      onSure=${async () => done(await run(session.id, "cancel", { task: task.id }))} />`)}
    <${Careful} word="Stop" question=${`Stop ${safe(session.capsule_name)}? Its tasks end.`} isBusy=${isBusy}
      onSure=${async () => done(await run(session.id, "stop", {}))} />
    <${Said} said=${said} />
  </div>`;
}
