/**
 * The time until the first chunk of a stream arrives, at one connection that is kept. The upstream pauses between its chunks, as models do: one that sends all of them at once keeps the core that
 * it shares with this client, so that the client would read the first chunk when the scheduler takes the core away from the upstream, and not when the chunk has arrived.
 */
import { Agent, request } from 'node:http';
import { median } from './measure.ts';

const BODY = JSON.stringify({ model: 'streams', stream: true, slowly: true, messages: [{ role: 'user', content: 'z'.repeat(500) }] });

/** So many times shorter rounds than elsewhere, and more of them: a busy machine is equally fast for all that are compared within one second, but not within three. */
export const FIRST_TOKEN_ROUNDS = 4;

export interface FirstTokens {
  /** Median, in milliseconds. */
  readonly ms: number;
  readonly failures: number;
}

/** Asks for one stream after another for so many seconds. */
export async function measureFirstToken(port: number, seconds: number): Promise<FirstTokens> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const times: number[] = [];
  let failures = 0;
  try {
    for (const until = performance.now() + seconds * 1000; performance.now() < until;) {
      const ms = await askForStream(port, agent);
      if (ms === undefined) failures += 1;
      else times.push(ms);
    }
  } finally {
    agent.destroy();
  }
  return { ms: median(times), failures };
}

/** Returns undefined if the request failed. Resolves at the end of the stream. */
function askForStream(port: number, agent: Agent): Promise<number | undefined> {
  return new Promise((resolve) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(BODY) };
    const asked = request({ port, host: '127.0.0.1', method: 'POST', path: '/v1/chat/completions', agent, headers }, (answer) => {
      let firstMs: number | undefined;
      answer.on('data', () => (firstMs ??= performance.now() - startedAt));
      answer.once('end', () => resolve(answer.statusCode === 200 ? firstMs : undefined));
      answer.once('error', () => resolve(undefined));
    });
    asked.once('error', () => resolve(undefined));
    const startedAt = performance.now();
    asked.end(BODY);
  });
}
