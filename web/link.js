// SPDX-License-Identifier: Apache-2.0
//
// The way to the server: the token, requests, and one stream of events for all tabs.
//
// A browser holds six connections to an address, and a stream takes one for good: the seventh tab would hang. So one tab, chosen
// by a lock, holds the stream and hands every event to the others; when it closes, the lock goes to another, which goes on after
// the last event it saw.

const channel = new BroadcastChannel("murmur");
const listeners = new Set();
let token = null;
let lastId = null;
let state = "connecting";

export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(event) {
  for (const listener of listeners) listener(event);
}

function setState(now, isOurs) {
  if (isOurs) channel.postMessage({ state: now });
  if (now === state) return;
  state = now;
  tell({ kind: "link", state });
}

export function linkState() {
  return state;
}

// --- the token ---

// In the address it would be in the history, in bookmarks, and in whatever somebody copies.
function takeFromAddress() {
  const match = /^#([A-Za-z0-9_-]{32,})$/.exec(location.hash);
  if (!match) return null;
  history.replaceState(null, "", "/");
  return match[1];
}

function askSiblings() {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), 600);
    channel.addEventListener("message", (message) => {
      if (message.data.token) {
        clearTimeout(timer);
        resolve(message.data.token);
      }
    });
    channel.postMessage({ wantsToken: true });
  });
}

export async function findToken() {
  token = takeFromAddress() || sessionStorage.getItem("murmur-token") || (await askSiblings());
  if (token) sessionStorage.setItem("murmur-token", token);
  return token !== null;
}

export function forgetToken() {
  sessionStorage.removeItem("murmur-token");
  token = null;
}

// --- requests ---

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

function heads(more) {
  return { authorization: `Bearer ${token}`, ...more };
}

async function checked(response) {
  if (response.ok) return response;
  let text = `HTTP ${response.status}`;
  try {
    text = (await response.json()).error || text;
  } catch {
    // Not from our server, or cut off: the status is all there is.
  }
  if (response.status === 401) tell({ kind: "locked" });
  throw new Refused(response.status, text);
}

export async function get(path, options = {}) {
  return (await checked(await fetch(`/api/${path}`, { headers: heads(), ...options }))).json();
}

export async function getBytes(path) {
  const response = await checked(await fetch(`/api/${path}`, { headers: heads() }));
  return { isWhole: response.status === 200, bytes: await response.arrayBuffer() };
}

// Each act has a word of its own, so that a second press of the same button is the same act.
async function post(path, asked) {
  const response = await fetch(`/api/${path}`, {
    method: "POST",
    headers: heads({ "content-type": "application/json" }),
    body: JSON.stringify({ request_id: crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2) + Date.now(), ...asked }),
  });
  return (await checked(response)).json();
}

export function act(session, name, asked) {
  return post(`session/${session}/${name}`, asked);
}

export function launch(asked) {
  return post("run", asked);
}

// Lines of JSON as they come; onLine may be called until the signal is aborted.
export async function getLines(path, onLine, signal) {
  const response = await checked(await fetch(`/api/${path}`, { headers: heads(), signal }));
  await eachLine(response.body, (text) => onLine(JSON.parse(text)));
}

async function eachLine(body, onLine) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let kept = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (kept + value).split("\n");
    kept = lines.pop();
    for (const text of lines) if (text) onLine(text);
  }
}

// --- the stream ---

const SILENCE_MS = 40000; // the server says something every 15 seconds

function takeLine(text, isOurs) {
  if (text.startsWith("id: ")) lastId = text.slice(4);
  if (!text.startsWith("data: ")) return;
  const event = JSON.parse(text.slice(6));
  if (isOurs) channel.postMessage({ event, id: lastId });
  tell(event);
}

async function readStream() {
  const abort = new AbortController();
  let timer = setTimeout(() => abort.abort(), SILENCE_MS);
  const response = await checked(await fetch("/api/stream", {
    headers: heads(lastId ? { "last-event-id": lastId } : {}),
    signal: abort.signal,
  }));
  setState("live", true);
  await eachLine(response.body, (text) => {
    clearTimeout(timer);
    timer = setTimeout(() => abort.abort(), SILENCE_MS);
    takeLine(text, true);
  });
  clearTimeout(timer);
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function holdStream() {
  for (let wait = 250; token; wait = Math.min(wait * 2, 4000)) {
    try {
      const began = Date.now();
      await readStream();
      if (Date.now() - began > 5000) wait = 250;
    } catch (error) {
      if (error.status === 401) return;
    }
    setState("lost", true);
    await pause(wait);
  }
}

channel.addEventListener("message", ({ data }) => {
  if (data.wantsToken && token) channel.postMessage({ token });
  if (data.state) setState(data.state, false);
  if (data.wantsState && state === "live") channel.postMessage({ state });
  if (data.event) {
    lastId = data.id;
    tell(data.event);
  }
});

export function connect() {
  channel.postMessage({ wantsState: true });
  // Where the address is no secure one there are no locks: a stream of its own for each tab.
  if (navigator.locks) navigator.locks.request("murmur-stream", holdStream);
  else holdStream();
}
