/**
 * A minimal upstream in its own process: answers 300 bytes, or a stream of 200 chunks if the body requests one, and the probes of a slot. If the body says "slowly", the stream has
 * three chunks at the pace of a fast model. Argument: its port (default: any free one). Prints its port.
 */
import { createServer } from 'node:http';

const CHUNKS = 200;
const SLOW = { chunks: 3, pauseMs: 2 } as const;
const message = { role: 'assistant', content: 'y'.repeat(80) };
const answer = Buffer.from(
  JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage: { prompt_tokens: 140, completion_tokens: 20, total_tokens: 160 },
  }),
);
const delta = { index: 0, delta: { content: 'word ' }, finish_reason: null };
const chunk = `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [delta] })}\n\n`;

const server = createServer((req, res) => {
  const parts: Buffer[] = [];
  req.on('data', (part: Buffer) => parts.push(part));
  req.on('end', () => {
    if (req.url === '/health' || req.url === '/v1/completions') {
      res.writeHead(200, { 'content-type': 'application/json' });
      res.end('{"status":"ok","choices":[{"text":"a"}]}');
      return;
    }
    const body = Buffer.concat(parts);
    if (!body.includes('"stream":true')) {
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length });
      res.end(answer);
      return;
    }
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    const slowly = body.includes('"slowly":true');
    const chunks = slowly ? SLOW.chunks : CHUNKS;
    let sent = 0;
    const step = (): void => {
      if (sent === chunks) {
        res.end('data: [DONE]\n\n');
        return;
      }
      sent += 1;
      res.write(chunk);
      if (slowly) setTimeout(step, SLOW.pauseMs);
      else setImmediate(step);
    };
    step();
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${typeof address === 'object' && address !== null ? address.port : 0}\n`);
});
process.on('disconnect', () => process.exit(0));
