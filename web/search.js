// SPDX-License-Identifier: Apache-2.0
//
// A text looked for in every line and every kept body of every session.

import { getLines } from "./link.js";
import { html, useEffect, useRef, useState } from "./parts.js";
import { sessionOf } from "./store.js";
import { count, line, short } from "./words.js";

export function Search({ text: asked }) {
  const [text, setText] = useState(asked || "");
  const [hits, setHits] = useState([]);
  const [progress, setProgress] = useState(null);
  const abort = useRef(null);
  const stop = () => abort.current && abort.current.abort();
  const look = async (wanted) => {
    stop();
    if (!wanted.trim()) return;
    const mine = new AbortController();
    abort.current = mine;
    const found = [];
    setHits([]);
    setProgress({ done: 0 });
    try {
      await getLines(`search?q=${encodeURIComponent(wanted)}`, (said) => {
        if (said.session) found.push(said);
        else setProgress(said);
        if (found.length < 50 || found.length % 25 === 0 || said.end) setHits([...found]);
      }, mine.signal);
    } catch (error) {
      setProgress({ failure: error.name === "AbortError" ? "stopped" : error.message });
    }
    setHits([...found]);
  };
  useEffect(() => {
    if (asked) look(asked);
    return stop;
  }, [asked]);
  const isLooking = progress && !progress.end && !progress.failure;
  const onSubmit = (event) => {
    event.preventDefault();
    if (text === asked) look(text);
    else location.hash = `#/search/${encodeURIComponent(text)}`;
  };
  return html`<main>
    <h1>Search</h1>
    <form onSubmit=${onSubmit} role="search"><label class="hidden" for="search-text">Search in all sessions</label>
      <input id="search-text" type="search" size="50" value=${text} onInput=${(event) => setText(event.target.value)} placeholder="any text, in any script" />
      <button type="submit">Search</button> ${isLooking && html`<button type="button" onClick=${stop}>Stop</button>`}</form>
    <p role="status" class="dim">${progress && (progress.failure || `${count(hits.length)} found, ${count(progress.done || 0)} of ${count(progress.total || 0)} sessions looked through`)}</p>
    <ul class="hits">${hits.map((hit, i) => html`<li key=${i}><a href=${`#/s/${hit.session}/Steps${hit.n !== undefined ? `/${hit.n}` : ""}`}>
      ${line((sessionOf(hit.session) || {}).capsule_name || "session", 40)} ${short(hit.session)}</a>
      <span class="dim"> ${hit.n !== undefined ? `line ${hit.n + 1}` : `body ${hit.sha.slice(0, 8)}`}</span> <span dir="auto">${line(hit.text)}</span></li>`)}</ul>
  </main>`;
}
