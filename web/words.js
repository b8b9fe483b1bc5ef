// SPDX-License-Identifier: Apache-2.0
//
// How things are written. Everything a model, a tool or a file name says goes through safe().

// Control characters, direction marks and blanks of no width would let a text show something else than it is.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

function mark(character) {
  const code = character.charCodeAt(0);
  return code < 32 ? String.fromCharCode(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

export function safe(text) {
  if (text === null || text === undefined) return "";
  return (typeof text === "string" ? text : JSON.stringify(text)).replace(/\r\n/g, "\n").replace(hidden, mark);
}

// The same on one line.
export function line(text, most = 200) {
  const flat = safe(text).replace(/\s+/g, " ").trim();
  return flat.length > most ? flat.slice(0, most) + "…" : flat;
}

export function count(n) {
  return typeof n === "number" ? n.toLocaleString("en") : "—";
}

export function duration(ms) {
  if (typeof ms !== "number") return "";
  if (ms < 1000) return `${ms} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(1)} s`;
  return s < 3600 ? `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s` : `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

export function clock(ms) {
  return ms ? new Date(ms).toLocaleTimeString("en-GB") : "";
}

export function day(ms) {
  if (!ms) return "";
  const then = new Date(ms);
  const isToday = then.toDateString() === new Date().toDateString();
  return isToday ? then.toLocaleTimeString("en-GB") : then.toLocaleDateString("en-CA") + " " + then.toLocaleTimeString("en-GB").slice(0, 5);
}

// The end tells sessions of one second apart; the beginning is the same for all of a minute.
export function short(id) {
  return id ? id.slice(-8) : "";
}

export function pretty(value) {
  return safe(typeof value === "string" ? value : JSON.stringify(value, null, 2));
}

