// SPDX-License-Identifier: Apache-2.0
//
// The lines of a trace, however many: only those in sight are elements, and only pages near them are fetched.
//
// New lines never move what somebody looks at; at the end the list goes along with them.

import { get, subscribe } from "./link.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./parts.js";
import { describe } from "./steps.js";
import { clock, safe } from "./words.js";

const HEIGHT = 28;
const PAGE = 100;
const BEYOND = 8; // rows kept on each side of what is in sight

class Pages {
  constructor(session, kinds, onChange) {
    this.query = `session/${session}/rows?limit=${PAGE}${kinds ? `&kinds=${kinds.join(",")}` : ""}`;
    this.onChange = onChange;
    this.total = 0;
    this.pages = new Map();
    this.asked = new Set();
    this.failure = null;
    this.isClosed = false;
  }

  take(answer) {
    if (this.isClosed) return;
    this.total = answer.total;
    this.failure = null;
    for (const [i, row] of answer.rows.entries()) {
      const at = answer.from + i, page = Math.floor(at / PAGE);
      if (!this.pages.has(page)) this.pages.set(page, []);
      this.pages.get(page)[at % PAGE] = row;
    }
    // Far pages are fetched again when they come into sight.
    if (this.pages.size > 40) for (const page of [...this.pages.keys()].slice(0, 20)) this.pages.delete(page);
    this.onChange();
  }

  async ask(what) {
    if (this.asked.has(what)) return;
    this.asked.add(what);
    try {
      this.take(await get(`${this.query}&${what}`));
    } catch (error) {
      this.failure = error.message;
      this.onChange();
    }
    this.asked.delete(what);
  }

  // The end, and with it how many there are.
  refresh() {
    return this.ask("tail=1");
  }

  row(at) {
    const page = Math.floor(at / PAGE), row = (this.pages.get(page) || [])[at % PAGE];
    if (!row && at < this.total) this.ask(`from=${page * PAGE}`);
    return row;
  }
}

export function Rows({ session, kinds, selected, onSelect, onTotal }) {
  const [, setTick] = useState(0);
  const [top, setTop] = useState(0);
  const box = useRef(null);
  const pages = useRef(null);
  const isAtEnd = useRef(true);
  const key = `${session} ${kinds ? kinds.join() : ""}`;
  const shownKey = useRef(null);
  if (shownKey.current !== key) {
    if (pages.current) pages.current.isClosed = true;
    pages.current = new Pages(session, kinds, () => setTick((tick) => tick + 1));
    shownKey.current = key;
    isAtEnd.current = true;
  }

  useEffect(() => {
    const mine = pages.current;
    let timer = null;
    mine.refresh();
    const leave = subscribe((event) => {
      const isOurs = (event.kind === "rows" && event.session === session) || event.kind === "gap";
      // A burst of lines is one request.
      if (isOurs && !timer) timer = setTimeout(() => {
        timer = null;
        mine.refresh();
      }, 80);
    });
    return () => {
      leave();
      clearTimeout(timer);
    };
  }, [key]);

  const { total, failure } = pages.current;
  useLayoutEffect(() => {
    if (isAtEnd.current && box.current) box.current.scrollTop = total * HEIGHT;
    if (onTotal) onTotal(total);
  }, [total, key]);

  const height = box.current ? box.current.clientHeight : 600;
  const first = Math.max(0, Math.floor(top / HEIGHT) - BEYOND);
  const last = Math.min(total, Math.ceil((top + height) / HEIGHT) + BEYOND);
  const shown = [];
  for (let at = first; at < last; at++) shown.push([at, pages.current.row(at)]);

  const onScroll = () => {
    const element = box.current;
    isAtEnd.current = element.scrollTop + element.clientHeight >= element.scrollHeight - HEIGHT;
    setTop(element.scrollTop);
  };
  const move = (by) => {
    const at = Math.max(0, Math.min(total - 1, (selected ?? (by > 0 ? first + BEYOND - 1 : total)) + by));
    const element = box.current;
    if (at * HEIGHT < element.scrollTop) element.scrollTop = at * HEIGHT;
    if ((at + 1) * HEIGHT > element.scrollTop + element.clientHeight) element.scrollTop = (at + 1) * HEIGHT - element.clientHeight;
    const row = pages.current.row(at);
    onSelect(at, row ? row.n : null, false);
  };
  const onKeyDown = (event) => {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 15, PageUp: -15, End: total, Home: -total }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) move(step);
    else if (event.key === "Enter" && selected !== null) {
      const row = pages.current.row(selected);
      if (row) onSelect(selected, row.n, true);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return html`<div class="rows" ref=${box} tabindex="0" role="listbox" aria-label=${`Steps of the session, ${total}`} onScroll=${onScroll}
      onKeyDown=${onKeyDown} aria-activedescendant=${selected !== null && selected >= first && selected < last ? `row-${selected}` : undefined}>
    ${failure && html`<p class="note bad" role="option" aria-selected="false">${safe(failure)}</p>`}
    <div class="rows-all" role="presentation" style=${{ height: `${total * HEIGHT}px` }}>
      ${shown.map(([at, row]) => html`<${Row} key=${at} at=${at} row=${row} isSelected=${at === selected} onSelect=${onSelect} />`)}
    </div>
  </div>`;
}

function Row({ at, row, isSelected, onSelect }) {
  const said = row ? describe(row) : { word: "…", kind: "quiet", text: "" };
  return html`<div class=${`row ${said.kind}${isSelected ? " selected" : ""}`} id=${`row-${at}`} role="option" aria-selected=${isSelected ? "true" : "false"}
      style=${{ top: `${at * HEIGHT}px` }} onClick=${() => row && onSelect(at, row.n, true)}>
    <span class="row-at">${clock(said.at)}</span><span class="row-turn">${said.turn ?? ""}</span>
    <span class="row-word">${said.word}</span><span class="row-text" dir="auto">${said.text}</span>
  </div>`;
}
