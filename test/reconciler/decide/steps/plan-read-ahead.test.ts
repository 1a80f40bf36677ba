/** Which models are read ahead, and when none is: the cases that the rules distinguish. */
import { describe, expect, test } from '@jest/globals';
import { plan } from '../../../../src/reconciler/decide/plan.ts';
import { planReadAhead } from '../../../../src/reconciler/decide/steps/plan-read-ahead.ts';
import { ModelId } from '../../../../src/schema/words/names.ts';
import type { Decision } from '../../../../src/reconciler/decide/facts/facts.ts';
import { slotName } from '../../../support/simulation/world.ts';
import { failed, factsOf, NOW, PRIMARY, type Scene } from '../plan-fixture.ts';

const MEMORY = { memoryTotalBytes: 10_000, memoryAvailableBytes: 9000 };
const old = { id: 'w1', revision: 'other', started: true, inFlight: 1 } as const;
const DRAIN = { lifecycle: { swap: 'drain' } } as const;
const onDemand = { load: 'on-demand' } as const;
/** Room for one model of 1000 bytes. */
const budgetBytes = 1500;

interface Case extends Scene {
  readonly availableBytes?: number | undefined;
  readonly soon?: true;
}

function readAheadOf({ soon, ...scene }: Case): readonly string[] {
  const { desired, observed } = factsOf(scene);
  const memoryAvailableBytes = 'availableBytes' in scene ? scene.availableBytes : MEMORY.memoryAvailableBytes;
  const host = { ...MEMORY, memoryAvailableBytes };
  const made = plan(desired, { ...observed, host, ...(soon === true ? { warmSoon: new Set([PRIMARY]) } : {}) }, NOW);
  return (made.readAhead ?? []).map(({ model }) => model.id);
}

const READ: Readonly<Record<string, Case>> = {
  'while the old server finishes its requests': { slot: DRAIN, workloads: [old] },
  'while the old server ends': { slot: DRAIN, workloads: [{ ...old, inFlight: 0, phase: 'stopping' }] },
  'while the old server ends, of which nothing is known': { slot: DRAIN, workloads: [{ ...old, started: false }] },
  'a minute before its schedule loads it': { slot: onDemand, lastActive: undefined, soon: true },
  'with just enough memory': { slot: DRAIN, workloads: [old], availableBytes: 500 + 1000 + 1000 },
  'where the old server has allocated its memory already': {
    slot: DRAIN,
    workloads: [{ ...old, fact: { memoryBytes: { host: 900 } } }],
    availableBytes: 500 + 100 + 1000,
  },
};

const NOT_READ: Readonly<Record<string, Case>> = {
  'where the model is started at once': {},
  'while its server loads it': { workloads: [{ id: 'w1', probe: 'loading' }] },
  'while its server serves it': { workloads: [{ id: 'w1' }] },
  'while its server serves it, and a schedule is near': { slot: onDemand, workloads: [{ id: 'w1' }], soon: true },
  'where nobody asks for it': { slot: onDemand, lastActive: undefined },
  'where it is off, and a schedule is near': { slot: { enabled: false }, soon: true },
  'where both servers run beside each other': { slot: { lifecycle: { swap: 'blue-green' } }, workloads: [old] },
  'in a cluster': { slot: DRAIN, workloads: [old], traits: { network: 'pods' } },
  'by a follower': { slot: DRAIN, workloads: [old], leads: false },
  'where its size is not known': { slot: DRAIN, workloads: [old], modelBytes: 'unknown' },
  'before it is downloaded': { slot: DRAIN, workloads: [old], model: 'pullable' },
  'while its image is missing': { slot: DRAIN, workloads: [old], image: false },
  'while it backs off after a crash': { failures: [failed(100, 'crash')] },
  'where the free memory is not known': { slot: DRAIN, workloads: [old], availableBytes: undefined },
  'where the old server may still use the memory': { slot: DRAIN, workloads: [old], availableBytes: 500 + 1000 + 999 },
  'where weights that the old server has mapped would be displaced': {
    slot: DRAIN,
    workloads: [{ ...old, fact: { memoryBytes: { host: 100, mapped: 900 } } }],
    availableBytes: 500 + 900 + 999,
  },
};

describe('the model of a slot is read ahead', () => {
  for (const [sentence, scene] of Object.entries(READ)) test(sentence, () => expect(readAheadOf(scene)).toEqual(['a.gguf']));
});

describe('the model of a slot is not read ahead', () => {
  for (const [sentence, scene] of Object.entries(NOT_READ))
    test(sentence, () => expect(readAheadOf({ budgetBytes, ...scene })).toEqual([]));
});

describe('of several models', () => {
  const starts = (name: string, rank: number, sizeBytes: number): Pick<Decision, 'state' | 'nextStart'> => ({
    state: 'offline',
    nextStart: { slot: slotName(name), model: { id: ModelId.parse(`${name}.gguf`), hostPath: `/store/${name}.gguf`, sizeBytes }, rank },
  });
  const idsOf = (decisions: readonly Pick<Decision, 'state' | 'nextStart'>[]): readonly string[] =>
    planReadAhead(decisions, [], { host: MEMORY, leads: true }).map(({ slot }) => slot);

  test('the one that starts first is read first', () => {
    expect(idsOf([starts('schedule', 2, 1000), starts('memory', 1, 1000), starts('swap', 0, 1000)])).toEqual([
      'swap',
      'memory',
      'schedule',
    ]);
  });

  test('those that fit are read', () => {
    expect(idsOf([starts('swap', 0, 8000), starts('memory', 1, 1000), starts('schedule', 2, 500)])).toEqual(['swap', 'schedule']);
  });

  test('none is read while a server loads', () => {
    expect(idsOf([starts('swap', 0, 1000), { state: 'warming' }])).toEqual([]);
  });

  test('one is read while its own slot still shows that it starts', () => {
    expect(idsOf([{ ...starts('swap', 0, 1000), state: 'starting' }])).toEqual(['swap']);
  });
});
