// The conformance hook of hook.py, in JavaScript.

import { readMessages } from 'murmur:conversation/read@0.2.0';
import { runInference } from 'murmur:runtime/inference@0.4.0';
import { count } from 'murmur:runtime/tokens@0.4.0';
import { readInput, readOutput } from 'murmur:task-io/read@0.1.0';

const tell = (...words) => (console.error(['heard:', ...words].join(' ')), { tag: 'none' });

// [the answer, true], or [why there is none, false]
const asked = question => {
  try {
    return [question(), true];
  } catch (told) {
    return [told.payload, false];
  }
};

const taskInput = () => asked(() => readInput('as-given', 0n, 1n << 20n));

function askAll() {
  tell('tokens', count('hello world'), count(''));
  tell('input', ...taskInput());
  tell('output', ...asked(() => readOutput(0n, 1n << 20n)));
  const roles = [];
  let cursor, total;
  do {
    const page = readMessages(cursor, 1);
    for (const message of page.messages) {
      roles.push(message.role);
      if (!message.id || message.insertedBy !== undefined) tell('odd message', JSON.stringify(message));
    }
    [cursor, total] = [page.nextCursor, page.total];
  } while (cursor !== undefined);
  tell('conversation', total, roles);
  tell('refused', !asked(() => readMessages('no cursor', 1))[1]);
  const messages = [{ role: 'user', content: 'say it', id: undefined, sourceId: undefined, insertedBy: undefined }];
  const [answer, wasTold] = asked(() => runInference({ messages, systemPrompt: 'be short', model: undefined }));
  tell('inferred', answer.text ?? answer, wasTold);
}

export const lifecycle = {
  onStage: ({ shellAllow }) => tell('stage', shellAllow),
  onSessionStart(ctx) {
    tell('start', ctx.capsuleName, ctx.capsuleVersion, ctx.sessionId.length);
    return tell('no input:', taskInput()[0]);
  },
  onTaskStart: event => tell('task', event.source, event.inputBytes),
  onInference: event => tell('turn', event.turn, event.decision, event.toolName ?? '-', event.outputTokens),
  onToolCall: ({ toolName, inputBytes, outcome }) =>
    outcome ? tell('called', toolName, outcome.status, outcome.outputBytes > 0n) : tell('call', toolName, inputBytes),
  onShell: ({ binary, argv, outcome }) =>
    outcome ? tell('ran', binary, outcome.exitCode, outcome.stdoutBytes) : tell('shell', binary, argv.join('|')),
  onCompaction: () => ({ tag: 'none' }),
  onTaskEnd(event) {
    tell('end', event.exitStatus);
    askAll();
    return { tag: 'none' };
  },
  onSessionEnd: event => tell('over', event.totalTurns, event.totalToolCalls, event.totalShellCalls, event.exitStatus),
};
