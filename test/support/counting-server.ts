/** A server of OpenAI's API that counts what it has answered. */
import { createServer, type Server, type ServerResponse } from 'node:http';

export interface Counted {
  requests: number;
  input: number;
  cached: number;
  output: number;
}

/** The prompt says what the server does: `say 5`, `fail 5`, `hang 5` or `loading NAME`, each with the number of tokens. */
export async function startCounting() {
  const counted: Counted = { requests: 0, input: 0, cached: 0, output: 0 };
  const loading = new Set<string>();
  let open = 0;

  function count(input: number, cached: number, output: number): void {
    counted.requests += 1;
    counted.input += input;
    counted.cached += cached;
    counted.output += output;
  }

  function answer(
    body: { stream?: boolean; stream_options?: object; messages: readonly { content: string }[] },
    res: ServerResponse,
  ): void {
    const [word = '', number = '1'] = body.messages[0]?.content.split(' ') ?? [];
    const n = Number(number);
    if (word === 'loading' && !loading.has(number)) {
      loading.add(number);
      res.writeHead(503, { 'content-type': 'application/json' });
      return void res.end('{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}');
    }
    if (word === 'fail') {
      res.writeHead(500, { 'content-type': 'application/json' });
      return void res.end('{"error":{"message":"broken"}}');
    }
    const usage = { prompt_tokens: 10 * n, completion_tokens: n, prompt_tokens_details: { cached_tokens: 4 * n } };
    if (body.stream !== true) {
      count(10 * n, 4 * n, n);
      res.writeHead(200, { 'content-type': 'application/json' });
      return void res.end(JSON.stringify({ choices: [{ message: { role: 'assistant', content: 'Hello' } }], usage }));
    }
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    const chunk = (more: object): string => `data: ${JSON.stringify({ choices: [{ delta: { content: 'word' } }], ...more })}\n\n`;
    for (let each = 0; each < n; each += 1) res.write(chunk({}));
    if (word === 'hang') {
      open += 1;
      return;
    }
    count(10 * n, 4 * n, n);
    const timings = { cache_n: 4 * n, prompt_n: 6 * n, prompt_ms: 1.5, predicted_n: n, predicted_ms: 2.5 };
    res.end(`${chunk(body.stream_options === undefined ? { timings } : { usage, timings })}data: [DONE]\n\n`);
  }

  const server: Server = createServer((req, res) => {
    const pieces: Buffer[] = [];
    req.on('data', (piece: Buffer) => pieces.push(piece));
    req.on('end', () => {
      if (req.method === 'GET') {
        res.writeHead(200, { 'content-type': 'application/json' });
        res.end('{"object":"list","data":[{"id":"counting"}]}');
      } else answer(JSON.parse(Buffer.concat(pieces).toString()), res);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return { server, counted, open: () => open, port: typeof address === 'object' && address !== null ? address.port : 0 };
}
