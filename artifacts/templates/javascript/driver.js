// A whole driver: asks a server that speaks Chat Completions, one answer at a time.
//
// The runtime's request comes in as JSON and its answer goes out as JSON; the key is put into the request by the runtime, after
// it has left this component. `import { emitChunk } from 'murmur:stream/events@0.1.0'` is for a server that streams.

import { env } from './files.js';

const stops = { tool_calls: 'tool_call', length: 'max_tokens', stop: 'end_turn' };
const failed = error => ({ stop_reason: 'error', content: [], error });

export const run = {
  async run(input) {
    const told = await ask(JSON.parse(input.data ?? '{}')).catch(problem => failed(`${problem.message ?? problem}`));
    return { status: 'passed', summary: undefined, data: JSON.stringify(told), dataPath: undefined, truncated: false, metadata: [] };
  },
};

async function ask(call) {
  const response = await fetch(`${env('MURMUR_INFERENCE_ENDPOINT').replace(/\/$/, '')}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(request(call)),
  });
  if (response.status !== 200) return failed(`HTTP ${response.status}: ${(await response.text()).slice(0, 500)}`);
  const { choices: [choice], usage } = await response.json();
  return {
    stop_reason: stops[choice.finish_reason] ?? 'error',
    content: blocks(choice.message),
    usage: { input_tokens: usage?.prompt_tokens, output_tokens: usage?.completion_tokens },
  };
}

function request(call) {
  const system = call.system ? [{ role: 'system', content: call.system }] : [];
  return {
    model: call.model,
    max_tokens: call.max_tokens,
    messages: [...system, ...call.messages.map(message)],
    tools: call.tools?.length ? call.tools.map(tool => ({ type: 'function', function: tool })) : undefined,
  };
}

function message({ role, content, tool_call_id }) {
  const calls = content.filter(block => block.type === 'tool_call').map(({ id, name, input }) =>
    ({ id, type: 'function', function: { name, arguments: JSON.stringify(input) } }));
  return {
    role,
    content: content.filter(block => block.type === 'text').map(block => block.text).join('\n'),
    tool_call_id: role === 'tool' ? tool_call_id : undefined,
    tool_calls: calls.length ? calls : undefined,
  };
}

function blocks({ content, tool_calls }) {
  const calls = (tool_calls ?? []).map(({ id, function: called }) =>
    ({ type: 'tool_call', id, name: called.name, input: JSON.parse(called.arguments) }));
  return content ? [{ type: 'text', text: content }, ...calls] : calls;
}
