import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  mergeProbe,
  mergeSeen,
  type ProbeFact,
  type ProbeResult,
  type SeenWorkload,
} from '../../../../src/reconciler/decide/facts/workload-history.ts';
import { SlotName, WorkloadId } from '../../../../src/schema/words/names.ts';
import type { Endpoint, Health } from '../../../../src/providers/provider.ts';

const [A, B]: readonly Endpoint[] = [
  { host: '10.0.0.1', port: 8080 },
  { host: '10.0.0.2', port: 8080 },
];
if (A === undefined || B === undefined) throw new Error('There are no endpoints');

const health = (kind: Health['kind']): Health => (kind === 'passing' ? { kind } : { kind, message: `It is ${kind}` });
const asked = (kind: Health['kind'], more: Partial<ProbeResult> = {}): ProbeResult => ({
  health: health(kind),
  endpoints: [A],
  failingEndpoints: kind === 'passing' ? [] : [A],
  ...more,
});

/** What is known after these probes, one each second. */
function after(...results: readonly ProbeResult[]): ProbeFact | undefined {
  return results.reduce<ProbeFact | undefined>((before, result, index) => mergeProbe(before, result, (index + 1) * 1000), undefined);
}

describe('what is known of a server after its probes', () => {
  test('failures and silences are counted until it passes, and a busy server does not fail', () => {
    expect(after(asked('passing'), asked('failing'), asked('failing'))).toMatchObject({ consecutiveFailures: 2, consecutiveSilences: 0 });
    expect(after(asked('passing'), asked('silent'), asked('silent'))).toMatchObject({ consecutiveFailures: 2, consecutiveSilences: 2 });
    expect(after(asked('passing'), asked('silent'), asked('failing'))).toMatchObject({ consecutiveFailures: 2, consecutiveSilences: 0 });
    expect(after(asked('passing'), asked('failing'), asked('loading'))).toMatchObject({ consecutiveFailures: 1 });
    expect(after(asked('failing'), asked('silent'), asked('passing'))).toMatchObject({ consecutiveFailures: 0, consecutiveSilences: 0 });
  });

  test('the time says since when it passes, or since when it does not', () => {
    expect(after(asked('loading'), asked('failing'), asked('silent'))).toMatchObject({ status: 'silent', since: 1000, lastAt: 3000 });
    expect(after(asked('loading'), asked('passing'), asked('passing'))).toMatchObject({ status: 'passing', since: 2000, lastAt: 3000 });
    expect(after(asked('passing'), asked('failing'))).toMatchObject({ status: 'failing', since: 2000 });
  });

  test('that it passed once is remembered, and its last message until it passes', () => {
    expect(after(asked('loading'))).toMatchObject({ passed: false, message: 'It is loading' });
    expect(after(asked('passing'), asked('failing'))).toMatchObject({ passed: true, message: 'It is failing' });
    expect(after(asked('failing'), asked('passing'))).toMatchObject({ passed: true, message: '' });
  });

  test('an endpoint has passed from its first good answer on, until it is gone', () => {
    const both = { endpoints: [A, B] };
    expect(after(asked('passing', { ...both, failingEndpoints: [B] }))).toMatchObject({ passedEndpoints: [A], failingEndpoints: [B] });
    const turned = after(asked('passing', { ...both, failingEndpoints: [B] }), asked('passing', { ...both, failingEndpoints: [A] }));
    expect(turned).toMatchObject({ passedEndpoints: [A, B], failingEndpoints: [A] });
    expect(after(asked('passing', both), asked('passing', { endpoints: [B] }))).toMatchObject({ passedEndpoints: [B] });
    expect(after(asked('failing', { ...both, failingEndpoints: [A, B] }))).toMatchObject({ passedEndpoints: [] });
  });
});

const seen = (more: Partial<SeenWorkload> = {}): SeenWorkload => ({
  id: WorkloadId.parse('w1'),
  slot: SlotName.parse('primary'),
  revision: 'abc',
  startedAt: 1000,
  exitId: undefined,
  alone: true,
  alive: true,
  running: true,
  counts: true,
  ...more,
});

test('a history has all that was seen last, and stays the same object until something else is seen', () => {
  const changes = fc.record(
    {
      startedAt: fc.constantFrom(undefined, 1000, 2000),
      exitId: fc.constantFrom(undefined, 'a', 'b'),
      alone: fc.boolean(),
      alive: fc.boolean(),
      running: fc.boolean(),
      counts: fc.boolean(),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.array(changes, { minLength: 1, maxLength: 8 }), (all) => {
      let before: ReturnType<typeof mergeSeen> | undefined;
      let sight = seen();
      for (const [index, change] of all.entries()) {
        sight = { ...sight, ...change };
        const { startedAt, exitId = before?.exitId, alone, running, counts } = sight;
        const after = mergeSeen(before, sight, undefined, index * 1000);
        expect(after).toMatchObject({ startedAt, exitId, alone, running });
        expect(after.startCountsFrom !== undefined).toBe(counts);
        expect(after.expectedToGo || sight.alive).toBe(true);
        expect(mergeSeen(after, sight, undefined, index * 1000 + 500)).toBe(after);
        before = after;
      }
    }),
  );
});

describe('what is known of a server that a stop did not end', () => {
  const stopping = { running: false, alive: false };
  /** Passed at 2 s, was told to stop at 3 s, and runs at 4 s. */
  const returned = (more: Partial<SeenWorkload> = {}) => {
    const served = { ...mergeSeen(undefined, seen(more), undefined, 1000), probe: after(asked('passing')) };
    return mergeSeen(mergeSeen(served, seen({ ...more, ...stopping }), undefined, 3000), seen(more), undefined, 4000);
  };

  test('it has answered once, and gets no request before it answers again', () => {
    const { probe } = returned();
    expect(probe).toMatchObject({ passed: true, mustPass: true });
    expect(mergeProbe(probe, asked('silent'), 5000)).toMatchObject({ passed: true, mustPass: true });
    expect(mergeProbe(probe, asked('passing'), 5000)).toMatchObject({ passed: true, mustPass: false });
  });

  test('pods that run again are other processes', () => expect(returned({ startedAt: undefined }).probe).toBeUndefined());
});
