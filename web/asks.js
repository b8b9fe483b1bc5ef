// SPDX-License-Identifier: Apache-2.0
//
// Questions of every session, at the top of every view: which capsule asks, what it wants to do, and the answers.

import { Said, useAct } from "./acts.js";
import { html, useState } from "./parts.js";
import { facts, openQuestions } from "./store.js";
import { safe, short } from "./words.js";

const words = { once: "Once", session: "For this session", no: "No", never: "Never" };

function Question({ question }) {
  const { session, task } = question;
  const { run, said, isBusy } = useAct();
  const [text, setText] = useState("");
  const asked = task.question;
  const reply = (answer) => run(session.id, "reply", { task: task.id, answer, ...(asked ? { question_id: asked.question_id } : {}) });
  const send = (event) => {
    event.preventDefault();
    if (text.trim()) reply(text);
  };
  const who = asked && asked.session_id && asked.session_id !== session.id ? `${safe(asked.capsule)} for ` : "";
  return html`<li class="ask">
    <div class="ask-who"><a href=${`#/s/${session.id}`}>${who}${safe(session.capsule_name)} <span class="dim">${short(session.id)}</span></a> asks</div>
    <div class="ask-what" dir="auto">${safe(asked ? asked.what : task.asks)}</div>
    ${asked && html`<div class="dim">${asked.tool ? `tool ${safe(asked.tool)}` : ""}${(asked.rules || []).map((rule) =>
      `, approvals.${safe(rule.kind)}: ${safe(rule.rule)}${rule.unseen ? " (it could not be seen whether)" : ""}`)}</div>`}
    ${!facts.readOnly && asked && html`<div class="ask-answers" role="group" aria-label="Answers">${(asked.answers || ["once", "session", "no", "never"]).map((answer) =>
      html`<button key=${answer} disabled=${isBusy} onClick=${() => reply(answer)}>${words[answer] || safe(answer)}</button>`)}</div>`}
    ${!facts.readOnly && !asked && html`<form onSubmit=${send}><label class="hidden" for=${`answer-${task.id}`}>Answer</label>
      <input id=${`answer-${task.id}`} value=${text} onInput=${(event) => setText(event.target.value)} placeholder="answer" />
      <button type="submit" disabled=${isBusy || !text.trim()}>Answer</button></form>`}
    <${Said} said=${said} />
  </li>`;
}

export function Asks() {
  const questions = openQuestions();
  return html`<section class="asks" aria-label="Open questions" aria-live="polite">
    ${questions.length > 0 && html`<ul>${questions.map((question) => html`<${Question} key=${question.key} question=${question} />`)}</ul>`}
  </section>`;
}
