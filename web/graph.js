// SPDX-License-Identifier: Apache-2.0
//
// Whom a session works with: who started it, whom it started, the members of its formation, and the calls between them.

import { get } from "./link.js";
import { html, useEffect, useState } from "./parts.js";
import { allSessions, sessionOf } from "./store.js";
import { line, short } from "./words.js";

const WIDE = 200, TALL = 46, ACROSS = 250, DOWN = 62, MOST = 60;

function rootOf(session) {
  const seen = new Set();
  let at = session;
  while (at.spawned_by && sessionOf(at.spawned_by) && !seen.has(at.id)) {
    seen.add(at.id);
    at = sessionOf(at.spawned_by);
  }
  return at;
}

// Everybody in it, as trees: the members of a formation stand beside each other, children to the right of who started them.
function layOut(session) {
  const all = allSessions();
  const root = rootOf(session);
  const tops = root.formation_id ? all.filter((other) => other.formation_id === root.formation_id && !other.spawned_by) : [root];
  const nodes = [], edges = [];
  const byId = new Map();
  let row = 0;
  const place = (one, depth, parent) => {
    if (byId.has(one.id) || nodes.length >= MOST) return;
    const node = { session: one, x: depth * ACROSS + 8, y: row * DOWN + 8 };
    byId.set(one.id, node);
    nodes.push(node);
    if (parent) edges.push({ from: parent, to: node, kind: "child" });
    const children = all.filter((other) => other.spawned_by === one.id).reverse();
    if (!children.length) row++;
    for (const child of children) place(child, depth + 1, node);
  };
  for (const one of tops.length ? tops.reverse() : [root]) place(one, 0, null);
  return { nodes, edges, rows: Math.max(row, 1), byId };
}

// Calls of one member to another, from the traces of those that call.
async function readCalls(nodes) {
  const calls = [];
  const byMember = new Map(nodes.map((node) => [node.session.formation_member, node.session.id]));
  await Promise.all(nodes.filter((node) => node.session.formation_id).slice(0, 12).map(async (node) => {
    try {
      const { rows } = await get(`session/${node.session.id}/rows?tail=1&limit=200&kinds=member_call_start,member_call`);
      const open = new Map();
      for (const { event } of rows) {
        if (!event) continue;
        const call = open.get(event.call_id) || { from: node.session.id, to: byMember.get(event.member), isOpen: true };
        if (event.event_type === "member_call") Object.assign(call, { isOpen: false, status: event.status });
        open.set(event.call_id, call);
      }
      calls.push(...open.values());
    } catch {
      // Its trace cannot be read: its node says so, its calls are not known.
    }
  }));
  return calls.filter((call) => call.to);
}

function pathOf(from, to) {
  const x1 = from.x + WIDE, y1 = from.y + TALL / 2, x2 = to.x, y2 = to.y + TALL / 2;
  if (to.x > from.x) return `M${x1} ${y1} C${x1 + 25} ${y1} ${x2 - 25} ${y2} ${x2} ${y2}`;
  return `M${x1} ${y1} C${x1 + 40} ${y1} ${x1 + 40} ${y2} ${x1} ${y2}`;
}

export function Graph({ session }) {
  const { nodes, edges, rows, byId } = layOut(session);
  const [calls, setCalls] = useState([]);
  const who = nodes.map((node) => node.session.id + node.session.state).join();
  useEffect(() => {
    let isOurs = true;
    readCalls(nodes).then((found) => isOurs && setCalls(found));
    return () => (isOurs = false);
  }, [who]);
  const wide = Math.max(...nodes.map((node) => node.x)) + ACROSS;
  const between = new Map();
  for (const call of calls) {
    const key = `${call.from} ${call.to}`;
    const known = between.get(key) || { from: call.from, to: call.to, n: 0, isOpen: false };
    between.set(key, { ...known, n: known.n + 1, isOpen: known.isOpen || call.isOpen });
  }
  return html`<div class="graph" tabindex="0" role="region" aria-label="Lineage">
    <svg width=${wide} height=${rows * DOWN + 16}>
      ${edges.map(({ from, to }) => html`<path key=${to.session.id} d=${pathOf(from, to)} />`)}
      ${[...between.values()].filter((call) => byId.has(call.from) && byId.has(call.to)).map((call) => html`<path key=${call.from + call.to}
        class=${`member${call.isOpen ? " open" : ""}`} d=${pathOf(byId.get(call.from), byId.get(call.to))}><title>${`${call.n} calls${call.isOpen ? ", one is out" : ""}`}</title></path>`)}
      ${nodes.map((node) => html`<${Node} key=${node.session.id} node=${node} isChosen=${node.session.id === session.id} />`)}
    </svg>
    ${calls.length > 0 && html`<p class="dim">${calls.length} calls between members, ${calls.filter((call) => call.isOpen).length} out</p>`}
    ${nodes.length === 1 && html`<p class="note">It was started by nobody here and has started nobody.</p>`}
    ${nodes.length >= MOST && html`<p class="note">The first ${MOST} are drawn.</p>`}
  </div>`;
}

function Node({ node, isChosen }) {
  const { session, x, y } = node;
  const state = session.state === "ended" ? session.exit_status || "ended" : session.state;
  const kind = { asks: "asks", works: "good", lost: "bad", "no answer": "bad" }[session.state] || (session.state === "ended" && state !== "ok" ? "bad" : "");
  const name = session.formation_member || session.capsule_name || "?";
  return html`<a href=${`#/s/${session.id}/Lineage`} class=${kind} aria-current=${isChosen ? "true" : undefined}>
    <rect x=${x} y=${y} width=${WIDE} height=${TALL} rx="5" />
    <text x=${x + 10} y=${y + 19}>${isChosen ? "● " : ""}${line(name, 24)}</text>
    <text class="dim" x=${x + 10} y=${y + 37}>${line(state, 16)} · ${short(session.id)}</text>
  </a>`;
}
