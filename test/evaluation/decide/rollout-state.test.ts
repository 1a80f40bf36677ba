import { describe, expect, test } from '@jest/globals';
import {
  judgeText,
  recallRollout,
  settleRollout,
  storedRollout,
  type Checks,
  type RolloutState,
  type Verdict,
} from '../../../src/evaluation/decide/rollout-state.ts';
import type { AcceptedText } from '../../../src/schema/slot/paused-text.ts';
import { parseSlot, type SlotDocument } from '../../../src/schema/slot/slot-spec.ts';
import { SlotName } from '../../../src/schema/words/names.ts';

const NAME = SlotName.parse('primary');
const CHECKS: Checks = { digest: 'one', cases: [{ request: { messages: [] }, expect: { contains: 'a' } }] };
const OTHER: Checks = { ...CHECKS, digest: 'other' };

function textOf(model: string, more: Partial<SlotDocument> = {}): AcceptedText {
  const document = { model: { default: model }, rollout: { check: 'a.jsonl' }, ...more };
  const parsed = parseSlot(NAME, document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return { spec: parsed.spec, document };
}

const A = textOf('a.gguf');
const B = textOf('b.gguf');
const verdict = (outcome: Verdict['outcome'], checks = 'one'): Verdict => ({
  outcome,
  revision: 'rev-b',
  checks,
  because: 'Too bad',
  misses: [],
});
/** "a" has served. */
const ACCEPTED: RolloutState = { checks: CHECKS, accepted: { ...A, revision: 'rev-a' }, isOnTrial: false };
const onTrial = judgeText({ inForce: A, rollout: ACCEPTED }, B, CHECKS);
const settled = (outcome: Verdict['outcome']) => settleRollout(onTrial, { generation: 2, kind: 'verdict', verdict: verdict(outcome) });
const reverted = settled('rolled_back');

describe('the text in force', () => {
  const NOTHING = { inForce: undefined, rollout: undefined };
  test.each([
    ['is any, where no text has served', NOTHING, B, 'b.gguf', false],
    ['is any without cases', { inForce: A, rollout: ACCEPTED }, textOf('b.gguf', { rollout: {} }), 'b.gguf', undefined],
    [
      'is the same model with other limits',
      { inForce: A, rollout: ACCEPTED },
      textOf('a.gguf', { priority: 3, restartedAt: '2026-01-01T00:00:00Z' }),
      'a.gguf',
      false,
    ],
    [
      'is the same model with other names',
      { inForce: A, rollout: ACCEPTED },
      textOf('', { model: { default: 'a.gguf', aliases: ['x'] } }),
      'a.gguf',
      false,
    ],
    ['is another model on trial', { inForce: A, rollout: ACCEPTED }, B, 'b.gguf', true],
    [
      'is another context on trial',
      { inForce: A, rollout: ACCEPTED },
      textOf('', { model: { default: 'a.gguf', context: 4096 } }),
      'a.gguf',
      true,
    ],
    [
      'is another build on trial',
      { inForce: A, rollout: ACCEPTED },
      textOf('a.gguf', { program: { path: '/opt/new/llama-server' } }),
      'a.gguf',
      true,
    ],
    ['is another environment on trial', { inForce: A, rollout: ACCEPTED }, textOf('a.gguf', { env: { X: '1' } }), 'a.gguf', true],
    ['is the accepted one, while a text waits that was rolled back', reverted, B, 'a.gguf', false],
    ['is a text that was rolled back and says something else now', reverted, textOf('b.gguf', { priority: 3 }), 'b.gguf', true],
    ['is the accepted one again', reverted, A, 'a.gguf', false],
  ])('%s', (_what, before, newest, model, isOnTrial) => {
    const { inForce, rollout } = judgeText(before, newest, CHECKS);
    expect([inForce.spec.model.default, rollout?.isOnTrial]).toEqual([model, isOnTrial]);
  });

  test('is on trial again when the cases change, and not while they cannot be read', () => {
    const { rollout } = judgeText(reverted, B, OTHER);
    expect([rollout?.isOnTrial, rollout?.rolledBack]).toEqual([true, undefined]);
    expect(judgeText(reverted, B, undefined).rollout).toMatchObject({ isOnTrial: false, rolledBack: { verdict: verdict('rolled_back') } });
  });

  test('keeps its verdict in an edit that says the same of the model, and loses it with the cases', () => {
    const held = settled('held');
    expect(judgeText(held, textOf('b.gguf', { priority: 1 }), CHECKS).rollout?.verdict).toEqual(verdict('held'));
    expect(judgeText(held, textOf('c.gguf'), CHECKS).rollout?.verdict).toBeUndefined();
    expect(judgeText(held, B, OTHER).rollout?.verdict).toBeUndefined();
  });
});

describe('a settlement', () => {
  test('accepts what has served, and keeps the answers of the same revision only', () => {
    const report = { cases: 1, passed: 1, misses: [], firstTokenP95: 5, tokensPerSecond: undefined };
    const asked = settleRollout(onTrial, { generation: 2, kind: 'baseline', revision: 'rev-a', checks: 'one', report });
    expect(asked.rollout?.accepted?.baseline).toMatchObject({ checks: 'one', report });
    const served = settleRollout(settled('passed'), { generation: 2, kind: 'served', revision: 'rev-b', at: 7 });
    expect(served).toMatchObject({
      inForce: B,
      rollout: { isOnTrial: false, accepted: { spec: B.spec, revision: 'rev-b', baseline: undefined } },
    });
    expect(served.rollout?.verdict).toBeUndefined();
    expect(settleRollout(asked, { generation: 2, kind: 'served', revision: 'rev-a', at: 7 }).rollout?.accepted?.baseline).toBeDefined();
  });

  test('brings the accepted text back', () => {
    expect(reverted.inForce.spec).toBe(A.spec);
    expect(reverted.rollout).toMatchObject({ isOnTrial: false, rolledBack: { spec: B.spec, verdict: verdict('rolled_back') } });
  });

  test('does not try a text again because the one that came back is served by another build', () => {
    const { inForce, rollout } = settleRollout(reverted, { generation: 2, kind: 'served', revision: 'rev-a2', at: 7 });
    expect(rollout).toMatchObject({ accepted: { revision: 'rev-a2' }, rolledBack: { spec: B.spec } });
    expect(judgeText({ inForce, rollout }, B, CHECKS)).toMatchObject({ inForce: { spec: A.spec }, rollout: { isOnTrial: false } });
  });

  test('watches another model that serves, and a failure returns to the one before', () => {
    const watch = { rollout: { watch: '10m' } };
    const before = {
      inForce: textOf('a.gguf', watch),
      rollout: { checks: undefined, accepted: { ...textOf('a.gguf', watch), revision: 'rev-a' }, isOnTrial: false },
    };
    const next = judgeText(before, textOf('b.gguf', watch), undefined);
    expect(next).toMatchObject({
      inForce: { document: { model: { default: 'b.gguf' } } },
      rollout: { isOnTrial: false, accepted: { revision: 'rev-a' } },
    });
    const serves = settleRollout(next, { generation: 2, kind: 'served', revision: 'rev-b', at: 7 });
    expect(serves.rollout).toMatchObject({ accepted: { revision: 'rev-b' }, watched: { previous: { revision: 'rev-a' }, since: 7 } });
    const failed = settleRollout(serves, { generation: 2, kind: 'verdict', verdict: verdict('rolled_back', '') });
    expect(failed).toMatchObject({
      inForce: { document: { model: { default: 'a.gguf' } } },
      rollout: { accepted: { revision: 'rev-a' }, rolledBack: { spec: next.inForce.spec } },
    });
    expect(failed.rollout?.watched).toBeUndefined();
    expect(judgeText(failed, textOf('b.gguf', watch), undefined).inForce.document).toMatchObject({ model: { default: 'a.gguf' } });
    // Another one is edited in meanwhile: what has proven itself stays the one to return to.
    const third = settleRollout(judgeText(serves, textOf('c.gguf', watch), undefined), {
      generation: 3,
      kind: 'served',
      revision: 'rev-c',
      at: 9,
    });
    expect(third.rollout).toMatchObject({ accepted: { revision: 'rev-c' }, watched: { previous: { revision: 'rev-a' }, since: 9 } });
    // The same model again is nothing new.
    const again = settleRollout(judgeText(serves, textOf('a.gguf', watch), undefined), {
      generation: 3,
      kind: 'served',
      revision: 'rev-a',
      at: 9,
    });
    expect(again.rollout?.watched).toBeUndefined();
    expect(settleRollout(serves, { generation: 2, kind: 'proven' }).rollout?.watched).toBeUndefined();
    expect(settleRollout(before, { generation: 1, kind: 'proven' })).toBe(before);
    // Names may change meanwhile.
    const renamed = judgeText(serves, textOf('', { model: { default: 'b.gguf', aliases: ['x'] }, ...watch }), undefined);
    expect(renamed.rollout?.watched).toEqual(serves.rollout?.watched);
    // Over a restart, it is watched again from the beginning.
    const stored: unknown = JSON.parse(JSON.stringify(storedRollout(serves.rollout ?? ACCEPTED)));
    const recalled = recallRollout(stored, () => before.inForce);
    expect(recalled?.watched).toMatchObject({ previous: { revision: 'rev-a' }, since: undefined });
  });

  test('is void for a slot without a trial, and for another revision', () => {
    const state = { inForce: A, rollout: ACCEPTED };
    expect(settleRollout(state, { generation: 1, kind: 'verdict', verdict: verdict('rolled_back') })).toBe(state);
    const report = { cases: 1, passed: 1, misses: [], firstTokenP95: undefined, tokensPerSecond: undefined };
    expect(settleRollout(state, { generation: 1, kind: 'baseline', revision: 'rev-x', checks: 'one', report })).toBe(state);
  });
});

describe('what is stored', () => {
  const parse = (document: unknown) => (document === A.document ? A : document === B.document ? B : undefined);

  test.each([
    ['a text on trial', onTrial],
    ['one that is held', settled('held')],
    ['one that waits', reverted],
  ])('gives %s back, without its cases', (_what, { rollout }) => {
    if (rollout === undefined) throw new Error('There is no state');
    expect(recallRollout(storedRollout(rollout), parse)).toEqual({ ...rollout, checks: undefined });
  });

  test.each([undefined, null, 7, {}, { isOnTrial: 'yes' }, { isOnTrial: true, verdict: { outcome: 'none' } }])(
    'is ignored where it is %j',
    (stored) => {
      expect(recallRollout(stored, parse)).toBeUndefined();
    },
  );

  test('is no trial where the accepted text is no longer valid', () => {
    expect(recallRollout(storedRollout(onTrial.rollout ?? ACCEPTED), () => undefined)).toMatchObject({
      accepted: undefined,
      isOnTrial: false,
    });
  });
});
