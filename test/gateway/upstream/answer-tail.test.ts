/** What answers of model servers tell about sound and images, in one piece and in many. */
import { describe, expect, test } from '@jest/globals';
import { AnswerTail } from '../../../src/gateway/upstream/answer-tail.ts';
import type { ResponseHead } from '../../../src/gateway/upstream/decide/response-head.ts';
import type { Capability } from '../../../src/schema/slot/provider-kinds.ts';

const headOf = (contentType: string, status = 200, headers: readonly string[] = []): ResponseHead => ({
  status,
  headers: ['content-type', contentType, ...headers],
  contentType,
  framing: { kind: 'chunked' },
  keepAlive: true,
  keepAliveSeconds: undefined,
});

function mediaOf(capability: Capability, head: ResponseHead, body: string | Buffer, pieceBytes = Number.POSITIVE_INFINITY) {
  const tail = new AnswerTail(capability);
  const bytes = Buffer.from(body);
  for (let at = 0; at < bytes.length; at += pieceBytes) tail.add(bytes.subarray(at, Math.min(bytes.length, at + pieceBytes)), head);
  tail.add(Buffer.alloc(0), head);
  return tail.counts().media;
}

function wav(bytesPerSecond: number, soundBytes: number): Buffer {
  const file = Buffer.alloc(44 + soundBytes);
  file.write('RIFF\xff\xff\xff\xffWAVEfmt ', 'latin1');
  file.writeUInt32LE(bytesPerSecond, 28);
  return file;
}

const JSON_TYPE = 'application/json';
const EVENTS = 'text/event-stream; charset=utf-8';

describe('a transcript', () => {
  test.each([
    ['with usage', headOf(JSON_TYPE), '{"text":"Hi","usage":{"type":"duration","seconds":7}}', 7],
    ['with usage, printed', headOf(JSON_TYPE), '{"text": "Hi", "usage": {"type": "duration", "seconds": 7.25}}', 7.25],
    ['of many words', headOf(JSON_TYPE), `{"task":"transcribe","duration":8.5,"text":"${'x'.repeat(9000)}","segments":[{"id":0}]}`, 8.5],
    ['with its duration as a text', headOf(JSON_TYPE), '{"language":"english","duration":"8.470000114440918","text":""}', 8.470_000_114],
    [
      'as a stream',
      headOf(EVENTS),
      'data: {"type":"x"}\n\ndata: {"type":"transcript.text.done","usage":{"type":"duration","seconds":3}}\n\n',
      3,
    ],
    ['as plain text of the speech server', headOf('text/plain', 200, ['X-Svc-Audio-Seconds', '12']), 'Hi\n', 12],
    ['that says "duration": 5', headOf(JSON_TYPE), JSON.stringify({ text: 'I said "duration":5 and left' }), undefined],
    ['with words that have durations', headOf(JSON_TYPE), '{"segments":[{"duration":5}],"text":"Hi"}', undefined],
    ['as plain text', headOf('text/plain'), 'Hi\n', undefined],
    ['with nonsense', headOf(JSON_TYPE), '{"usage":{"seconds":123456789}}', undefined],
    ['that failed', headOf(JSON_TYPE, 500), '{"usage":{"seconds":5}}', undefined],
  ])('%s', (_what, head, body, seconds) => {
    const media = mediaOf('transcription', head, body);
    if (seconds === undefined) expect(media).toBeUndefined();
    else expect(media?.audioSeconds).toBeCloseTo(seconds, 6);
  });
});

describe('speech', () => {
  test.each([
    ['as WAV', headOf('audio/wav'), wav(44_100, 88_200), 2],
    ['as WAV of another type', headOf('application/octet-stream'), wav(44_100, 22_050), 0.5],
    ['as samples', headOf('audio/pcm'), Buffer.alloc(72_000), 1.5],
    ['as events', headOf(EVENTS), 'data: {"type":"speech.audio.done","usage":{"input_tokens":2,"output_tokens":1,"seconds":1.5}}\n\n', 1.5],
    ['as MP3', headOf('audio/mpeg'), Buffer.alloc(5000, 0xff), undefined],
    ['as WAV without a rate', headOf('audio/wav'), wav(0, 100), undefined],
    ['as WAV with one byte for each second', headOf('audio/wav'), wav(1, 100_000), undefined],
    ['cut off in its head', headOf('audio/wav'), wav(44_100, 0).subarray(0, 20), undefined],
  ])('%s', (_what, head, body, audioSeconds) => {
    expect(mediaOf('speech', head, body)).toEqual(audioSeconds === undefined ? undefined : { audioSeconds });
  });
});

describe('images', () => {
  const image = 'QUJD'.repeat(50);
  const json = JSON.stringify({ created: 1, data: [{ b64_json: image, revised_prompt: 'a "url": x' }, { b64_json: image }] });
  const event = (name: string): string => `event: ${name}\ndata: {"type":"${name}","b64_json":"${image}"}\n\n`;
  const stream = `${event('image_generation.partial_image')}${event('image_generation.partial_image')}${event('image_generation.completed')}`;

  test.each([
    ['in JSON', headOf(JSON_TYPE), json, 2],
    ['as links', headOf(JSON_TYPE), '{"data":[{"url":"http://a/b.png"},{"url":"http://a/c.png"},{"url":"http://a/d.png"}]}', 3],
    ['with both', headOf(JSON_TYPE), '{"data":[{"url":null,"b64_json":"QUJD"}]}', 1],
    ['as a stream', headOf(EVENTS), stream, 1],
    ['of an edit as a stream', headOf(EVENTS), event('image_edit.completed').repeat(2), 2],
    ['that nobody draws', headOf(JSON_TYPE), `[${'{"url":1},'.repeat(1001)}]`, undefined],
    ['that there are none of', headOf(JSON_TYPE), '{"data":[]}', undefined],
    ['that failed', headOf(JSON_TYPE, 400), json, undefined],
  ])('%s', (_what, head, body, images) => {
    for (const pieceBytes of [Number.POSITIVE_INFINITY, 1, 2, 7, 11, 100])
      expect(mediaOf('image', head, body, pieceBytes)).toEqual(images === undefined ? undefined : { images });
  });
});

test('other answers are not searched', () => {
  expect(mediaOf('chat', headOf(JSON_TYPE), '{"usage":{"seconds":5},"url":1}')).toBeUndefined();
});
