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
    <strong class=${verdict.verdict === "same" ? "good" : "bad"}>${line(verdict.verdict)}</strong>
    ${verdict.session_id && html` · <a href=${`#/s/${verdict.session_id}`}>the replay ${short(verdict.session_id)}</a>`}
    ${first && html`<pre class="text" dir="auto" tabindex="0">${pretty(first)}</pre>`}
  </div>`;
}

export function Replay({ session }) {
  const { run, said, setSaid, isBusy } = useAct();
  const [verdict, setVerdict] = useState(null);
  if (facts.readOnly) return null;
  const go = async () => {
    setVerdict(null);
    const answer = await run(session.id, "replay", {});
    if (!answer) return;
    try {
      setVerdict(JSON.parse(answer.output));
    } catch {
      setSaid({ isBad: true, text: answer.errors || answer.output || "it said nothing" });
    }
  };
  return html`<div><button onClick=${go} disabled=${isBusy}>${isBusy ? "Replaying…" : "Replay"}</button>
    ${verdict && html`<${Verdict} verdict=${verdict} />`}<${Said} said=${said} /></div>`;
}
