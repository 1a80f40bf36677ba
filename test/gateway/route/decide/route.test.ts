import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { route, type RouteDecision } from '../../../../src/gateway/route/decide/route.ts';
import { EMPTY_BOARD } from '../../../../src/reconciler/board.ts';
import { boardView, DISABLED, OPEN, PARK, slotName, type SlotSketch } from '../../support/board-fixture.ts';

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
