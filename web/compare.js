// SPDX-License-Identifier: Apache-2.0
//
// Two runs side by side, aligned by what they did: a call that one made and the other did not stands alone.

import { get } from "./link.js";
import { html, useEffect, useState } from "./parts.js";
import { allSessions, sessionOf } from "./store.js";
import { count, day, duration, line, pretty, safe, short } from "./words.js";

function Choose({ label, value, onChange }) {
  return html`<label>${label} <select value=${value || ""} onChange=${(event) => onChange(event.target.value)}>
    <option value="">…</option>${allSessions().slice(0, 200).map((session) => html`<option key=${session.id} value=${session.id}>${line(session.capsule_name, 30)} ${day(session.started_ms)} ${short(session.id)}</option>`)}</select></label>`;
}

function Side({ step, kind }) {
  if (!step) return html`<div class="gone">—</div>`;
  return html`<div class=${kind === "same" ? "" : "changed"}><strong>${safe(step.what)}</strong> <span dir="auto">${line(step.text, 300)}</span>
    ${step.status && step.status !== "ok" && html` <span class="bad">${safe(step.status)}</span>`} <span class="dim">${duration(step.duration_ms)}</span></div>`;
}

function Pairs({ answer }) {
  const [showsSame, setShowsSame] = useState(true);
  const pairs = answer.steps.filter((pair) => showsSame || pair.kind !== "same");
  return html`<div>
    <label><input type="checkbox" checked=${showsSame} onChange=${(event) => setShowsSame(event.target.checked)} /> also what is the same</label>
    <div class="pair" tabindex="0" role="region" aria-label="Steps of both">${pairs.slice(0, 1000).map((pair, i) => html`<${Side} key=${`a${i}`} step=${pair.a} kind=${pair.kind} /><${Side} key=${`b${i}`} step=${pair.b} kind=${pair.kind} />`)}</div>
    ${pairs.length > 1000 && html`<p class="note">The first 1,000 of ${count(pairs.length)}.</p>`}
  </div>`;
}

export function Compare({ a, b }) {
  const [answer, setAnswer] = useState(null);
  const [failure, setFailure] = useState(null);
  useEffect(() => {
    let isOurs = true;
    setAnswer(null);
    setFailure(null);
    if (a && b) get(`diff?a=${a}&b=${b}`).then((found) => isOurs && setAnswer(found), (error) => isOurs && setFailure(error.message));
    return () => (isOurs = false);
  }, [a, b]);
  const go = (first, second) => (location.hash = `#/compare/${first || ""}/${second || ""}`);
  const name = (id) => html`<a href=${`#/s/${id}`}>${line((sessionOf(id) || {}).capsule_name || "session", 40)} ${short(id)}</a>`;
  return html`<main>
    <h1>Compare</h1>
    <div class="strip"><${Choose} label="Before" value=${a} onChange=${(id) => go(id, b)} /><${Choose} label="After" value=${b} onChange=${(id) => go(a, id)} /></div>
    ${failure && html`<p class="note bad" role="alert">${safe(failure)}</p>`}
    ${answer && html`<div>
      <p role="status">${name(a)} and ${name(b)}: ${count(answer.same)} steps the same, ${count(answer.changed)} changed, ${count(answer.only_a)} only before, ${count(answer.only_b)} only after</p>
      ${answer.facts.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="What differs around them"><table class="list"><thead><tr><th scope="col">What</th><th scope="col">Before</th><th scope="col">After</th></tr></thead><tbody>
        ${answer.facts.map((fact) => html`<tr key=${fact.name}><th scope="row">${safe(fact.name)}</th><td>${pretty(fact.a)}</td><td>${pretty(fact.b)}</td></tr>`)}</tbody></table></div>`}
      <${Pairs} answer=${answer} /></div>`}
    ${a && b && html`<p class="dim">In a terminal: <code>mur trace diff ${a} ${b} --steps</code></p>`}
  </main>`;
}
