/**
 * What `svcctl eval` adds to the time of its requests: 50 short cases, as a whole command with its start, against the same requests alone, one after the other. The model server pauses between its tokens as
 * one with 40 tokens a second does.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { atMost, median, note, type Row } from './measure.ts';

const CASES = 50;
const ROUNDS = 5;
const WORDS = ['{"city"', ': ', '"', 'Par', 'is', '"', '}', ''];
const TOKEN_MS = 25;
const SCHEMA = { type: 'object', properties: { city: { type: 'string', pattern: '^[A-Z]\\w+$' } }, required: ['city'] };
const EXPECTATIONS = [
  { contains: 'Paris' },
  { matches: '(?i)"paris"' },
  { schema: SCHEMA },
  { contains: 'city', matches: '^\\{', schema: SCHEMA },
];

export async function measureEvaluate(): Promise<readonly Row[]> {
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-bench-'));
  const server = createServer((req, res) => {
    const pieces: Buffer[] = [];
    req.on('data', (piece: Buffer) => pieces.push(piece));
    req.on('end', () => {
      const body: { stream?: boolean } = JSON.parse(Buffer.concat(pieces).toString());
      void answer(res, body.stream === true);
    });
  });
  try {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const address = server.address();
    const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
    const file = path.join(directory, 'checks.jsonl');
    const requests = Array.from({ length: CASES }, (_none, index) => ({ messages: [{ role: 'user', content: `Question ${index}` }] }));
    const lines = requests.map((request, index) => JSON.stringify({ request, expect: EXPECTATIONS[index % EXPECTATIONS.length] }));
    await writeFile(file, lines.join('\n'));
    const times: Record<'alone' | 'evaluated', number[]> = { alone: [], evaluated: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      times.alone.push(await timed(async () => askAll(url, requests)));
      times.evaluated.push(await timed(async () => evaluate(url, file)));
    }
    const added = times.evaluated.map((ms, round) => (ms / (times.alone[round] ?? Number.NaN) - 1) * 100);
    return [
      note(`${CASES} short requests alone, median`, `${(median(times.alone) / 1000).toFixed(2)} s`),
      note('the same as an evaluation, median', `${(median(times.evaluated) / 1000).toFixed(2)} s`),
      atMost('added by the evaluation, with the start of svcctl', median(added), { limit: 5, unit: '%', digits: 1 }),
    ];
  } finally {
    server.closeAllConnections();
    server.close();
    await rm(directory, { recursive: true, force: true });
  }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

async function answer(res: ServerResponse, streams: boolean): Promise<void> {
  // The request that waits for the model has one token.
  await pause(TOKEN_MS);
  if (!streams) return void res.end('{"choices": [{"message": {"content": "Hello"}}]}');
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const content of WORDS) {
    res.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`);
    await pause(TOKEN_MS);
  }
  res.end(`data: ${JSON.stringify({ choices: [], usage: { completion_tokens: WORDS.length } })}\n\ndata: [DONE]\n\n`);
}

async function askAll(url: string, requests: readonly object[]): Promise<void> {
  for (const request of requests) {
    const body = JSON.stringify({ model: 'primary', stream: true, ...request });
    await (await fetch(`${url}/v1/chat/completions`, { method: 'POST', body })).text();
  }
}

async function evaluate(url: string, file: string): Promise<void> {
  const entry = path.resolve(import.meta.dirname, '../src/cli/svcctl.mjs');
  const child = spawn(process.execPath, [entry, 'eval', 'primary', '-f', file, '--server', url], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code]: unknown[] = await once(child, 'close');
  if (code !== 0) throw new Error(`The evaluation ended with ${String(code)}`);
}
