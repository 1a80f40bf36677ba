/**
 * A stand-in for the speech server (`toolboxes/speech`) as far as the gateway can notice: its paths, answers, streams and errors. It hears how many bytes a file has, and
 * speaks a byte for each character. One request occupies its engine until it is answered or its client leaves.
 */
import type { ServerResponse } from 'node:http';
import { startUpstream, sendJson, type FakeUpstream, type SeenRequest } from '../../gateway/support/fake-upstream.ts';

export interface SpeechDouble extends FakeUpstream {
  /** Requests that occupy the engine. */
  computing(): number;
}

/** A text or a voice of this name is never finished. */
export const ENDLESS = 'endless';
const FILE = /filename="[^"]*"\r\n(?:[^\r\n]+\r\n)*\r\n/;

export async function startSpeechDouble(): Promise<SpeechDouble> {
  const computing = new Set<ServerResponse>();
  const upstream = await startUpstream({
    answer(request, res) {
      computing.add(res);
      res.on('close', () => computing.delete(res));
      if (request.url === '/health') sendJson(res, 200, { status: 'ready' });
      else if (request.url === '/v1/audio/speech') speak(request, res);
      else transcribe(request, res);
    },
  });
  return { ...upstream, computing: () => computing.size };
}

function fail(
  res: ServerResponse,
  status: number,
  error: { readonly code: string; readonly message: string; readonly param: string },
): void {
  sendJson(res, status, { error: { ...error, type: 'invalid_request_error' } });
}

function speak({ body }: SeenRequest, res: ServerResponse): void {
  const asked = new Map<string, unknown>(Object.entries(Object(JSON.parse(body.toString('utf8')))));
  const input = String(asked.get('input'));
  if (asked.get('voice') === 'nobody') {
    return fail(res, 400, {
      code: 'audio.voice_unknown',
      message: 'Choose another voice than "nobody": the model has one',
      param: 'voice',
    });
  }
  if (asked.get('stream_format') === 'sse') {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const type of ['speech.audio.delta', 'speech.audio.done']) res.write(`data: ${JSON.stringify({ type, audio: 'AAAA' })}\n\n`);
    return void res.end();
  }
  res.writeHead(200, { 'content-type': 'audio/mpeg', 'transfer-encoding': 'chunked' });
  res.write(Buffer.alloc(Array.from(input).length, 1));
  if (asked.get('voice') !== ENDLESS) res.end();
}

function transcribe({ url, body }: SeenRequest, res: ServerResponse): void {
  const form = body.toString('latin1');
  const field = (name: string): string | undefined => new RegExp(`name="${name}"\\r\\n\\r\\n([^\\r]*)\\r\\n`).exec(form)?.[1];
  const file = FILE.exec(form);
  if (file === null) return fail(res, 400, { code: 'request.invalid', message: 'Send the recording as "file"', param: 'file' });
  const from = file.index + file[0].length;
  const bytes = form.indexOf('\r\n--', from) - from;
  if (form.startsWith('not audio', from))
    return fail(res, 400, { code: 'audio.invalid', message: 'Send audio: the file is not', param: 'file' });
  if (field('language') === 'xx') res.setHeader('x-svc-note', 'The model does not know the language "xx"');
  const text = `${url === '/v1/audio/translations' ? 'translated' : 'heard'} ${bytes} bytes`;
  if (field('prompt') === ENDLESS) return;
  if (field('stream') === 'true') {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write(`data: ${JSON.stringify({ type: 'transcript.text.delta', delta: text })}\n\n`);
    if (field('language') !== ENDLESS) res.end(`data: ${JSON.stringify({ type: 'transcript.text.done', text })}\n\n`);
    return;
  }
  if (field('response_format') === 'text') {
    res.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
    return void res.end(`${text}\n`);
  }
  sendJson(res, 200, { text });
}
