#!/usr/bin/env node
// The server of the toy provider: reads its model from a directory, and answers every chat with its phrase.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import path from 'node:path';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { host: { type: 'string' }, port: { type: 'string' }, model: { type: 'string' }, slowly: { type: 'boolean' } },
});
const { phrase } = JSON.parse(await readFile(path.join(values.model, 'toy.json'), 'utf8'));
await readFile(path.join(values.model, 'weights.bin'));

const server = createServer((request, response) => {
  const send = (status, body) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };
  if (request.url === '/vector') {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk) => (text += chunk));
    request.on('end', () => response.end(`${text.length} 0.5`));
    return;
  }
  request.resume();
  if (request.url === '/alive') return send(200, {});
  if (request.url !== '/chat') return send(404, { error: { message: 'Use "/chat"' } });
  return send(200, {
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: phrase }, finish_reason: 'stop' }],
  });
});
server.listen(Number(values.port), values.host);
process.on('SIGTERM', () => process.exit(0));
