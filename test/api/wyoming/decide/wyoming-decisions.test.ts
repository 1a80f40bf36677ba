import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { encodeWyoming, MOST_LINE_BYTES, readWyoming, takeSentences } from '../../../../src/api/wyoming/decide/wyoming-events.ts';
import { parseSettings } from '../../../../src/schema/settings/settings.ts';

function readAll(pieces: readonly Buffer[]) {
  const events = [];
  let arrived = Buffer.alloc(0);
  for (const piece of pieces) {
    arrived = Buffer.concat([arrived, piece]);
    for (let read = readWyoming(arrived); read.kind !== 'more'; read = readWyoming(arrived)) {
      if (read.kind === 'problem') return { events, problem: read.message };
      events.push(read.event);
      arrived = Buffer.from(read.rest);
    }
  }
  return { events, problem: undefined };
}

describe('readWyoming()', () => {
  test('reads the forms of the README: data in the line, data behind it, both, and a payload', () => {
    const bytes = Buffer.concat([
      Buffer.from('{"type":"describe"}\n'),
      Buffer.from('{"type":"transcribe","data":{"language":"en"}}\n'),
      Buffer.from('{"type":"audio-chunk","data":{"rate":1},"data_length":11,"payload_length":4}\n{"width":2}\u0001\u0002\n\u0004'),
    ]);
    expect(readAll([bytes]).events).toEqual([
      { type: 'describe', data: {}, payload: Buffer.alloc(0) },
      { type: 'transcribe', data: { language: 'en' }, payload: Buffer.alloc(0) },
      { type: 'audio-chunk', data: { rate: 1, width: 2 }, payload: Buffer.from([1, 2, 10, 4]) },
    ]);
  });

  test('reads what it writes, however it arrives', () => {
    const event = fc.record({
      type: fc.string({ minLength: 1, maxLength: 20 }),
      data: fc.dictionary(
        fc.string({ maxLength: 8 }).filter((key) => key !== '__proto__'),
        fc.oneof(fc.string(), fc.integer(), fc.constant(null)),
      ),
      payload: fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes)),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 5 }), fc.integer({ min: 1, max: 40 }), (events, size) => {
        const bytes = Buffer.concat(events.map(({ type, data, payload }) => encodeWyoming(type, data, payload)));
        const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
          bytes.subarray(index * size, (index + 1) * size),
        );
        expect(readAll(pieces)).toEqual({ events: events.map((each) => ({ ...each, data: { ...each.data } })), problem: undefined });
      }),
    );
  });

  test('never throws, and keeps at most one line that is too long', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 5 }),
        (pieces) => void readAll(pieces.map((piece) => Buffer.from(piece))),
      ),
    );
    expect(readAll([Buffer.alloc(MOST_LINE_BYTES - 1, 'x')]).problem).toBeUndefined();
    expect(readAll([Buffer.alloc(MOST_LINE_BYTES, 'x')]).problem).toContain(`more than ${MOST_LINE_BYTES} bytes`);
  });
});

test.each([
  ['Hello. How ', 'Hello.', ' How '],
  ['Hello', '', 'Hello'],
  ['It is 3.14 exactly', '', 'It is 3.14 exactly'],
  ['One! Two? Three', 'One! Two?', ' Three'],
  ['你好。再', '你好。', '再'],
  ['A line\nand', 'A line\n', 'and'],
  ['', '', ''],
])('of %j, %j can be spoken', (text, ready, rest) => {
  expect(takeSentences(text)).toEqual({ ready, rest });
});

test.each([
  ['10300', { host: '127.0.0.1', port: 10_300 }],
  ['0.0.0.0:10300', { host: '0.0.0.0', port: 10_300 }],
])('SVC_WYOMING=%s', (text, address) => {
  expect(parseSettings({ SVC_WYOMING: text })).toMatchObject({ ok: true, settings: { SVC_WYOMING: address } });
});
test('without SVC_WYOMING, nothing listens', () => {
  const parsed = parseSettings({});
  expect(parsed.ok && parsed.settings.SVC_WYOMING).toBeUndefined();
  expect(parseSettings({ SVC_WYOMING: 'ten' })).toMatchObject({ ok: false });
});
