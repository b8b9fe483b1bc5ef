// SPDX-License-Identifier: Apache-2.0
//
// A recorded session run again, and whether it went the same way.

import { Said, useAct } from "./acts.js";
import { html, useState } from "./parts.js";
import { facts } from "./store.js";
import { line, pretty, short } from "./words.js";

function Verdict({ verdict }) {
  const first = verdict.first;
  return html`<div class="note" role="status">
    <strong class=${["same", "forked"].includes(verdict.verdict) ? "good" : "bad"}>${line(verdict.verdict)}</strong>
    ${verdict.session_id && html` · <a href=${`#/s/${verdict.session_id}`}>the replay ${short(verdict.session_id)}</a>`}
    ${first && html`<pre class="text" dir="auto" tabindex="0">${pretty(first)}</pre>`}
  </div>`;
}

export function Replay({ session }) {
  const { run, said, setSaid, isBusy } = useAct();
  const [verdict, setVerdict] = useState(null);
  const [turn, setTurn] = useState("");
  if (facts.readOnly) return null;
  const go = async (name, asked) => {
    setVerdict(null);
    const answer = await run(session.id, name, asked);
    if (!answer) return;
    try {
      setVerdict(JSON.parse(answer.output));
    } catch {
      setSaid({ isBad: true, text: answer.errors || answer.output || "it said nothing" });
    }
  };
  const fork = (event) => {
    event.preventDefault();
    if (turn !== "") go("fork", { turn: Number(turn) });
  };
  return html`<div><div class="strip"><button onClick=${() => go("replay", {})} disabled=${isBusy}>${isBusy ? "Running…" : "Replay"}</button>
      <form onSubmit=${fork}><label>Go on for real from turn <input type="number" min="0" size="4" value=${turn} onInput=${(event) => setTurn(event.target.value)} /></label>
        ${" "}<button type="submit" disabled=${isBusy || turn === ""}>Fork</button></form></div>
    ${verdict && html`<${Verdict} verdict=${verdict} />`}<${Said} said=${said} /></div>`;
}
