import { describe, expect, test } from '@jest/globals';
import { bestOf, entryOf, labelOf } from '../../dashboard/src/decide/found-models.ts';
import { freeName, modelsFor, PURPOSES, slotsFor, USUAL_PROVIDER } from '../../dashboard/src/decide/model-facts.ts';
import { kindFacts } from '../../src/schema/slot/provider-kinds.ts';
import type { FoundModel } from '../../dashboard/src/types.ts';

const quantisation = (name: string | null, fits: boolean | null): FoundModel['quantisations'][number] => ({
  uri: `hf:o/r:${name ?? 'file'}`,
  quantisation: name,
  files: ['m.gguf'],
  size_bytes: 2 ** 31,
  needed_bytes: 2 ** 32,
  fits,
  projector: null,
});
const found = (more: Partial<FoundModel> = {}): FoundModel => ({
  id: 'o/r',
  url: 'https://hub.test/o/r',
  task: 'text-generation',
  downloads: 1,
  likes: 1,
  license: 'mit',
  license_url: null,
  needs_acceptance: false,
  gated: false,
  quantisations: [],
  draft: null,
  problem: null,
  ...more,
});

test.each([
  ['the largest that fits', [false, true, true], 1],
  ['the smallest if none fits', [false, false, false], 2],
  ['the largest where nothing is known', [null, null, null], 0],
])('%s is preselected', (_what, fits, index) => {
  const quantisations = fits.map((each, at) => quantisation(`Q${at}`, each));
  expect(bestOf(found({ quantisations }))).toBe(quantisations[index]);
});

test('a repository without models has none to preselect', () => {
  expect(bestOf(found())).toBeUndefined();
});

test.each([
  [quantisation('Q4_K_M', true), 'Q4_K_M · 2.0 GiB · fits'],
  [quantisation('Q4_K_M', false), 'Q4_K_M · 2.0 GiB · too large'],
  [quantisation(null, null), 'm.gguf · 2.0 GiB'],
])('%j is labelled %s', (each, label) => {
  expect(labelOf(each)).toBe(label);
});

describe('a found model', () => {
  const slot = (name: string, capability: string): Parameters<typeof slotsFor>[1][number] =>
    JSON.parse(JSON.stringify({ name, spec: {}, status: { provider: 'gguf', capabilities: [capability] } }));
  const slots = [slot('primary', 'chat'), slot('embed', 'embedding'), slot('ranks', 'rerank')];

  test.each([
    ['text-generation', 'primary'],
    ['image-text-to-text', 'primary'],
    [null, 'primary'],
    ['feature-extraction', 'embed'],
    ['sentence-similarity', 'embed'],
    ['text-ranking', 'ranks'],
  ])('with the task %p is offered to %s', (task, name) => {
    const entry = entryOf(found({ task }), quantisation('Q4_K_M', true));
    expect(entry).toMatchObject({ id: 'hf:o/r:Q4_K_M', size_bytes: 2 ** 31, license: 'mit', selectable: true });
    expect(slotsFor(entry, slots)).toEqual([name]);
  });
});

describe('a new slot', () => {
  test.each([
    ['chat', [], 'primary'],
    ['chat', ['primary'], 'chat'],
    ['chat', ['primary', 'chat'], 'chat-2'],
    ['rerank', ['primary'], 'rerank'],
    ['transcription', ['stt', 'transcription', 'transcription-2'], 'transcription-3'],
  ] as const)('for %s beside %j is called "%s"', (purpose, names, name) => {
    expect(freeName(purpose, names)).toBe(name);
  });

  test('offers the models of its purpose that can be chosen, those that are here first', () => {
    const model = (id: string, kind: string, more: object = {}): Parameters<typeof modelsFor>[1][number] =>
      JSON.parse(JSON.stringify({ id, kind, provider: 'gguf', pooling: null, present: false, selectable: true, ...more }));
    const models = [
      model('far', 'chat'),
      model('broken', 'chat', { selectable: false }),
      model('other', 'embed', { present: true }),
      model('here', 'coder', { present: true }),
    ];
    expect(modelsFor('chat', models).map(({ id }) => id)).toEqual(['here', 'far']);
    expect(modelsFor('embedding', models).map(({ id }) => id)).toEqual(['other']);
  });

  test('of a model in no list has a provider that serves its purpose', () => {
    for (const purpose of PURPOSES)
      expect([purpose, kindFacts(USUAL_PROVIDER[purpose]).serves]).toEqual([purpose, expect.arrayContaining([purpose])]);
  });
});
