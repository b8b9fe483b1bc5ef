// A whole hook: calls whose input holds a word of `config: {words: [...]}` are refused, and counted.
//
// One instance serves a session, so what is kept here lasts until its end. what console.error() writes, `mur run` shows on its stderr;
// `import { count } from 'murmur:runtime/tokens@0.4.0'` and its neighbours in wit/ are what a hook may ask for.

import { config } from './files.js';

const none = { tag: 'none' };
const nothing = () => none;
let refused = 0;

export const lifecycle = {
  onToolCall(event) {
    const found = (config().words ?? []).find(word => event.input.includes(word));
    // With an outcome the call is over: it can be looked at, no longer refused.
    if (found === undefined || event.outcome !== undefined) return none;
    refused += 1;
    return { tag: 'deny', val: `no call may hold ${found} (refusal ${refused})` };
  },
  onStage: nothing,
  onSessionStart: nothing,
  onTaskStart: nothing,
  onInference: nothing,
  onShell: nothing,
  onCompaction: nothing,
  onTaskEnd: nothing,
  onSessionEnd: nothing,
};
