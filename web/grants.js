// SPDX-License-Identifier: Apache-2.0
//
// What the session may do, and whether it ever did: a grant that is never used can go.

import { html } from "./parts.js";
import { count, safe } from "./words.js";

const nameOf = (entry) => (typeof entry === "string" ? entry : entry.name || entry.host || entry.url || JSON.stringify(entry));

// A command is granted by name and called by path, or the other way round.
const lastName = (path) => path.split("/").pop();

function used(counts, name) {
  return Object.entries(counts || {}).reduce((sum, [key, n]) => sum + (key === name || lastName(key) === lastName(name) ? n : 0), 0);
}

function Group({ title, key_, entries, countOf, note }) {
  return html`<tr><th scope="row">${title}<div class="dim mono">${key_}</div></th><td>
    ${entries.length === 0 && html`<span class="dim">none</span>`}
    <ul class="grants">${entries.map((entry) => {
      const name = nameOf(entry), n = countOf ? countOf(name) : null;
      return html`<li key=${name}><span class="mono">${safe(name)}</span> ${n === null ? "" : n ? html`<span class="good">used ${count(n)}</span>` : html`<span class="never">never used</span>`}</li>`;
    })}</ul>${note && entries.length > 0 && html`<p class="dim">${note}</p>`}</td></tr>`;
}

export function Grants({ start, summary, session }) {
  if (!start) return html`<p class="note">Its first line cannot be read: what it may do is not known here.</p>`;
  const grants = start.effective_grants || {};
  const counts = summary || {};
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table of grants"><table class="list facts"><tbody>
    <${Group} title="Tools" key_="artifacts" entries=${start.tools_declared || []} countOf=${(name) => used(counts.tools, name)} />
    <${Group} title="Commands" key_="capabilities.shell.allow" entries=${grants.shell_allow || []} countOf=${(name) => used(counts.tools, name) || used(counts.commands, name)} note="What a command starts in its turn is on no record." />
    <${Group} title="Hosts" key_="capabilities.network.allow" entries=${grants.network_allow || []} note="What was reached is on no record; what was refused is." />
    <${Group} title="Capsules" key_="capabilities.spawn.allow" entries=${grants.spawn_allow || []} countOf=${(name) => used(counts.capsules, name)} />
    <${Group} title="Variables" key_="capabilities.env.allow" entries=${grants.env_allow || []} />
    <${Group} title="Stores" key_="state" entries=${grants.state_stores || []} />
    <tr><th scope="row">Containment</th><td>${safe(grants.declared_containment)} was asked, ${safe(grants.achieved_containment)} holds (${safe(grants.enforcement_tier)})</td></tr>
    <tr><th scope="row">Read-only</th><td>${(grants.read_only_paths || []).map(safe).join(", ") || "no path"}</td></tr>
  </tbody></table>
  <p class="dim">In a terminal: <code>mur run --explain-scope</code>, <code>mur trace show ${session}</code></p></div>`;
}
