/** Plans for slots whose server is on another machine. */
import { describe, expect, test } from '@jest/globals';
import { planOf, PRIMARY, type Scene } from './plan-fixture.ts';

describe('a slot whose server is on another machine', () => {
  const slot = { provider: 'remote', remote: { url: 'https://a.example/v1' } };
  const decide = (scene: Scene) => planOf({ without: 'imageName', modelBytes: 'unknown', slot, ...scene }).made;
  /** The fixture makes the revision of what runs with an image where there are any. */
  const running = (workload: NonNullable<Scene['workloads']>[number]) => decide({ traits: { images: false }, workloads: [workload] });

  test('starts without an image, with no memory left, and brings its address', () => {
    const [action] = decide({ budgetBytes: 1 }).actions;
    expect(action).toMatchObject({ name: 'apply', args: { workload: { image: undefined, remote: slot.remote } } });
    expect(decide({}).decisions.get(PRIMARY)?.memoryBytes).toBe(0);
  });

  test('serves what its server says, and waits without a crash while it is away', () => {
    const there = { id: 'a', fact: { serves: ['rerank'] } } as const;
    expect(running(there).decisions.get(PRIMARY)).toMatchObject({ state: 'ready', capabilities: ['rerank'] });
    const waitingReason = { kind: 'other', reason: 'RemoteUnreachable', message: 'It is off' } as const;
    const away = running({ id: 'a', phase: 'created', fact: { endpoints: [], waitingReason } });
    expect(away.actions).toEqual([]);
    expect(away.decisions.get(PRIMARY)).toMatchObject({ state: 'starting', admission: { kind: 'park' } });
  });

  test('says what the slot there says while requests go on to it', () => {
    const missing = { kind: 'other', reason: 'RemoteStalled', message: 'It is stalled' } as const;
    const conditions = running({ id: 'a', fact: { missing } }).decisions.get(PRIMARY)?.conditions;
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'Reconciling', status: 'True', reason: 'RemoteStalled' }));
  });

  test('is refused in a cluster', () => {
    const made = decide({ traits: { network: 'pods' } });
    expect(made.actions).toEqual([]);
    expect(made.decisions.get(PRIMARY)?.conditions).toContainEqual(
      expect.objectContaining({ type: 'Stalled', status: 'True', reason: 'RemoteInCluster' }),
    );
  });
});
