// A whole tool: JSON in, a text out.
//
// fetch() asks servers, console.error() writes into the tool's log, files.js has files, variables and the config.
// `import { emitChunk } from 'murmur:stream/events@0.1.0'` shows progress of the running task,
// `import { requestInput } from 'murmur:task/task@0.1.0'` asks the person behind it.

const answer = (status, data) =>
  ({ status, summary: undefined, data, dataPath: undefined, truncated: false, metadata: [] });

export const run = {
  async run(input) {
    const { name } = JSON.parse(input.data ?? '{}');
    return typeof name === 'string'
      ? answer('passed', `Hello, ${name}!`)
      : answer('failed', 'name: a string is needed');
  },
};
