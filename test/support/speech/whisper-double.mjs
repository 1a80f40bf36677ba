#!/usr/bin/env node
/**
 * Stands in for `whisper-server` of whisper.cpp 1.9.5, as far as the speech server can notice: it listens once its model is loaded, answers below its prefix only, puts a space
 * before its text and an end of a line behind each segment, names languages in English, and replaces the bodies of errors. What it hears is what it was asked, or with the prompt "digest"
 * the SHA-256 of the samples that it was given.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const flags = Object.fromEntries(
  process.argv.slice(2).flatMap((name, index, all) => (name.startsWith('--') ? [[name.slice(2), all[index + 1]]] : [])),
);
if (readFileSync(flags.model).includes('broken')) {
  process.stderr.write('error: failed to initialize whisper context: failed to load model\n');
  process.exit(3);
}
const prefix = flags['request-path'];

async function answer(request, response) {
  const form = request.method === 'POST' ? await new Response(request, { headers: request.headers }).formData() : new FormData();
  if (request.method === 'GET' && request.url === `${prefix}/health`) return response.writeHead(200).end('{"status":"ok"}');
  if (request.method !== 'POST' || request.url !== prefix + flags['inference-path'])
    return response.writeHead(404).end(`File Not Found (${request.url})`);
  const head = Buffer.from((await form.get('file')?.arrayBuffer()) ?? []);
  const whole = head.toString('latin1', 0, 4) === 'RIFF' && head.readUInt32LE(40) === head.length - 44;
  if (!whole || form.get('response_format') !== 'verbose_json') return response.writeHead(400).end('Invalid request');
  const fieldOf = (name) => {
    const value = form.get(name);
    return typeof value === 'string' ? value : '';
  };
  const asked = `${fieldOf('language')}/${fieldOf('translate')}/${fieldOf('temperature')}/${fieldOf('prompt')}`;
  const text = fieldOf('prompt') === 'digest' ? createHash('sha256').update(head.subarray(44)).digest('hex') : asked;
  const words = text
    .split(' ')
    .map((word, index) => ({ word: ` ${word}`, start: index / 10, end: (index + 1) / 10, t_dtw: -1, probability: 1 }));
  const segments = [{ id: 0, text: ` ${text}`, start: 0, end: 1, words }];
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ task: 'transcribe', language: 'german', duration: 1, text: ` ${text}\n`, segments }));
}

createServer((request, response) => void answer(request, response)).listen(Number(flags.port), flags.host);
