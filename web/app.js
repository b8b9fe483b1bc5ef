// SPDX-License-Identifier: Apache-2.0
//
// The page: which view an address names, and what stands above every view.

import { Asks } from "./asks.js";
import { Compare } from "./compare.js";
import { Launch } from "./launch.js";
import { connect, findToken, forgetToken, linkState, subscribe } from "./link.js";
import { List } from "./list.js";
import { html, render, useEffect, useLayoutEffect, useRef, useState } from "./parts.js";
import { Search } from "./search.js";
import { Session } from "./session.js";
import { facts, openQuestions, readList, watch } from "./store.js";

function View({ words }) {
  const [view, ...rest] = words;
  if (view === "s") return html`<${Session} key=${rest[0]} id=${rest[0]} tab=${rest[1]} line=${rest[2] ? Number(rest[2]) : null} />`;
  if (view === "search") return html`<${Search} text=${rest[0]} />`;
  if (view === "new") return html`<${Launch} />`;
  if (view === "compare") return html`<${Compare} a=${rest[0]} b=${rest[1]} />`;
  return html`<${List} />`;
}

const keys = [["j, k, arrows", "go through a list"], ["Enter", "open what is chosen"], ["Esc", "close it, or go back to all sessions"],
  ["/", "search"], ["g", "all sessions"], ["?", "these keys"]];

function Help({ onClose }) {
  const box = useRef(null);
  useLayoutEffect(() => box.current.showModal(), []);
  return html`<dialog ref=${box} aria-label="Keys" onClose=${onClose}><h2>Keys</h2>
    <dl>${keys.map(([key, what]) => html`<dt key=${key}><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
    <form method="dialog"><button>Close</button></form></dialog>`;
}

function Locked() {
  return html`<main><h1>This page needs its key</h1>
    <p>Open the address that <code>mur ui</code> printed, with all that stands behind <code>#</code>. A tab beside this one that has the key gives it on by itself.</p></main>`;
}

const wordsOf = () => location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map((word) => {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
});

function useKeys(setHelp) {
  useLayoutEffect(() => {
    const onKey = (event) => {
      const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "?") setHelp(true);
      else if (event.key === "/") location.hash = "#/search";
      else if (event.key === "g") location.hash = "#/";
      else if (event.key === "Escape" && !document.querySelector("dialog[open]") && location.hash.length > 2) location.hash = "#/";
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

function App({ hasToken }) {
  const [words, setWords] = useState(wordsOf());
  const [isLocked, setLocked] = useState(!hasToken);
  const [helps, setHelp] = useState(false);
  const [, setTick] = useState(0);
  useKeys(setHelp);
  useEffect(() => {
    const onHash = () => setWords(wordsOf());
    addEventListener("hashchange", onHash);
    const leaves = [
      watch(() => setTick((tick) => tick + 1)),
      subscribe((event) => {
        if (event.kind === "locked") {
          forgetToken();
          setLocked(true);
        }
      }),
    ];
    return () => {
      removeEventListener("hashchange", onHash);
      leaves.forEach((leave) => leave());
    };
  }, []);
  const asking = openQuestions().length;
  document.title = `${asking ? `(${asking}) ` : ""}murmur`;
  if (isLocked) return html`<${Locked} />`;
  const state = linkState();
  return html`<div>
    <a class="skip" href="#/" onClick=${(event) => { event.preventDefault(); const main = document.querySelector("main"); main.tabIndex = -1; main.focus(); }}>to the content</a>
    <header class="top"><span class="brand">murmur</span>
      <nav aria-label="Views"><a href="#/">Sessions</a><a href="#/search">Search</a><a href="#/compare">Compare</a>${!facts.readOnly && html`<a href="#/new">New</a>`}</nav>
      ${facts.readOnly && html`<span class="dim">read-only</span>`}
      <span role="status" class=${`link-state ${state === "live" ? "good" : state === "lost" ? "bad" : "dim"}`}>${state}</span>
      <button onClick=${() => setHelp(true)} aria-label="Keys">?</button></header>
    <${Asks} />
    <${View} words=${words} />
    ${helps && html`<${Help} onClose=${() => setHelp(false)} />`}
  </div>`;
}

const hasToken = await findToken();
render(html`<${App} hasToken=${hasToken} />`, document.getElementById("app"));
if (hasToken) {
  connect();
  readList();
}
