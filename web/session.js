// SPDX-License-Identifier: Apache-2.0
//
// One session: what it does now, every step of it, what was refused, what it may do, and whom it works with.

import { get, subscribe } from "./link.js";
import { Ends, NewTask } from "./acts.js";
import { Detail } from "./detail.js";
import { Graph } from "./graph.js";
import { Grants } from "./grants.js";
import { State } from "./list.js";
import { html, useEffect, useRef, useState } from "./parts.js";
import { Refusals } from "./refusals.js";
import { Replay } from "./replay.js";
import { Rows } from "./rows.js";
import { filters } from "./steps.js";
import { allSessions, isRunning, readSession, sessionOf } from "./store.js";
import { count, day, duration, line, safe, short } from "./words.js";

// --- what its model writes ---

// Pieces carry where in the text they belong, so what the first answer brought and what the stream brings never doubles.
function useFlow(session, first) {
  const flow = useRef({ run: -1, text: "", thinking: "", calls: [], length: 0, thinkingLength: 0 });
  const [, setTick] = useState(0);
  const bytes = (text) => new TextEncoder().encode(text).length;
  useEffect(() => {
    if (!first) return;
    if (first.run >= flow.current.run && first.at >= flow.current.length)
      flow.current = { run: first.run, text: first.text, thinking: first.thinking, calls: first.calls, length: first.at, thinkingLength: first.thinking_at };
    setTick((tick) => tick + 1);
  }, [first]);
  useEffect(() => subscribe((event) => {
    if (event.session !== session || !["text", "thinking", "calling"].includes(event.kind)) return;
    if (event.run !== flow.current.run) flow.current = { run: event.run, text: "", thinking: "", calls: [], length: 0, thinkingLength: 0 };
    const now = flow.current;
    if (event.kind === "calling") now.calls = [...now.calls, event.tool];
    else {
      const at = event.kind === "text" ? "length" : "thinkingLength";
      if (event.at < now[at]) return;
      now[event.kind] += event.text;
      now[at] = event.at + bytes(event.text);
    }
    requestAnimationFrame(() => setTick((tick) => tick + 1));
  }), [session]);
  return flow.current;
}

function Flow({ session, live }) {
  const flow = useFlow(session, live);
  const box = useRef(null);
  useEffect(() => {
    const element = box.current;
    if (element && element.scrollTop + element.clientHeight > element.scrollHeight - 80) element.scrollTop = element.scrollHeight;
  });
  if (!flow.text && !flow.thinking && !flow.calls.length) return null;
  return html`<section class="flow" ref=${box} tabindex="0" aria-label="What its model writes">
    ${flow.thinking && html`<pre class="thinking" dir="auto">${safe(flow.thinking)}</pre>`}
    ${flow.text && html`<pre class="flow-text" dir="auto">${safe(flow.text)}</pre>`}
    ${flow.calls.length > 0 && html`<p class="dim">calls ${flow.calls.map((name) => line(name, 60)).join(", ")}</p>`}
  </section>`;
}

// --- what it has used ---

function Chart({ points }) {
  if (!points || points.length < 2) return null;
  const width = 240, height = 36, most = Math.max(1, ...points.map(([, given, made]) => given + made));
  const bar = width / points.length;
  return html`<svg width=${width} height=${height} role="img" aria-label=${`Tokens of each of the last ${points.length} turns, at most ${count(most)}`}>
    ${points.slice(-240).map(([turn, given, made], i) => {
      const tall = Math.max(1, ((given + made) / most) * height);
      return html`<rect key=${turn} x=${i * bar} y=${height - tall} width=${Math.max(1, bar - 1)} height=${tall} fill="currentColor" opacity="0.55" />`;
    })}</svg>`;
}

function Spend({ session, summary }) {
  const { context_tokens: full, context_budget: budget } = session;
  return html`<div class="strip">
    <span>${count(session.tokens_in)} tokens in, ${count(session.tokens_out)} out</span>
    ${full > 0 && html`<span>context ${count(full)}${budget > 0 ? ` of ${count(budget)} ` : ""}
      ${budget > 0 && html`<span class="meter" role="img" aria-label=${`${Math.round((full * 100) / budget)} %`}><span style=${{ width: `${Math.min(100, (full * 100) / budget)}%` }}></span></span>`}</span>`}
    ${session.max_session_tokens && html`<span>ceiling ${count(session.max_session_tokens)}</span>`}
    ${summary && html`<span>${count(summary.turns)} turns, ${count(summary.calls)} calls${summary.refused ? html`, <span class="never">${count(summary.refused)} refused</span>` : ""}</span>`}
    ${summary && summary.provider_in > 0 && html`<span class="dim">the provider counted ${count(summary.provider_in)} in, ${count(summary.provider_out)} out${summary.cached ? `, ${count(summary.cached)} from its cache` : ""}</span>`}
    <${Chart} points=${summary && summary.points} />
  </div>`;
}

// The whole trace is read for it once, so it comes after what is seen first, and not more often than a person reads.
function useSummary(session) {
  const [summary, setSummary] = useState(null);
  useEffect(() => {
    let isOurs = true, timer = null;
    const read = () => get(`session/${session}/summary`).then((found) => isOurs && setSummary(found), () => null);
    const first = setTimeout(read, 60);
    const leave = subscribe((event) => {
      const isNews = (event.kind === "rows" && event.session === session) || event.kind === "gap";
      if (isNews && !timer) timer = setTimeout(() => {
        timer = null;
        read();
      }, 1000);
    });
    return () => {
      isOurs = false;
      clearTimeout(first);
      clearTimeout(timer);
      leave();
    };
  }, [session]);
  return summary;
}

