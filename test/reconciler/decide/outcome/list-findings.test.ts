import { describe, expect, test } from '@jest/globals';
import { failed, planOf, PRIMARY, type Scene } from '../plan-fixture.ts';

const pods = { network: 'pods', images: false } as const;
const old = { id: 'w0', revision: 'other', name: 'svc-slot-primary' } as const;
const next = { id: 'w1', name: 'svc-slot-primary--next', port: 18_081, probe: 'loading', seen: 100 } as const;

/** Reasons, the most important one first. */
function reasonsOf(scene: Scene): string {
  const findings = planOf(scene).made.decisions.get(PRIMARY)?.findings ?? [];
  return findings.map(({ reason }) => reason).join(', ');
}

const CASES: Readonly<Record<string, readonly [Scene, string]>> = {
  'that needs nothing': [{ workloads: [{ id: 'w1' }] }, ''],
  'whose server has not answered yet': [{ workloads: [{ id: 'w1', probe: 'loading', seen: 100 }] }, 'ProbeNotPassed'],
  'whose server was created': [{ workloads: [{ id: 'w1', started: true, phase: 'created', probe: 'none' }] }, 'ProbeNotPassed'],
  'whose server was created again after a crash': [
    {
      traits: pods,
      workloads: [{ id: 'w1', phase: 'created', probe: 'none', notedExit: String(1), exit: { code: 1, outOfMemory: false, at: 1 } }],
    },
    'Crashed',
  ],
  'whose server runs without a replica that is ready': [
    { traits: pods, workloads: [{ id: 'w1', probe: 'none', fact: { endpoints: [] } }] },
    'NoReplicaReady',
  ],
  'whose server waits for a node': [
    {
      traits: pods,
      workloads: [
        {
          id: 'w1',
          phase: 'created',
          probe: 'none',
          fact: { waitingReason: { kind: 'placement', reason: 'Unschedulable', message: 'No room' } },
        },
      ],
    },
    'Unschedulable',
  ],
  'whose model is fetched by its pod': [
    { traits: pods, workloads: [{ id: 'w1', phase: 'created', probe: 'none', fact: { fetching: 'Fetching 3 of 9 GB' } }] },
    'Fetching',
  ],
  'with fewer replicas than it should have': [
    { traits: pods, slot: { replicas: 3 }, workloads: [{ id: 'w1', fact: { replicas: { ready: 2, present: 3 } } }] },
    'ReplicasNotReady',
  ],
  'whose server did not answer the last probe': [{ workloads: [{ id: 'w1', probe: 'doubtful' }] }, 'ProbeUnanswered'],
  'whose old server answers while the new one starts': [{ workloads: [old, next] }, 'RevisionOutdated, ProbeNotPassed'],
  'that was altered': [{ slot: { lifecycle: { drift: 'warn' } }, workloads: [{ id: 'w1', altered: { argv: ['x'] } }] }, 'WorkloadAltered'],
  'that was altered, which its spec tolerates': [
    { slot: { lifecycle: { drift: 'ignore' } }, workloads: [{ id: 'w1', altered: { argv: ['x'] } }] },
    '',
  ],
  'that backs off': [{ failures: [failed(100, 'crash')] }, 'Crashed'],
  'that is off': [{ slot: { enabled: false } }, 'Disabled'],
};

describe('the findings of a slot', () => {
  for (const [sentence, [scene, reasons]] of Object.entries(CASES)) test(`${sentence}`, () => expect(reasonsOf(scene)).toBe(reasons));
});
