// SPDX-License-Identifier: Apache-2.0
//
// One line of a trace, opened: everything it holds, and the bodies it names.

import { getBytes } from "./link.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./parts.js";
import { clock, duration, pretty, safe } from "./words.js";

const bodies = { text_sha: "the task", system_sha: "system prompt", tools_sha: "tools", response_sha: "the answer", output_sha: "the output" };

function Body({ session, sha, name }) {
  const [shown, setShown] = useState(null);
  const open = async () => {
    try {
      const { bytes, isWhole } = await getBytes(`session/${session}/body/${sha}`);
      setShown({ text: new TextDecoder().decode(bytes), isWhole });
    } catch (error) {
      setShown({ text: error.message, isWhole: true, isBad: true });
    }
  };
  // A download needs the token, which no plain link carries.
  const download = async () => {
    const { bytes } = await getBytes(`session/${session}/body/${sha}?whole=1`);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
    link.download = `${sha.slice(0, 12)}.bin`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  return html`<div class="body">
    <button onClick=${open}>${safe(name)}</button> <button onClick=${download}>Download ${sha.slice(0, 8)}</button>
    ${shown && html`<pre class=${shown.isBad ? "note bad" : "text"} dir="auto" tabindex="0">${pretty(asJson(shown.text))}</pre>`}
    ${shown && !shown.isWhole && html`<p class="note">The first 256 KiB. The whole is downloaded.</p>`}
  </div>`;
}

function asJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// A line that is torn, malformed or too long to be sent whole is shown as the text it is.
function eventOf(text) {
  const value = asJson(text);
  return value && typeof value === "object" ? value : { event_type: "no line of a trace", output: text };
}

function Values({ event }) {
  const left = Object.entries(event).filter(([key]) => !["event_type", "input", "output", "error"].includes(key) && !(key in bodies));
  return html`<dl>${left.map(([key, value]) => html`<dt>${safe(key)}</dt><dd dir="auto">${pretty(value)}</dd>`)}</dl>`;
}

export function Detail({ session, n, onClose }) {
  const [event, setEvent] = useState(null);
  const [failure, setFailure] = useState(null);
  const panel = useRef(null);
  useEffect(() => {
    let isOurs = true;
    setEvent(null);
    setFailure(null);
    getBytes(`session/${session}/row/${n}`).then(({ bytes }) => isOurs && setEvent(eventOf(new TextDecoder().decode(bytes))), (error) => isOurs && setFailure(error.message));
    return () => (isOurs = false);
  }, [session, n]);
  // With the panel on the screen: a key pressed then is meant for it.
  useLayoutEffect(() => panel.current.focus(), [session, n]);
  const onKeyDown = (pressed) => {
    if (pressed.key !== "Escape") return;
    pressed.stopPropagation();
    onClose();
  };
  return html`<aside class="detail" ref=${panel} tabindex="-1" aria-label=${`Line ${n + 1}`} onKeyDown=${onKeyDown}>
    <button class="close" onClick=${onClose} aria-label="Close">×</button>
    ${failure && html`<p class="note bad">${safe(failure)}</p>`}
    ${event && html`
      <h2>${safe(event.event_type)}</h2>
      <p class="dim">line ${n + 1}, ${clock(event.timestamp)}${event.duration_ms !== undefined ? `, took ${duration(event.duration_ms)}` : ""}</p>
      ${event.error && html`<h3>Error</h3><pre class="text bad" dir="auto" tabindex="0">${pretty(event.error)}</pre>`}
      ${event.input !== undefined && html`<h3>Input</h3><pre class="text" dir="auto" tabindex="0">${pretty(event.input)}</pre>`}
      ${event.output !== undefined && html`<h3>Output</h3><pre class="text" dir="auto" tabindex="0">${pretty(event.output)}</pre>`}
      ${Object.entries(bodies).filter(([key]) => event[key]).map(([key, name]) => html`<${Body} key=${key} session=${session} sha=${event[key]} name=${name} />`)}
      ${(event.message_shas || []).map((sha, i) => html`<${Body} key=${i} session=${session} sha=${sha} name=${`message ${i}`} />`)}
      <h3>All of it</h3><${Values} event=${event} />`}
  </aside>`;
}
