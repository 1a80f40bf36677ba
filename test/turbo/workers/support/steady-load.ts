/** Clients that send one request after another, each on a connection of its own, as programs with a pool of connections do. */
import { Client } from 'undici';

export interface SteadyLoad {
  /** Answers with status 200 so far. */
  answered(): number;
  /** Failures, as the clients saw them. A request that failed is sent again. */
  readonly failures: readonly string[];
  /** Requests that failed again and again. */
  readonly lost: readonly string[];
  /** Ends the load after the requests in flight. */
  stop(): Promise<void>;
}

export interface SteadyLoadOptions {
  readonly url: string;
  readonly connections: number;
  readonly body?: object;
  /** The clients end, without a failure, when the service says that it closes a connection. */
  readonly untilClosed?: true;
}

const TRIES = 10;
const RETRY_MS = 20;

export function startLoad({ url, connections, body = {}, untilClosed }: SteadyLoadOptions): SteadyLoad {
  const failures: string[] = [];
  const lost: string[] = [];
  let answered = 0;
  let goesOn = true;
  const text = JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1, ...body });

  async function ask(client: Client): Promise<{ readonly status: number; readonly closes: boolean }> {
    const answer = await client.request({
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { 'content-type': 'application/json' },
      body: text,
    });
    await answer.body.dump();
    return { status: answer.statusCode, closes: answer.headers['connection'] === 'close' };
  }

  /** Returns whether the client may send another request. */
  async function askUntilAnswered(client: Client): Promise<boolean> {
    for (let tries = 1; ; tries += 1) {
      const outcome = await ask(client).catch((error: unknown) => String(error));
      if (typeof outcome !== 'string' && outcome.status === 200) {
        answered += 1;
        return untilClosed !== true || !outcome.closes;
      }
      const failure = typeof outcome === 'string' ? outcome : `status ${outcome.status}`;
      failures.push(failure);
      if (tries === TRIES || untilClosed === true) {
        lost.push(failure);
        return untilClosed !== true;
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  async function run(): Promise<void> {
    const client = new Client(url);
    while (goesOn && (await askUntilAnswered(client)));
    await client.destroy();
  }

  const running = Array.from({ length: connections }, run);
  return {
    answered: () => answered,
    failures,
    lost,
    async stop() {
      goesOn = false;
      await Promise.all(running);
    },
  };
}
