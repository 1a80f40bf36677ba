import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { refuseUse, route, type RouteDecision } from '../../../../src/gateway/route/decide/route.ts';
import { nearestPath } from '../../../../src/gateway/route/decide/inference-paths.ts';
import type { ProviderRegistry } from '../../../../src/providers/provider.ts';
import { EMPTY_BOARD } from '../../../../src/reconciler/board.ts';
import { PLAIN_PROVIDER } from '../../../support/plain-provider.ts';
import { boardSlot, boardView, DISABLED, OPEN, PARK, slotName, type SlotSketch } from '../../support/board-fixture.ts';

const chat = (model: string | undefined, ...slots: SlotSketch[]): RouteDecision =>
  route('chat', '/v1/chat/completions', model, boardView(1, slots));

const nameOf = (decision: RouteDecision): string => (decision.kind === 'slot' ? decision.slot.name : decision.kind);

describe('route()', () => {
  test('finds a slot by model id, alias and its own name', () => {
    const slots: SlotSketch[] = [{ name: 'primary', model: 'dir/a.gguf', aliases: ['gpt-4'] }, { name: 'other' }];
    for (const model of ['dir/a.gguf', 'gpt-4', 'primary']) expect(nameOf(chat(model, ...slots))).toBe('primary');
  });

  test.each([
    ['chat', '/v1/chat/completions', 'primary'],
    ['completion', '/v1/completions', 'primary'],
    ['rerank', '/v1/rerank', 'primary'],
    ['embedding', '/v1/embeddings', 'embed'],
  ] as const)('uses the default slot of %s when no model is named', (capability, path, slot) => {
    const view = boardView(1, [{ name: 'embed' }, { name: 'primary' }]);
    expect(nameOf(route(capability, path, undefined, view))).toBe(slot);
  });

  test('lists the known names when the model is unknown', () => {
    const decision = chat('gpt-9', { name: 'primary', model: 'a', aliases: ['b'] });
    expect(decision).toMatchObject({ kind: 'refuse', code: 'model.not_found' });
    expect(decision.kind === 'refuse' && decision.message).toMatch(/"gpt-9".*"primary".*"a".*"b"/);
  });

  test('lists only the names of slots that serve the capability, with aliases', () => {
    const slots: SlotSketch[] = [
      { name: 'embed', model: 'e', capabilities: ['embedding'] },
      { name: 'primary', model: 'a', aliases: ['gpt-4'], capabilities: ['chat'] },
    ];
    const decision = route('embedding', '/v1/embeddings', 'gpt-9', boardView(1, slots));
    expect(decision).toMatchObject({ message: 'Model "gpt-9" does not exist; models for embedding: "embed", "e"' });
    expect(chat('gpt-9', ...slots)).toMatchObject({ message: 'Model "gpt-9" does not exist; models for chat: "primary", "a", "gpt-4"' });
    const other = route('image', '/v1/images/generations', 'x', boardView(1, slots));
    expect(other).toMatchObject({ message: 'Model "x" does not exist; no slot serves image' });
  });

  test('does not repeat a long name in full', () => {
    const decision = chat('x'.repeat(4000), { name: 'primary' });
    expect(decision.kind === 'refuse' && decision.message.length).toBeLessThan(400);
  });

  test('refuses a capability that no model of that name has, and names the slots that have it', () => {
    const decision = route(
      'rerank',
      '/v1/rerank',
      'primary',
      boardView(1, [{ name: 'primary', capabilities: ['chat'] }, { name: 'ranker' }]),
    );
    expect(decision).toMatchObject({ kind: 'refuse', code: 'model.unsupported' });
    expect(decision.kind === 'refuse' && decision.message).toContain('"ranker"');
  });

  test('prefers a capable slot, then an open one, then one worth waiting for', () => {
    const shared = (name: string, more: Partial<SlotSketch>): SlotSketch => ({ name, model: 'm', ...more });
    const incapable = shared('a', { capabilities: ['embedding'], admission: OPEN });
    const refused = shared('b', { admission: DISABLED });
    const parked = shared('c', { admission: PARK });
    const open = shared('d', { admission: OPEN });
    expect(nameOf(chat('m', incapable, refused, parked, open))).toBe('d');
    expect(nameOf(chat('m', incapable, refused, parked))).toBe('c');
    expect(nameOf(chat('m', incapable, refused))).toBe('b');
    expect(nameOf(chat('m', incapable))).toBe('refuse');
  });

  test('refuses nothing before the first pass', () => {
    expect(route('chat', '/v1/chat/completions', 'anything', EMPTY_BOARD).kind).toBe('unknown');
  });

  test('reports the problem of a slot whose document has never been valid', () => {
    const name = slotName('primary');
    const view = { ...boardView(1, []), refused: new Map([[name, [{ path: ['model'], message: 'Unknown key "modle"' }]]]) };
    const decision = route('chat', '/v1/chat/completions', undefined, view);
    expect(decision).toMatchObject({ kind: 'refuse', code: 'slot.stalled' });
    expect(decision.kind === 'refuse' && decision.message).toContain('Unknown key "modle"');
  });

  test('returns a decision for every name and board', () => {
    const sketch = fc.record({
      name: fc.constantFrom('primary', 'embed', 'a', 'b'),
      model: fc.constantFrom('m', 'n'),
      aliases: fc.subarray(['m', 'x', 'primary', '__proto__', 'constructor']),
      capabilities: fc.subarray(['chat', 'embedding', 'rerank'] as const),
      admission: fc.constantFrom(OPEN, PARK, DISABLED),
    });
    const slots = fc.uniqueArray(sketch, { selector: (slot) => slot.name });
    const name = fc.option(fc.oneof(fc.constantFrom('m', 'primary', '__proto__', 'constructor', ''), fc.string()), { nil: undefined });
    fc.assert(
      fc.property(slots, name, fc.constantFrom('chat', 'embedding', 'image'), (sketches, model, capability) => {
        const view = boardView(1, sketches);
        const decision = route(capability, '/v1/x', model, view);
        if (decision.kind === 'slot') expect(decision.slot.capabilities).toContain(capability);
        else expect(decision).toMatchObject({ kind: 'refuse', message: expect.stringMatching(/./) });
      }),
    );
  });
});

