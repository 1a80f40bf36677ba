import { describe, expect, test } from '@jest/globals';
import { chooseText, pausePatch, type AcceptedText } from '../../../src/schema/slot/paused-text.ts';
import { mergePatch } from '../../../src/schema/slot/slot-editor.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import { SlotName } from '../../../src/schema/words/names.ts';

function text(model: string, more: object = {}): AcceptedText {
  const document = { model: { default: model }, ...more };
  const parsed = parseSlot(SlotName.parse('primary'), document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return { spec: parsed.spec, document };
}
const PAUSED = { rollout: { paused: true } };

describe('chooseText()', () => {
  test('takes the newest text unless it is paused', () => {
    const newest = text('b', { rollout: {} });
    expect(chooseText(text('a'), newest)).toEqual({ inForce: newest, paused: undefined });
  });
  test('keeps what was in force while the newest text is paused, and says whether anything waits', () => {
    const before = text('a');
    expect(chooseText(before, text('a', PAUSED))).toMatchObject({ inForce: before, paused: { waits: false } });
    expect(chooseText(before, text('b', PAUSED))).toMatchObject({
      inForce: before,
      paused: { waits: true, document: { model: { default: 'b' } } },
    });
  });
  test('a slot that is paused from the start is off', () => {
    expect(chooseText(undefined, text('a', PAUSED))).toMatchObject({
      inForce: { spec: { enabled: false }, document: { enabled: false } },
      paused: { waits: true },
    });
    expect(chooseText(undefined, text('a', { ...PAUSED, enabled: false })).paused?.waits).toBe(false);
  });
});

describe('pausePatch()', () => {
  test.each<readonly [string, object, object]>([
    ['no table', {}, {}],
    ['an empty table', { rollout: {} }, {}],
    ['other keys', { rollout: { other: 1 } }, { rollout: { other: 1 } }],
  ])('pauses and resumes a document with %s', (_, document, resumed) => {
    const paused = mergePatch(document, pausePatch({ ...document }, true));
    expect(paused).toMatchObject(PAUSED);
    expect(mergePatch(paused, pausePatch(Object(paused), false))).toEqual(resumed);
  });
});
