/** Warms a gateway with requests of all kinds, as a service in use has had them: code that was compiled for one shape of request alone would be faster than it ever is. */

const CONCURRENT = 8;

interface Shape {
  readonly path: string;
  readonly body?: string;
}

const chat = (model: string, bytes: number, more: object = {}): Shape => ({
  path: '/v1/chat/completions',
  body: JSON.stringify({
    model,
    ...more,
    messages: [
      { role: 'system', content: 's' },
      { role: 'user', content: 'z'.repeat(bytes) },
    ],
  }),
});

const SHAPES: readonly Shape[] = [
  chat('primary', 400),
  chat('primary', 4000, { temperature: 0.5, max_tokens: 20 }),
  chat('primary', 60_000),
  chat('streams', 400, { stream: true }),
  chat('streams', 400, { stream: true, stream_options: { include_usage: true } }),
  chat('no-such-model', 400),
  { path: '/v1/completions', body: JSON.stringify({ prompt: 'a', model: 'primary' }) },
  { path: '/v1/embeddings', body: JSON.stringify({ model: 'primary', input: ['a', 'b'] }) },
  { path: '/v1/messages', body: JSON.stringify({ model: 'primary', max_tokens: 5, messages: [{ role: 'user', content: 'a' }] }) },
  { path: '/v1/chat/completions', body: '{"model": "primary", "messages": [' },
  { path: '/v1/models' },
  { path: '/v1/no-such-path' },
  { path: '/api/status' },
  { path: '/api/metrics' },
];

/** Throws if the first kind of request is not answered with 200. Answers to the others differ, also by what is in front of the upstream. */
export async function warmByMixedShapes(port: number, seconds: number, token?: string): Promise<void> {
  const until = performance.now() + seconds * 1000;
  const sender = async (_: unknown, first: number): Promise<void> => {
    for (let turn = first; performance.now() < until; turn += 1) {
      const shape = SHAPES[turn % SHAPES.length];
      if (shape !== undefined) await ask(port, shape, token);
    }
  };
  const [plain] = SHAPES;
  const status = plain === undefined ? 0 : await ask(port, plain, token);
  if (status !== 200) throw new Error(`Warm the gateway on port ${port}: it answered a chat with ${status}`);
  await Promise.all(Array.from({ length: CONCURRENT }, sender));
}

async function ask(port: number, { path, body }: Shape, token: string | undefined): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    ...(body === undefined ? {} : { method: 'POST', body }),
    headers: { 'content-type': 'application/json', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
  });
  await answer.arrayBuffer();
  return answer.status;
}