describe('refuseUse()', () => {
  const providers: ProviderRegistry = {
    gguf: {
      ...PLAIN_PROVIDER,
      models: { ...PLAIN_PROVIDER.models, describe: ({ dimensions }) => ({ dimensions: Number(dimensions) }) },
      abilities(_name, _spec, { contents: { sees, hears, breaks } = {} }) {
        if (breaks === true) throw new Error('broken');
        return { vision: sees === undefined ? undefined : sees === true, audio: hears === true };
      },
    },
  };
  const refusal = (
    used: Parameters<typeof refuseUse>[0],
    capability: 'chat' | 'embedding',
    ...[own = { name: 'a' }, ...others]: SlotSketch[]
  ) =>
    refuseUse(
      used,
      { path: { path: '/v1/chat/completions', capability }, slot: boardSlot(own) },
      boardView(1, [own, ...others]),
      providers,
    );
  const IMAGE = { media: new Map([['vision', 'messages[0].content[1].image_url']] as const) };
  const SOUND = { media: new Map([['audio', 'messages[0].content[0].input_audio']] as const) };

  test('refuses images and recordings for a model that is known to take none, and names slots that do', () => {
    const blind: SlotSketch = { name: 'primary', model: 'text', contents: { sees: false } };
    expect(refusal(IMAGE, 'chat', blind)).toEqual({
      kind: 'refuse',
      code: 'model.no_vision',
      param: 'messages[0].content[1].image_url',
      message: 'Slot "primary" with model "text" takes no images: send text only',
    });
    expect(refusal(IMAGE, 'chat', blind, { name: 'eyes', contents: { sees: true } })?.message).toMatch(/takes no images: use "eyes"$/);
    expect(refusal(SOUND, 'chat', blind)).toMatchObject({ code: 'model.no_audio', param: 'messages[0].content[0].input_audio' });
  });

  test.each<[string, SlotSketch]>([
    ['takes them', { name: 'a', contents: { sees: true } }],
    ['may take them', { name: 'a', contents: {} }],
    ['is not known', { name: 'a' }],
    ['cannot be judged', { name: 'a', contents: { breaks: true } }],
  ])('lets images through to a model that %s', (_, slot) => {
    expect(refusal(IMAGE, 'chat', slot)).toBeUndefined();
  });

  test('refuses another length of embeddings than that of the model, and nothing else', () => {
    const slot: SlotSketch = { name: 'embed', model: 'e', capabilities: ['chat', 'embedding'], contents: { dimensions: 768 } };
    expect(refusal({ dimensions: 768 }, 'embedding', slot)).toBeUndefined();
    expect(refusal({ dimensions: 256 }, 'chat', slot)).toBeUndefined();
    expect(refusal({}, 'embedding', slot)).toBeUndefined();
    expect(refusal({ dimensions: 256 }, 'embedding', slot)).toMatchObject({
      code: 'model.unsupported',
      param: 'dimensions',
      message: 'Slot "embed" with model "e" cannot change the length of its embeddings, which have 768: leave out "dimensions"',
    });
  });
});

describe('nearestPath()', () => {
  const known = ['/v1/models', '/v1/chat/completions', '/v1/completions', '/v1/embeddings', '/api/status', '/api/health/system'];
  test.each([
    ['/chat/completions', '/v1/chat/completions'],
    ['/completions', '/v1/completions'],
    ['/v1/v1/models', '/v1/models'],
    ['/openai/v1/chat/completions/', '/v1/chat/completions'],
    ['/openai/deployments/gpt/chat/completions', '/v1/chat/completions'],
    ['/v1/chat/completion', '/v1/chat/completions'],
    ['/v1/embedings', '/v1/embeddings'],
    ['/health', '/api/health/system'],
    ['/api/tags', '/v1/models'],
    ['/something/else', undefined],
    ['/__proto__', undefined],
    ['', undefined],
  ])('of "%s" is "%s"', (asked, path) => expect(nearestPath(asked, known)).toBe(path));
});
