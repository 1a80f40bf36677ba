/** Pure functions of the playground, the Hardware page and the slot form. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { EMPTY_ANSWER, extendAnswer, chatBody } from '../../dashboard/src/decide/chat.ts';
import { FORM_FIELDS, readField, writeField } from '../../dashboard/src/decide/slot-document.ts';
import {
  addToGallery,
  cachedUrls,
  extendDrawing,
  imageBody,
  NOTHING_DRAWN,
  readGallery,
  readSettings,
} from '../../dashboard/src/decide/images.ts';
import { drawAdmission, memoriesOf } from '../../dashboard/src/decide/memory-shares.ts';
import { mixVoices, snippetOf } from '../../dashboard/src/decide/snippets.ts';
import { linesOf, cosineSimilarity } from '../../dashboard/src/decide/vectors.ts';
import { encodeWav } from '../../dashboard/src/decide/wav.ts';
import type { Explanation, Hardware } from '../../dashboard/src/types.ts';
import { SlotName } from '../../src/schema/words/names.ts';

describe('code samples', () => {
  const facts = { origin: 'http://127.0.0.1:8080', kind: 'chat', needsToken: true } as const;

  test('quote user input', () => {
    const body = { model: 'primary', messages: [{ role: 'user', content: `It's "so"` }] };
    expect(snippetOf('curl', { ...facts, body })).toContain(String.raw`It'\''s \"so\"`);
    expect(snippetOf('curl', { ...facts, body })).toContain('$SVC_TOKEN');
    expect(snippetOf('Python', { ...facts, body })).toContain(String.raw`"It's \"so\""`);
    expect(snippetOf('TypeScript', { ...facts, body, needsToken: false })).toContain(`apiKey: 'none'`);
  });

  test.each([
    ['image', { model: 'img', prompt: 'A fox', seed: 7 }, 'Python', 'extra_body={"seed": 7}'],
    ['image', { model: 'img', prompt: 'A fox', seed: 7 }, 'TypeScript', '...{ seed: 7 },'],
    ['image', { model: 'img', prompt: 'A fox', negative_prompt: 'a dog' }, 'Python', 'extra_body={"negative_prompt": "a dog"}'],
    [
      'edit',
      { model: 'img', prompt: 'A hat', seed: 7 },
      'curl',
      `/v1/images/edits \\\n  -H "authorization: Bearer $SVC_TOKEN" \\\n  -F 'model=img'`,
    ],
    ['edit', { model: 'img', prompt: "It's a hat", seed: 7 }, 'curl', String.raw`-F 'prompt=It'\''s a hat'`],
    ['masked-edit', { model: 'img', prompt: 'A hat' }, 'curl', '-F image=@image.png \\\n  -F mask=@mask.png'],
    ['masked-edit', { model: 'img', prompt: 'A hat' }, 'Python', 'client.images.edit('],
    ['masked-edit', { model: 'img', prompt: 'A hat' }, 'Python', 'mask=open("mask.png", "rb"),'],
    ['masked-edit', { model: 'img', prompt: 'A hat', seed: 7 }, 'TypeScript', `...{ seed: 7 },\n  image: createReadStream('image.png'),`],
    ['speech', { model: 'tts', input: 'Hi', response_format: 'wav' }, 'curl', '-o speech.wav'],
    ['speech', { model: 'tts', input: 'Hi', response_format: 'wav' }, 'Python', 'write_to_file("speech.wav")'],
    ['transcription', { model: 'stt' }, 'curl', `-F 'model=stt'`],
    ['transcription', { model: 'stt' }, 'TypeScript', `createReadStream('recording.wav')`],
    ['embedding', { model: 'embed', input: ['a', 'b'] }, 'Python', 'input=["a", "b"]'],
    ['rerank', { query: 'a', return_documents: true, top_n: null }, 'Python', '{"query": "a", "return_documents": True, "top_n": None}'],
    ['rerank', { query: 'a' }, 'TypeScript', `client.post('/rerank', { body: {"query":"a"} })`],
  ] as const)('call "%s" with %j in %s', (kind, body, name, expected) => {
    expect(snippetOf(name, { ...facts, kind, body })).toContain(expected);
  });
});

describe('cosineSimilarity()', () => {
  const vector = fc.array(fc.integer({ min: -100, max: 100 }), { minLength: 3, maxLength: 3 });

  test('is symmetric and between -1 and 1', () => {
    fc.assert(
      fc.property(vector, vector, (one, other) => {
        expect(cosineSimilarity(one, other)).toBeCloseTo(cosineSimilarity(other, one));
        expect(Math.abs(cosineSimilarity(one, other))).toBeLessThanOrEqual(1);
      }),
    );
  });

  test('is 1 for parallel vectors, and 0 for orthogonal and zero vectors', () => {
    expect([cosineSimilarity([1, 2], [2, 4]), cosineSimilarity([1, 0], [0, 5]), cosineSimilarity([0, 0], [1, 1])]).toEqual([
      expect.closeTo(1),
      0,
      0,
    ]);
    expect(linesOf(' a \n\n b\n')).toEqual(['a', 'b']);
  });
});

test('a recording becomes a mono 16-bit WAV file', () => {
  const bytes = encodeWav(new Float32Array([0, 1, -1, 2]), 16_000);
  const view = new DataView(bytes.buffer);
  expect(new TextDecoder().decode(bytes.subarray(0, 16))).toMatch(/^RIFF....WAVEfmt $/s);
  expect([view.getUint32(24, true), view.getUint16(22, true), view.getUint16(34, true), view.getUint32(40, true)]).toEqual([
    16_000, 1, 16, 8,
  ]);
  expect([0, 1, 2, 3].map((index) => view.getInt16(44 + index * 2, true))).toEqual([0, 32_767, -32_767, 32_767]);
});

test('a streamed image shows its previews, then the result or an error', () => {
  const event = (name: string, data: string) => JSON.stringify({ type: `image_generation.${name}`, b64_json: data, output_format: 'jpeg' });
  const previewed = extendDrawing(NOTHING_DRAWN, event('partial_image', 'QQ=='));
  expect(previewed).toEqual({ ...NOTHING_DRAWN, preview: 'data:image/jpeg;base64,QQ==' });
  expect(extendDrawing(previewed, event('completed', 'Qg=='))).toEqual({ ...NOTHING_DRAWN, done: ['data:image/jpeg;base64,Qg=='] });
  const edited = { type: 'image_edit.completed', b64_json: 'Qg==', _hal0: { ignored: ['negative_prompt'] } };
  expect(extendDrawing(NOTHING_DRAWN, JSON.stringify(edited)).ignored).toEqual(['negative_prompt']);
  expect(extendDrawing(previewed, '{"error":{"message":"Too large"}}').failure).toBe('Too large');
  expect(extendDrawing(previewed, 'nonsense')).toBe(previewed);
  expect(extendDrawing(NOTHING_DRAWN, '{"b64_json":"QQ==","output_format":"svg+xml"}').done).toEqual(['data:image/png;base64,QQ==']);
});

test('settings of an image become a request, and what is empty is left to the model', () => {
  const settings = { prompt: 'A fox', negative: 'a dog', size: '512x512', seed: '7', steps: '4' };
  const body = { model: 'img', prompt: 'A fox', negative_prompt: 'a dog', size: '512x512', seed: 7, steps: 4 };
  expect(imageBody('img', settings)).toEqual(body);
  expect(imageBody('img', readSettings({ prompt: 'A fox', negative: ' ', seed: 7 }))).toEqual({ model: 'img', prompt: 'A fox' });
});

test('the gallery accepts only URLs of the cache', () => {
  const path = '/api/images/cache/11111111-2222-4333-8444-555555555555.png';
  expect(
    cachedUrls({ data: [{ url: `https://gpu.example.com/svc${path}` }, { url: 'https://evil.test/x.png' }, { b64_json: '' }] }),
  ).toEqual([path]);
  const kept = [{ url: path, ...readSettings({ prompt: 'A fox', seed: '7' }) }];
  expect(readGallery(JSON.stringify([...kept, { url: 'javascript:alert(1)', prompt: '' }]))).toEqual(kept);
  // Images that were kept before their settings were.
  expect(readGallery(JSON.stringify([{ url: path, prompt: 'A fox' }]))).toEqual([{ url: path, ...readSettings({ prompt: 'A fox' }) }]);
  expect(readGallery('nonsense')).toEqual([]);
  expect(
    addToGallery(
      Array.from({ length: 100 }, () => ({ url: '', ...readSettings({}) })),
      kept,
    ),
  ).toHaveLength(60);
});

test('a message with images is sent in parts, and one without as a string', () => {
  const user = { ...EMPTY_ANSWER, role: 'user', content: 'What is it?' } as const;
  expect(chatBody('primary', [user])).toEqual({ model: 'primary', messages: [{ role: 'user', content: 'What is it?' }] });
  const [sent] = Object(chatBody('primary', [{ ...user, images: ['data:x'] }], [{ type: 'function' }]))['messages'];
  expect(sent.content).toEqual([
    { type: 'text', text: 'What is it?' },
    { type: 'image_url', image_url: { url: 'data:x' } },
  ]);
  const piece = (args: string) =>
    JSON.stringify({ choices: [{ delta: { tool_calls: [{ index: 0, function: { name: '', arguments: args } }] } }] });
  expect(extendAnswer(extendAnswer(EMPTY_ANSWER, piece('{"a"')), piece(':1}')).tools).toEqual([{ id: '', name: '', args: '{"a":1}' }]);
});

describe('the memory of a machine', () => {
  const [one, two] = [SlotName.parse('one'), SlotName.parse('two')];
  const candidate = { priority: 0, running: true, admitted: true, because: 'always' } as const;
  const share = (slot: SlotName, bytes: number, admitted = true): Explanation => ({
    name: slot,
    text: '',
    problems: [],
    workloads: [],
    memory: {
      admitted,
      may_wait: false,
      placement: [{ memory: 'host', bytes }],
      on_host: null,
      short: { memory: 'host', bytes, budget_bytes: 90, promised_bytes: 0, others_bytes: 7, kept_for: null },
      candidates: [
        { ...candidate, slot: one, bytes: 60 },
        { ...candidate, slot: two, bytes: 50, admitted: false, because: 'waiting' },
      ],
    },
  });
  const hardware: Hardware = {
    source: 'machine',
    recording: null,
    cpu: null,
    memory_total_bytes: 100,
    memory_available_bytes: 30,
    devices: [],
    devices_hidden: null,
    programs: [],
  };

  test('is divided into slots, other programs and free memory', () => {
    expect(memoriesOf(hardware, [share(one, 60), share(two, 50, false)])).toEqual([
      {
        memory: 'host',
        totalBytes: 100,
        usedBytes: 70,
        slots: [{ slot: 'one', bytes: 60 }],
        reservedBytes: 60,
        othersBytes: 10,
        freeBytes: 30,
      },
    ]);
    expect(memoriesOf({ ...hardware, memory_available_bytes: null }, [share(one, 60)])[0]).toMatchObject({ othersBytes: 7, freeBytes: 33 });
  });

  test('is drawn in the order of admission: a pending slot begins where the admitted ones end', () => {
    const { memory } = share(two, 50, false);
    expect(memory === null ? undefined : drawAdmission(memory)).toMatchObject({
      budgetBytes: 90,
      wholeBytes: 110,
      rows: [
        { slot: 'one', from: 0, admitted: true },
        { slot: 'two', from: 60, admitted: false },
      ],
    });
  });
});

describe('the form of a slot', () => {
  const field = (key: string) => FORM_FIELDS.find((each) => each.key === key) ?? FORM_FIELDS[0];
  const document = { backend: 'cpu', model: { default: 'demo-fox' }, lifecycle: { idle_timeout: '5m' } };
  const write = (key: string, entered: string) => {
    const found = field(key);
    return found === undefined ? {} : writeField(found, entered, document);
  };

  test.each([
    ['model.context', ' 4096 ', { ...document, model: { default: 'demo-fox', context: 4096 } }],
    ['model.context', 'many', { ...document, model: { default: 'demo-fox', context: 'many' } }],
    ['model.aliases', 'a, b,', { ...document, model: { default: 'demo-fox', aliases: ['a', 'b'] } }],
    ['lifecycle.idle_timeout', '', { backend: 'cpu', model: { default: 'demo-fox' } }],
    ['backend', '', { model: { default: 'demo-fox' }, lifecycle: { idle_timeout: '5m' } }],
    ['enabled', 'false', { ...document, enabled: false }],
  ])('writes %s as %j', (key, entered, expected) => {
    expect(write(key, entered)).toEqual(expected);
  });

  test('reads the document, and the default of a switch', () => {
    const read = (key: string) => FORM_FIELDS.filter((each) => each.key === key).map((each) => readField(each, document));
    expect([read('enabled'), read('model.default'), read('model.context'), read('lifecycle.idle_timeout')]).toEqual([
      ['true'],
      ['demo-fox'],
      [''],
      ['5m'],
    ]);
  });
});

test.each([
  ['af_bella', '', 50, 'af_bella'],
  ['af_bella', 'af_bella', 50, 'af_bella'],
  ['af_bella', 'af_sky', 30, 'af_bella(70)+af_sky(30)'],
  ['af_bella', 'af_sky', 100, 'af_sky'],
  ['af_bella', 'af_sky', Number.NaN, 'af_bella'],
])('mixes the voices %p and %p with %p %%', (first, second, share, mixed) => {
  expect(mixVoices(first, second, share)).toBe(mixed);
});
