import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MultipartScanner } from '../../../src/gateway/body/multipart-scanner.ts';
import { boundaryOf } from '../../../src/gateway/body/decide/multipart-head.ts';

const BOUNDARY = 'xYzZY';
const FILE = 'Content-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav';

interface Part {
  readonly head: string;
  readonly content: Buffer | string;
}

const field = (name: string, content: string): Part => ({ head: `Content-Disposition: form-data; name="${name}"`, content });

function bodyOf(parts: readonly Part[], boundary = BOUNDARY): Buffer {
  const pieces = parts.flatMap(({ head, content }) => [`--${boundary}\r\n${head}\r\n\r\n`, content, '\r\n']);
  return Buffer.concat([...pieces, `--${boundary}--\r\n`].map((piece) => Buffer.from(piece)));
}

function scan(bytes: Buffer, cuts: readonly number[] = [], boundary = BOUNDARY): MultipartScanner {
  const scanner = new MultipartScanner(boundary);
  let from = 0;
  for (const cut of [...cuts.map((at) => at % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]) {
    // Overwritten after the call, because the scanner must not keep a piece.
    const piece = Buffer.from(bytes.subarray(from, cut));
    scanner.feed(piece);
    piece.fill(0);
    from = cut;
  }
  return scanner;
}

const resultOf = ({ status, model, modelSeen, problem, parts }: MultipartScanner): object => ({
  status,
  model,
  modelSeen,
  problem,
  ...(status === 'invalid' ? {} : { parts }),
});

/** Contents that look like delimiters almost to their end. */
const trap = fc.constantFrom('\r', '\n', '\r\n', '\r\n-', '\r\n--', `\r\n--${BOUNDARY.slice(0, -1)}`, `--${BOUNDARY}`, BOUNDARY, 'x', '\0');
const content = fc.oneof(
  fc.array(trap, { maxLength: 8 }).map((traps) => Buffer.from(traps.join(''))),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
);
const harmless = content.filter((bytes) => !`\r\n${bytes.toString('latin1')}\r\n`.includes(`\r\n--${BOUNDARY}`));
const form = fc
  .record({
    before: fc.array(harmless, { maxLength: 3 }),
    after: fc.array(harmless, { maxLength: 3 }),
    model: fc.constantFrom('stt', 'é:ü', ''),
  })
  .map(({ before, after, model }) => {
    const files = (contents: readonly Buffer[]) => contents.map((bytes): Part => ({ head: FILE, content: bytes }));
    return { model, parts: [...files(before), field('model', model), ...files(after)] };
  });

describe('MultipartScanner', () => {
  test('finds the model and every part, wherever the body is cut', () => {
    fc.assert(
      fc.property(form, fc.array(fc.nat({ max: 2000 }), { maxLength: 8 }), ({ parts, model }, cuts) => {
        const bytes = bodyOf(parts);
        const scanner = scan(bytes, cuts);
        expect([scanner.status, scanner.model]).toEqual(['done', model]);
        const contents = scanner.parts.map(({ from, bytes: length }) => bytes.toString('latin1', from, from + length));
        expect(contents).toEqual(parts.map((part) => Buffer.from(part.content).toString('latin1')));
      }),
      { numRuns: 2000 },
    );
  });

  test('reads a body the same in any two or three pieces, and byte by byte', () => {
    const bytes = bodyOf([
      { head: FILE, content: `\r\n--${BOUNDARY.slice(0, 4)}\r\r\n` },
      field('model', 'stt'),
      field('prompt', 'a\r\n\r\nb'),
    ]);
    const whole = resultOf(scan(bytes));
    for (let first = 0; first <= bytes.length; first += 1) {
      expect(resultOf(scan(bytes, [first]))).toEqual(whole);
      for (let second = first; second <= bytes.length; second += 7) expect(resultOf(scan(bytes, [first, second]))).toEqual(whole);
    }
    expect(resultOf(scan(bytes, [...bytes.keys()]))).toEqual(whole);
  });

  test('gives the same verdict on a damaged body, wherever it is cut', () => {
    const damaged = fc.tuple(form, fc.nat(), fc.uint8Array({ maxLength: 3 }), fc.nat({ max: 4 }));
    fc.assert(
      fc.property(damaged, fc.array(fc.nat({ max: 2000 }), { maxLength: 6 }), ([{ parts }, at, put, drop], cuts) => {
        const bytes = bodyOf(parts);
        const from = at % bytes.length;
        const broken = Buffer.concat([bytes.subarray(0, from), put, bytes.subarray(from + drop)]);
        expect(resultOf(scan(broken, cuts))).toEqual(resultOf(scan(broken)));
      }),
      { numRuns: 2000 },
    );
  });

  test('knows the model before the file has arrived', () => {
    const scanner = new MultipartScanner(BOUNDARY);
    scanner.feed(bodyOf([field('model', 'stt'), { head: FILE, content: 'x' }]).subarray(0, 120));
    expect([scanner.status, scanner.modelSeen, scanner.model]).toEqual(['more', true, 'stt']);
  });

  test.each([
    ['another boundary', bodyOf([field('model', 'a')], 'other'), 'does not begin with the boundary'],
    ['text before the first boundary', Buffer.from(`preamble\r\n--${BOUNDARY}--`), 'does not begin with the boundary'],
    ['text after the last boundary', Buffer.concat([bodyOf([]), Buffer.from('x')]), 'continues after its last boundary'],
    [
      'a longer line that begins like a boundary',
      Buffer.from(`--${BOUNDARY}\r\n${FILE}\r\n\r\nx\r\n--${BOUNDARY}2\r\n`),
      'does not end with CR LF',
    ],
    ['a bare line feed after a boundary', Buffer.from(`--${BOUNDARY}\n`), 'does not end with CR LF'],
    ['a part without headers', Buffer.from(`--${BOUNDARY}\r\n\r\nx\r\n--${BOUNDARY}--`), 'Content-Disposition'],
    ['headers of 1 MB', bodyOf([field('x'.repeat(1e6), '')]), 'more than 4096 bytes'],
    ['10,000 parts', bodyOf(Array.from({ length: 10_000 }, () => field('a', ''))), 'more than 1000 parts'],
    ['two models', bodyOf([field('model', 'a'), field('model', 'b')]), 'The field "model" is repeated'],
    ['a model in a file', bodyOf([{ head: FILE.replace('"file"', '"model"'), content: 'a' }]), 'send it as a field'],
    ['a model of 5,000 bytes', bodyOf([field('model', 'x'.repeat(5000))]), 'more than 4096 bytes'],
    ['two names in a part', bodyOf([field('file"; name="model', 'a')]), 'with one "name"'],
    ['two dispositions in a part', bodyOf([{ head: `${FILE}\r\n${FILE}`, content: '' }]), 'two "Content-Disposition"'],
    ['a folded header', bodyOf([{ head: `${FILE};\r\n charset=x`, content: '' }]), 'on a line of its own'],
    ['another disposition', bodyOf([{ head: 'Content-Disposition: attachment; name="model"', content: '' }]), 'form-data'],
  ])('refuses %s', (_what, bytes, message) => {
    expect(scan(bytes)).toMatchObject({ status: 'invalid', problem: { message: expect.stringContaining(message) } });
    expect(resultOf(scan(bytes, [10, 33, 50, 80]))).toEqual(resultOf(scan(bytes)));
  });

  test.each([
    ['quotes, as curl escapes them', 'filename="a\\"b.wav"', 'a"b.wav'],
    ['quotes, as browsers escape them', 'filename="a%22b.wav"', 'a%22b.wav'],
    ['UTF-8', 'filename="Ünï – 語.wav"', 'Ünï – 語.wav'],
    ['UTF-8 in the extended form', "filename*=UTF-8''%C3%9C.wav", "UTF-8''%C3%9C.wav"],
    ['a path of Windows', 'filename="C:\\tmp\\a.wav"', 'C:\\tmp\\a.wav'],
    ['a separator', 'filename="a; name=model.wav"', 'a; name=model.wav'],
    ['no quotes', 'filename=a.wav', 'a.wav'],
  ])('reads a file name with %s', (_what, parameter, fileName) => {
    const [part] = scan(bodyOf([{ head: `content-disposition: form-data; name="file"; ${parameter}`, content: 'x' }])).parts;
    expect(part).toMatchObject({ name: 'file', fileName, bytes: 1 });
  });

  test('reads a file name of many backslashes in linear time', () => {
    const head = `Content-Disposition: form-data; name="file"; filename="${'\\'.repeat(3999)}`;
    expect(scan(bodyOf([{ head, content: '' }])).status).toBe('invalid');
  });
});

describe('boundaryOf', () => {
  test.each([
    ['multipart/form-data; boundary=abc', 'abc'],
    ['multipart/form-data; charset=utf-8; boundary="a b?c"', 'a b?c'],
    ['Multipart/Form-Data;BOUNDARY=----WebKitFormBoundary7MA4', '----WebKitFormBoundary7MA4'],
    ['multipart/form-data', undefined],
    ['multipart/form-data; boundary=', undefined],
    ['multipart/form-data; boundary=""', undefined],
    ['multipart/form-data; boundary="a "', undefined],
    ['multipart/form-data; boundary=a; boundary=b', undefined],
    [`multipart/form-data; boundary=${'a'.repeat(71)}`, undefined],
    ['multipart/form-data; boundary="a\\r\\nb"', undefined],
    ['multipart/form-data; boundary=é', undefined],
  ])('%s: %s', (header, boundary) => {
    expect(boundaryOf(header)).toBe(boundary);
  });
});
