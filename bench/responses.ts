/** What a translated stream of the Responses API costs the gateway, against a stream of a chat that passes through, in turns. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { alternate } from './alternate.ts';
import { atMost, median, note, type Row } from './measure.ts';

const ROUNDS = 9;
const STREAMS = 16;
const TOKENS = 600;
/** A server of 200 tokens a second, so that each token is a piece of its own. */
const TOKEN_MS = 5;
/** Length of a clock tick in `/proc/PID/stat`. */
const TICK_MS = 10;

/** Chunks as llama-server writes them. */
function startUpstream() {
  const common = {
    created: 1_764_000_000,
    id: 'chatcmpl-0123456789abcdefghijklmnopqrstuv',
    model: 'primary',
    system_fingerprint: 'b11669',
    object: 'chat.completion.chunk',
  };
  const chunk = (delta: object, finish: string | null) =>
    `data: ${JSON.stringify({ choices: [{ finish_reason: finish, index: 0, delta }], ...common })}\n\n`;
  const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    for await (const _ of req);
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write(chunk({ role: 'assistant', content: null }, null));
    for (let token = 0; token < TOKENS; token += 1) {
      res.write(chunk({ content: ` word${token % 10}` }, null));
      await pause(TOKEN_MS);
    }
    const usage = { completion_tokens: TOKENS, prompt_tokens: 20, total_tokens: TOKENS + 20 };
    res.end(`${chunk({}, 'stop')}data: ${JSON.stringify({ choices: [], ...common, usage })}\n\ndata: [DONE]\n\n`);
  };
  return createServer((req, res) => void answer(req, res));
}

export async function measureResponses(): Promise<readonly Row[]> {
  const upstream = startUpstream().listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const address = upstream.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const child = fork(join(import.meta.dirname, 'gateway-process.ts'), [String(port)], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  try {
    const [line]: unknown[] = await once(child.stdout ?? child, 'data');
    const base = `http://127.0.0.1:${String(line).trim()}`;
    const bodies = new Map([
      ['/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }], stream_options: { include_usage: true } }],
      ['/v1/responses', { input: 'Hi' }],
    ]);
    const paths = new Map([...bodies.keys()].map((path) => [path, path]));
    const runs = await alternate(paths, ROUNDS, async (path) => {
      const before = await cpuMs(child.pid ?? 0);
      const body = JSON.stringify({ model: 'primary', stream: true, ...bodies.get(path) });
      const ask = async () =>
        (await fetch(`${base}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).text();
      const texts = await Promise.all(Array.from({ length: STREAMS }, ask));
      if (texts.some((text) => !text.includes('word9') || text.includes('"error":{'))) throw new Error('A stream failed');
      return (((await cpuMs(child.pid ?? 0)) - before) * 1000) / (STREAMS * TOKENS);
    });
    const [chat = [], responses = []] = [...runs.values()];
    const ratio = median(responses.map((each, round) => each / (chat[round] ?? Number.NaN)));
    return [
      note('CPU of the gateway for a token of a chat', `${median(chat).toFixed(1)} µs`),
      note('the same of a translated response', `${median(responses).toFixed(1)} µs`),
      atMost('CPU of a translated stream, against that of a chat', ratio, { limit: 2, unit: '×' }),
    ];
  } finally {
    child.disconnect();
    upstream.close();
  }
}

async function cpuMs(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}
