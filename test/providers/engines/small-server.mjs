#!/usr/bin/env node
/** A server that speaks OpenAI's dialect about one model: it knows it by one name only. Arguments: --host, --port, --model, --as NAME. It can sleep, and counts what it answers. */
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

const options = Object.fromEntries(['host', 'port', 'model', 'as', 'ctx'].map((name) => [name, { type: 'string' }]));
const { values } = parseArgs({ options, strict: false });
let asleep = false;
const send = (res, status, body) => res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

async function answer(req, res) {
  if (req.url === '/health') return void send(res, 200, {});
  if (req.url === '/page') return void res.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Welcome</title>');
  if (req.url === '/nap' || req.url === '/wake') {
    asleep = req.url === '/nap';
    return void res.writeHead(204).end();
  }
  if (req.url === '/naps') return void send(res, 200, { naps: asleep });
  if (req.url === '/metrics')
    return void res.writeHead(200, { 'content-type': 'text/plain' }).end(`small:running{of="${process.pid}"} 0\n`);
  if (asleep) return void send(res, 503, { error: { message: 'It sleeps' } });
  let text = '';
  for await (const piece of req) text += piece;
  if (req.url !== '/talk') return void send(res, 404, { error: { message: `No ${req.url}` } });
  const { model, messages, stream } = JSON.parse(text);
  if (model !== values.as) return void send(res, 404, { error: { message: `The model "${model}" does not exist` } });
  const content = `${messages.at(-1).content} at ${String(values.ctx ?? 'any')} length`;
  if (stream !== true)
    return void send(res, 200, { choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }] });
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`);
  res.end('data: [DONE]\n\n');
}

createServer((req, res) => void answer(req, res)).listen(Number(values.port), values.host);
