// The conformance tool of tool.py, in JavaScript.

import { emitChunk } from 'murmur:stream/events@0.1.0';
import { requestInput } from 'murmur:task/task@0.1.0';
import { config, env, listFolder, readFile, writeFile } from './files.js';

const orders = {
  log: ({ text }) => (console.error(text), 'logged'),
  write: ({ path, text }) => (writeFile(path, text), 'written'),
  read: ({ path }) => readFile(path),
  list: ({ path }) => listFolder(path).join(' '),
  env: ({ text }) => env(text) ?? 'unset',
  config: ({ text }) => config()[text],
  progress: ({ text }) => (emitChunk(text), 'shown'),
  ask: ({ text }) => requestInput(text),
  clock: () => (Date.now() > 1.6e12 ? 'later' : 'earlier'),
  random: () => {
    const [one, other] = [0, 0].map(() => crypto.getRandomValues(new Uint8Array(16)).join());
    return one === other ? 'repeats' : 'differs';
  },
  async get({ url }) {
    const answer = await fetch(url);
    return `${answer.status} ${answer.headers.get('x-told')} ${await answer.text()}`;
  },
  async post({ url, header, text }) {
    const answer = await fetch(url, { method: 'POST', headers: { 'x-asked': header }, body: text });
    return `${answer.status} ${await answer.text()}`;
  },
};

const result = (status, summary, data, metadata = []) =>
  ({ status, summary, data, dataPath: undefined, truncated: false, metadata });

export const run = {
  async run(input) {
    const told = JSON.parse(JSON.parse(input.data).name);
    if (told === 'break') throw new Error('broke on purpose');
    if (told === 'fail') return result('failed', 'a summary', undefined);
    if (told === 'meta') return result('passed', undefined, 'with metadata', [['resource_id', 'r-1'], ['state_effect', 'read']]);
    const outcomes = [];
    for (const order of told) {
      try {
        outcomes.push(`ok: ${await orders[order.do](order)}`);
      } catch (problem) {
        outcomes.push(`error: ${problem.message ?? problem}`);
      }
    }
    return result('passed', undefined, JSON.stringify(outcomes));
  },
};