// --- its views ---

const tabs = ["Steps", "Refused", "Grants", "Lineage"];

function Steps({ session, live, line: asked }) {
  const [filter, setFilter] = useState(0);
  const [selected, setSelected] = useState(null);
  const [opened, setOpened] = useState(asked ?? null);
  const [total, setTotal] = useState(null);
  useEffect(() => asked !== null && setOpened(asked), [asked]);
  const onSelect = (at, n, opens) => {
    setSelected(at);
    if (opens || opened !== null) setOpened(n);
  };
  const close = () => {
    setOpened(null);
    const list = document.querySelector(".rows");
    if (list) list.focus();
  };
  return html`<div>
    <div class="filters" role="group" aria-label="Which steps">${filters.map(({ name }, i) => html`<button key=${name} aria-pressed=${i === filter ? "true" : "false"}
      onClick=${() => { setFilter(i); setSelected(null); }}>${name}</button>`)}<span class="dim">${total === null ? "" : count(total)}</span></div>
    <div class="steps"><${Rows} session=${session.id} kinds=${filters[filter].kinds} selected=${selected} onSelect=${onSelect} onTotal=${setTotal} />
      ${opened !== null && html`<${Detail} session=${session.id} n=${opened} onClose=${close} />`}</div>
    <${Flow} session=${session.id} live=${live} />
  </div>`;
}

function CompareWith({ session }) {
  const others = allSessions().filter((other) => other.id !== session.id && other.capsule_name === session.capsule_name);
  if (!others.length) return null;
  return html`<label>Compare with <select value="" onChange=${(event) => event.target.value && (location.hash = `#/compare/${event.target.value}/${session.id}`)}>
    <option value="">…</option>${others.slice(0, 50).map((other) => html`<option key=${other.id} value=${other.id}>${day(other.started_ms)} ${short(other.id)}</option>`)}</select></label>`;
}

function Head({ session }) {
  const replays = allSessions().filter((other) => other.replay_of && other.replay_of.session_id === session.id);
  return html`<div>
    <h1>${line(session.capsule_name || "?", 60)} <span class="dim">${line(session.capsule_version, 20)} · ${line(session.model, 60)}</span></h1>
    <p class="dim"><${State} session=${session} /> since ${day(session.started_ms)}${session.duration_ms !== undefined ? `, took ${duration(session.duration_ms)}` : ""}${" · "}<span class="mono">${session.id}</span>
      ${session.spawned_by && html` · started by <a href=${`#/s/${session.spawned_by}`}>${short(session.spawned_by)}</a>`}
      ${session.resumed_from && html` · goes on with <a href=${`#/s/${session.resumed_from}`}>${short(session.resumed_from)}</a>`}
      ${session.replay_of && html` · replay of <a href=${`#/s/${session.replay_of.session_id}`}>${short(session.replay_of.session_id)}</a>`}
      ${replays.length > 0 && html` · replayed: ${replays.slice(0, 5).map((other) => html`<a key=${other.id} href=${`#/s/${other.id}`}>${short(other.id)}</a> `)}`}</p>
  </div>`;
}

export function Session({ id, tab, line: asked }) {
  const [answer, setAnswer] = useState(null);
  const [failure, setFailure] = useState(null);
  const summary = useSummary(id);
  useEffect(() => {
    let isOurs = true;
    const read = () => readSession(id).then((found) => isOurs && setAnswer(found), (error) => isOurs && setFailure(error.message));
    setFailure(null);
    read();
    // After a gap some of what its model wrote is missing here.
    const leave = subscribe((event) => event.kind === "gap" && read());
    return () => {
      isOurs = false;
      leave();
    };
  }, [id]);
  const session = sessionOf(id);
  if (failure) return html`<main><h1>No such session</h1><p class="note bad">${safe(failure)}</p><p><a href="#/">All sessions</a></p></main>`;
  if (!session) return html`<main><p class="note">…</p></main>`;
  const shown = tabs.includes(tab) ? tab : "Steps";
  return html`<main>
    <${Head} session=${session} />
    <${Spend} session=${session} summary=${summary} />
    ${isRunning(session) && session.state !== "no answer" && html`<${NewTask} session=${session} /><${Ends} session=${session} />`}
    <div class="tabs" role="tablist" aria-label="Views of the session">${tabs.map((name) => html`<button key=${name} role="tab" id=${`tab-${name}`} aria-selected=${name === shown ? "true" : "false"}
      onClick=${() => (location.hash = `#/s/${id}/${name}`)}>${name}</button>`)}</div>
    <div role="tabpanel" aria-labelledby=${`tab-${shown}`}>
      ${shown === "Steps" && html`<${Steps} key=${id} session=${session} live=${answer && answer.live} line=${asked} />`}
      ${shown === "Refused" && html`<${Refusals} session=${id} />`}
      ${shown === "Grants" && html`<${Grants} start=${answer && answer.start} summary=${summary} session=${id} />`}
      ${shown === "Lineage" && html`<${Graph} session=${session} />`}
    </div>
    ${!isRunning(session) && html`<div class="strip"><${Replay} session=${session} /><${CompareWith} session=${session} /></div>`}
    <p class="dim">In a terminal: <code>${isRunning(session) ? `mur watch ${id}` : `mur trace show ${id} --workdir ${line(session.work_root)}`}</code></p>
  </main>`;
}
