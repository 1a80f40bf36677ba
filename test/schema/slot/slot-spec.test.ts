import { describe, expect, test } from '@jest/globals';
import { SlotName } from '../../../src/schema/words/names.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import { formatProblem } from '../../../src/schema/slot/spec-problem.ts';
import { OUTSIDE_LIMITS, WITHIN_LIMITS } from '../refused-combinations.ts';

describe('parseSlot()', () => {
  const primary = SlotName.parse('primary');

  test('fills in the defaults of a built-in slot', () => {
    const parsed = parseSlot(primary, { model: { default: 'a.gguf' } });
    expect(parsed).toMatchObject({
      ok: true,
      spec: { enabled: true, provider: 'gguf', backend: 'vulkan', lifecycle: { startTimeoutMs: 300_000 } },
    });
  });

  test('takes the provider of the model if the name has no default, and requires one if the model does not say it either', () => {
    const parse = (name: string, model: string) => parseSlot(SlotName.parse(name), { model: { default: model } });
    expect(parse('mine', 'a.gguf')).toMatchObject({ ok: true, spec: { provider: 'gguf' } });
    expect(parse('mine', 'demo-fox')).toMatchObject({ ok: true, spec: { provider: 'gguf' } });
    expect(parse('img', 'a.gguf')).toMatchObject({ ok: true, spec: { provider: 'image' } });
    expect(parse('mine', 'unheard-of')).toMatchObject({ ok: false, problems: [{ path: ['provider'] }] });
    expect(parseSlot(SlotName.parse('mine'), { model: { default: 5 } })).toMatchObject({ ok: false });
  });
});

describe('the limits of durations and sizes', () => {
  const slot = SlotName.parse('primary');
  const check = (part: object) => parseSlot(slot, { model: { default: 'a.gguf' }, ...part }, 'camelCase');

  test.each(OUTSIDE_LIMITS)('refuse %j, and the message names them', (part, path, limits) => {
    const parsed = check(part);
    const found = parsed.ok ? [] : parsed.problems.map((problem) => formatProblem(problem, 'camelCase'));
    expect(found).toEqual([expect.stringMatching(new RegExp(`^${path.replace('.', '\\.')}: Use a (duration|size) ${limits}, not "`))]);
  });

  test.each(WITHIN_LIMITS)('accept %j', (part) => expect(check(part).ok).toBe(true));
});
