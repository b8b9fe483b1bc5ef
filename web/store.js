// SPDX-License-Identifier: Apache-2.0
//
// What the page knows of all sessions: one list, whichever view shows it.

import { get, subscribe } from "./link.js";

const sessions = new Map();
const watchers = new Set();
const samples = new Map(); // tokens of the last minute, by session
export const facts = { total: 0, older: 0, readOnly: false, unreadable: [], isRead: false, failure: null };

export function watch(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

let isTold = false;
function changed() {
  // Events come in bursts; a frame shows them all.
  if (isTold) return;
  isTold = true;
  const tell = () => {
    isTold = false;
    for (const watcher of watchers) watcher();
  };
  if (document.hidden) setTimeout(tell, 200);
  else requestAnimationFrame(tell);
}

function put(session) {
  sessions.set(session.id, session);
  if (typeof session.tokens_in !== "number" || !isRunning(session)) return;
  const kept = (samples.get(session.id) || []).filter((sample) => Date.now() - sample.at < 60000);
  kept.push({ at: Date.now(), tokens: session.tokens_in + session.tokens_out });
  samples.set(session.id, kept);
}

export function isRunning(session) {
  return !["ended", "lost"].includes(session.state);
}

// Tokens a minute, as far as this page has seen; null: not seen long enough.
export function pace(id) {
  const kept = samples.get(id) || [];
  if (kept.length < 2) return null;
  const first = kept[0], last = kept[kept.length - 1];
  return last.at - first.at < 2000 ? null : Math.round(((last.tokens - first.tokens) * 60000) / (last.at - first.at));
}

const order = { asks: 0, works: 1, waits: 2, "no answer": 3 };

// Those that ask, those that work, those that wait; then the newest.
export function allSessions() {
  const rank = (session) => (session.state in order ? order[session.state] : 4);
  return [...sessions.values()].sort((a, b) => rank(a) - rank(b) || (a.id < b.id ? 1 : -1));
}

export function sessionOf(id) {
  return sessions.get(id);
}

// Every open question once: one that a child asks comes to the session that delegated, too, and the one at the top answers it.
export function openQuestions() {
  const byId = new Map();
  for (const session of allSessions())
    for (const task of session.tasks || []) {
      if (task.state !== "INPUT_REQUIRED") continue;
      const key = task.question ? task.question.question_id : task.id;
      const known = byId.get(key);
      if (!known || known.session.spawned_by) byId.set(key, { session, task, key });
    }
  return [...byId.values()];
}

export async function readList(before) {
  try {
    const answer = await get(`sessions?limit=200${before ? `&before=${before}` : ""}`);
    if (!before) {
      const fresh = new Set(answer.sessions.map((session) => session.id));
      for (const id of [...sessions.keys()]) if (!fresh.has(id) && isRunning(sessions.get(id))) sessions.delete(id);
      facts.total = answer.total;
    }
    if (!before || facts.older > answer.older) facts.older = answer.older;
    facts.unreadable = answer.unreadable;
    facts.readOnly = answer.read_only;
    facts.failure = null;
    answer.sessions.forEach(put);
  } catch (error) {
    facts.failure = error.message;
  }
  facts.isRead = true;
  changed();
}

export function readOlder() {
  const ids = [...sessions.keys()].filter((id) => !isRunning(sessions.get(id))).sort();
  return readList(ids[0]);
}

export async function readSession(id) {
  const answer = await get(`session/${id}`);
  if (answer.session) put(answer.session);
  changed();
  return answer;
}

subscribe((event) => {
  if (event.kind === "session") {
    if (!sessions.has(event.session.id)) facts.total++;
    put(event.session);
  } else if (event.kind === "removed") sessions.delete(event.session);
  else if (event.kind === "gap" || (event.kind === "link" && event.state === "live")) readList();
  else if (event.kind !== "link") return;
  changed();
});
