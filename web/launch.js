// SPDX-License-Identifier: Apache-2.0
//
// A new session: which capsule, what it shall do, and what it may spend. What it may do is shown before it is started.

import { get, launch } from "./link.js";
import { html, useEffect, useRef, useState } from "./parts.js";
import { facts } from "./store.js";
import { line, safe } from "./words.js";

const titleOf = (capsule) => (capsule.name ? `${line(capsule.name, 60)} ${line(capsule.version, 20)}` : line(capsule.folder, 80));

function Scope({ capsule }) {
  const [said, setSaid] = useState(null);
  const show = async () => {
    try {
      const answer = await get(`scope?capsule=${encodeURIComponent(capsule.id)}`);
      setSaid({ isBad: answer.status !== 0, text: answer.output + answer.errors });
    } catch (error) {
      setSaid({ isBad: true, text: error.message });
    }
  };
  return html`<div><button type="button" onClick=${show}>What it may do</button>
    ${said && html`<pre class=${said.isBad ? "note bad" : "text"} tabindex="0">${safe(said.text)}</pre>`}</div>`;
}

function Field({ id, name, hint, ...input }) {
  return html`<p class="field"><label for=${id}>${name}</label><input id=${id} ...${input} /> <span class="dim">${hint}</span></p>`;
}

const empty = { task: "", model: "", tokens: "", seconds: "", goesOn: true };

function Form({ capsules, again }) {
  const [chosen, setChosen] = useState(null);
  const [asked, setAsked] = useState(empty);
  const [state, setState] = useState({ isBusy: false, failure: null });
  const guard = useRef(false);
  const able = capsules.filter((one) => !one.why_not);
  const capsule = able.find((one) => one.id === chosen) || able[0];
  const put = (key) => (event) => setAsked({ ...asked, [key]: event.target.type === "checkbox" ? event.target.checked : event.target.value });
  const start = async (event) => {
    event.preventDefault();
    if (guard.current || !asked.task.trim() || !capsule) return;
    guard.current = true;
    setState({ isBusy: true, failure: null });
    try {
      const answer = await launch({ capsule: capsule.id, seen: capsule.seen, task: asked.task, goes_on: asked.goesOn,
        ...(asked.model.trim() ? { model: asked.model.trim() } : {}), ...(asked.tokens ? { max_session_tokens: Number(asked.tokens) } : {}),
        ...(asked.seconds ? { deadline: Number(asked.seconds) } : {}) });
      location.hash = `#/s/${answer.session}`;
    } catch (error) {
      setState({ isBusy: false, failure: error.message });
      if (error.status === 409 || error.status === 404) again();
    }
    guard.current = false;
  };
  if (!capsule) return html`<p class="note">None of the capsules here can be started.</p>`;
  return html`<form class="launch" onSubmit=${start}>
    <p class="field"><label for="capsule">Capsule</label>
      <select id="capsule" value=${capsule.id} onChange=${(event) => setChosen(event.target.value)}>
        ${able.map((one) => html`<option key=${one.id} value=${one.id}>${titleOf(one)}${one.is_installed ? " (installed)" : ""}</option>`)}
      </select></p>
    <p class="dim">${capsule.is_installed ? "works in" : "from"} <code>${line(capsule.folder, 120)}</code></p>
    <${Scope} key=${capsule.id} capsule=${capsule} />
    <p class="field"><label for="launch-task">Task</label><textarea id="launch-task" rows="4" required value=${asked.task} onInput=${put("task")}></textarea></p>
    <${Field} id="launch-model" name="Model" hint="empty: the manifest's" value=${asked.model} placeholder=${line(capsule.model, 60)} onInput=${put("model")} maxlength="200" />
    <${Field} id="launch-tokens" name="Most tokens" hint="of the whole session; a smaller number of the manifest holds" type="number" min="1" step="1" value=${asked.tokens} onInput=${put("tokens")} />
    <${Field} id="launch-seconds" name="Most seconds" hint="then it is ended" type="number" min="1" max="315360000" step="1" value=${asked.seconds} onInput=${put("seconds")} />
    <p class="field"><input id="launch-on" type="checkbox" checked=${asked.goesOn} onChange=${put("goesOn")} />
      <label for="launch-on">stays for further tasks, until it is stopped</label></p>
    <button type="submit" disabled=${state.isBusy || !asked.task.trim()}>${state.isBusy ? "Starting…" : "Start"}</button>
    <div role="status">${state.failure && html`<pre class="note bad">${safe(state.failure)}</pre>`}</div>
    <p class="dim">It goes on when this page ends. In a terminal: <code>mur run --task</code>, <code>mur chat</code></p>
  </form>`;
}

export function Launch() {
  const [known, setKnown] = useState(null);
  const read = async () => {
    try {
      setKnown(await get("capsules"));
    } catch (error) {
      setKnown({ failure: error.message, capsules: [] });
    }
  };
  useEffect(() => { read(); }, []);
  if (facts.readOnly) return html`<main><h1>New session</h1><p class="note">This page is read-only.</p></main>`;
  return html`<main><h1>New session</h1>
    ${known && known.failure && html`<p class="note bad" role="alert">${safe(known.failure)}</p>`}
    ${known && !known.failure && !known.capsules.length && html`<p class="note">No capsule is known here. Start <code>mur ui</code> in the folder of one or around it, or install one; <code>mur new agent NAME</code> begins one.</p>`}
    ${known && known.capsules.length > 0 && html`<${Form} capsules=${known.capsules} again=${read} />`}
    ${known && known.capsules.filter((one) => one.why_not).map((one) => html`<p class="dim" key=${one.id}>${titleOf(one)} cannot be started: ${line(one.why_not, 300)}</p>`)}
  </main>`;
}
