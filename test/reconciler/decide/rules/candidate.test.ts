import { describe, expect, test } from '@jest/globals';
import { gather } from '../../../../src/reconciler/decide/facts/gather.ts';
import { consider } from '../../../../src/reconciler/decide/rules/candidate.ts';
import { failed, factsOf, NOW, type Scene } from '../plan-fixture.ts';

const one = { id: 'w1', seen: 60_000 } as const;
const onDemand = { load: 'on-demand' } as const;

/** Such as `turn, busy, holds 1000`; empty where the slot needs no memory now. */
function claimOf(scene: Scene): string {
  const { desired, observed, slot } = factsOf(scene);
  const { claim } = consider(slot, gather(desired, observed, NOW));
  if (claim === undefined) return '';
  const { turn, busy, held } = claim;
  return [turn.group, ...(busy ? ['busy'] : []), ...(held === undefined ? [] : [`holds ${held['host'] ?? 0}`])].join(', ');
}

const CASES: Readonly<Record<string, readonly [Scene, string]>> = {
  'that is to start': [{}, 'always'],
  'that starts on demand': [{ slot: onDemand, waiting: 1 }, 'waiting, busy'],
  'that nobody asked for': [{ slot: onDemand, lastActive: undefined }, ''],
  'that runs without requests': [{ workloads: [one] }, 'always, holds 1000'],
  'that runs with a request in flight': [{ workloads: [{ ...one, inFlight: 1 }] }, 'always, busy, holds 1000'],
  'that runs with a request waiting': [{ workloads: [one], waiting: 1 }, 'always, busy, holds 1000'],
  'that loads on demand': [{ slot: onDemand, workloads: [{ ...one, probe: 'loading' }] }, 'loading, holds 1000'],
  'that is idle': [{ slot: onDemand, lastActive: 40_000, workloads: [one] }, 'idle, holds 1000'],
  'whose requests have just ended': [{ slot: onDemand, lastActive: 10, workloads: [one] }, 'turn, holds 1000'],
  'that backs off and starts later': [{ failures: [failed(100, 'crash')] }, 'always'],
  'whose image is still missing': [{ image: false }, ''],
  'whose model does not exist': [{ model: 'missing' }, ''],
  'whose model does not exist any more, while its server runs': [{ model: 'missing', workloads: [one] }, 'always, holds 0'],
  'that is off': [{ slot: { enabled: false }, workloads: [one] }, ''],
  'that is replaced, for both of its servers': [
    {
      workloads: [
        { ...one, revision: 'other', started: true },
        { id: 'w2', name: 'b', started: true },
      ],
    },
    'always, holds 1000',
  ],
};

describe('the memory claim of a slot', () => {
  for (const [sentence, [scene, claim]] of Object.entries(CASES)) test(`${sentence}`, () => expect(claimOf(scene)).toBe(claim));
});
