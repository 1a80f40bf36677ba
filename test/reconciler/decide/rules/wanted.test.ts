/** When a slot was last of use, and until when it should run. */
import { describe, expect, test } from '@jest/globals';
import { gather } from '../../../../src/reconciler/decide/facts/gather.ts';
import { slotFactsOf } from '../../../../src/reconciler/decide/facts/slot-facts.ts';
import { viewSlot } from '../../../../src/reconciler/decide/facts/view.ts';
import { deriveLastActive, wantedUntil, whyNotWanted } from '../../../../src/reconciler/decide/rules/wanted.ts';
import { WorkloadId } from '../../../../src/schema/words/names.ts';
import { factsOf, NOW, planOf, PRIMARY, type Scene } from '../plan-fixture.ts';

type Facts = Parameters<typeof deriveLastActive>[0];
const BEFORE = NOW - 50_000;
const RUNNING: Scene = { workloads: [{ id: 'w1' }] };
const used = (inFlight: number, lastUsedAt?: number): Partial<Facts> => ({
  traffic: {
    workloads: new Map([[WorkloadId.parse('w1'), { inFlight, lastUsedAt, lastHeardAt: undefined }]]),
    demand: new Map(),
  },
});
/** In the last pass, it ran ahead of requests. */
const AHEAD: Partial<Facts> = {
  published: [...planOf(RUNNING).made.decisions.values()]
    .map((decision) => ({ decision: { ...decision, ahead: { lastActiveAt: BEFORE } }, since: 0, conditions: [] }))
    .at(0),
};
const asked = (waiting: number, lastAskedAt: number): Partial<Facts> => ({
  traffic: { workloads: new Map(), demand: new Map([[PRIMARY, { waiting, waitingSince: undefined, lastAskedAt }]]) },
});

/** Milliseconds before now; undefined if it was never of use. */
function lastActive(load: 'always' | 'on-demand', changed: Partial<Facts>, scene: Scene): number | undefined {
  const { observed, slot } = factsOf({ ...scene, slot: { load } });
  const at = deriveLastActive({
    slot,
    now: NOW,
    before: BEFORE,
    traffic: { workloads: new Map(), demand: new Map() },
    workloads: observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads : [],
    published: undefined,
    edit: 'unchanged',
    takesOver: false,
    hasFailures: false,
    ...changed,
  });
  return at === undefined ? undefined : NOW - at;
}

describe('a slot was last of use', () => {
  test.each<[string, number | undefined, 'always' | 'on-demand', Partial<Facts>, Scene]>([
    ['when it was so in the last pass', 50_000, 'always', {}, {}],
    ['when it was so in the last pass, though its server runs', 50_000, 'always', {}, RUNNING],
    [
      'when a request ended on a server that has vanished since',
      7,
      'always',
      { vanished: [{ id: WorkloadId.parse('w1') }], ...used(0, NOW - 7) },
      {},
    ],
    [
      'while a request is in flight on a server that has vanished',
      0,
      'always',
      { vanished: [{ id: WorkloadId.parse('w1') }], ...used(1, NOW - 7) },
      {},
    ],
    ['never, if nothing used it', undefined, 'always', { before: undefined }, {}],
    ['when it was edited, if it is always loaded', 0, 'always', { edit: 'edited' }, {}],
    ['when it got its first replica, if it is always loaded', 0, 'always', { edit: 'scaled-up' }, {}],
    ['not when its replicas changed', 50_000, 'always', { edit: 'scaled' }, {}],
    ['not when it was edited, if it loads on demand', 50_000, 'on-demand', { edit: 'edited' }, {}],
    [
      'when it was edited while it was loaded ahead of requests, if it is always loaded',
      0,
      'always',
      { edit: 'edited', ...AHEAD },
      RUNNING,
    ],
    [
      'not when it was edited while it was loaded ahead of requests, if it loads on demand',
      50_000,
      'on-demand',
      { edit: 'edited', ...AHEAD },
      RUNNING,
    ],
    [
      'not when its server was found running that was loaded ahead of requests',
      undefined,
      'on-demand',
      { before: undefined, ...AHEAD },
      RUNNING,
    ],
    ['when its server was found running', 0, 'on-demand', { before: undefined }, RUNNING],
    ['when its server was taken over', 0, 'on-demand', { takesOver: true }, RUNNING],
    ['not when a server was found that has ended', 50_000, 'always', { takesOver: true }, { workloads: [{ id: 'w1', phase: 'exited' }] }],
    ['while a request waits', 0, 'on-demand', asked(1, NOW - 9000), {}],
    ['when a request asked last', 9000, 'on-demand', asked(0, NOW - 9000), {}],
    ['while it has a request', 0, 'on-demand', used(1), RUNNING],
    ['when its last request ended', 4000, 'on-demand', used(0, NOW - 4000), RUNNING],
    ['in the last pass, if its last request ended before', 50_000, 'on-demand', used(0, NOW - 60_000), RUNNING],
  ])('%s', (_, expected, load, changed, scene) => {
    expect(lastActive(load, changed, scene)).toBe(expected);
  });
});

describe('a slot with an idle time of 30 s', () => {
  const view = (scene: Scene) => {
    const { desired, observed, slot } = factsOf({ ...scene, slot: { lifecycle: { idleTimeout: '30s' }, ...scene.slot } });
    return viewSlot(slotFactsOf(slot, gather(desired, observed, NOW)), NOW);
  };

  test.each<[string, Scene, string | undefined, number | undefined]>([
    ['is wanted until it ends', { lastActive: 29_999 }, undefined, 1],
    ['is not wanted once it has ended', { lastActive: 30_000 }, 'IdleTimedOut', 0],
    ['is wanted while a request waits', { lastActive: 40_000, waiting: 1 }, undefined, undefined],
    ['is wanted without an end before it was of use', { lastActive: undefined }, undefined, undefined],
    [
      'is not wanted if it loads on demand and was never asked for',
      { lastActive: undefined, slot: { load: 'on-demand' } },
      'NotAskedFor',
      undefined,
    ],
    ['is not wanted if it is off', { slot: { enabled: false } }, 'Disabled', 30_000],
  ])('%s', (_, scene, reason, leftMs) => {
    expect(whyNotWanted(view(scene))?.reason).toBe(reason);
    expect(wantedUntil(view(scene)) - NOW).toBe(leftMs ?? Number.POSITIVE_INFINITY);
  });
});
