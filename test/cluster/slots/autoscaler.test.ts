/** The autoscaler against a fake API server, with what gateways report of their requests. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createAutoscaler } from '../../../src/cluster/slots/autoscaler.ts';
import { createResourceEditor } from '../../../src/cluster/slots/resource-editor.ts';
import { createSlotResources } from '../../../src/cluster/slots/slot-resources.ts';
import type { KubeObject } from '../../../src/cluster/client/ports.ts';
import type { TrafficFacts } from '../../../src/platform/decide/sum-traffic.ts';
import { LABELS } from '../../../src/schema/pod/kube-fields.ts';
import { SlotName, WorkloadId } from '../../../src/schema/words/names.ts';
import { createInMemoryKube, type MemoryKube } from '../../support/kube/in-memory-kube.ts';

const PRIMARY = SlotName.parse('primary');
const SPEC = {
  model: { default: 'a.gguf' },
  replicas: 1,
  load: 'on-demand',
  autoscale: { min: 0, max: 4, target: { inFlight: 2 }, window: '1m' },
};
const DEPLOYMENT: KubeObject = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'svc-slot-primary', uid: 'uid-1', labels: { [LABELS.slot]: 'primary' } },
};
const WORKLOAD = WorkloadId.parse('uid-1');

describe('createAutoscaler()', () => {
  let kube: MemoryKube;
  let facts: TrafficFacts;
  let leads: boolean;
  let now: number;
  let warned: string[];
  let looks: number;
  let running: AbortController;
  let ended: Promise<void>;
  const load = (inFlight: number, waiting = 0): void => {
    facts = {
      workloads: new Map([[WORKLOAD, { inFlight, lastUsedAt: undefined }]]),
      demand: new Map([[PRIMARY, { waiting, lastAskedAt: 0 }]]),
    };
  };
  beforeEach(() => {
    kube = createInMemoryKube();
    [leads, now, warned, looks] = [true, 0, [], 0];
    load(0);
    const log = { info: () => undefined, warn: (_facts: object, text: string) => void warned.push(text) };
    const autoscaler = createAutoscaler({
      source: createSlotResources({ slots: kube.slots, log }),
      editor: createResourceEditor(kube),
      deployments: { items: () => new Map([['svc-slot-primary', DEPLOYMENT]]) },
      traffic: { read: () => facts },
      leads: () => {
        looks += 1;
        return leads;
      },
      now: () => now,
      log,
      everyMs: 1,
    });
    running = new AbortController();
    ended = autoscaler.start(running.signal);
  });
  afterEach(async () => {
    running.abort();
    await ended;
  });

  const replicas = (name = 'primary'): unknown => Reflect.get(Object(kube.find('SlotSpec', name)?.['spec']), 'replicas');
  /** The third look from now has begun after the second one, which has seen the present state, has ended. */
  const looked = async (): Promise<void> => {
    const until = looks + 3;
    while (looks < until) await new Promise((resolve) => setTimeout(resolve, 1));
  };

  test('follows the requests: up at once, down after the window, to zero and back', async () => {
    kube.apply('primary', SPEC);
    await looked();
    load(5, 1);
    await looked();
    expect(replicas()).toBe(3);
    load(1);
    now = 59_000;
    await looked();
    expect(replicas()).toBe(3);
    now = 119_001;
    await looked();
    expect(replicas()).toBe(1);
    load(0);
    now = 300_000;
    await looked();
    expect(replicas()).toBe(0);
    load(0, 1);
    await looked();
    expect(replicas()).toBe(1);
    expect(kube.find('SlotSpec', 'primary')?.['spec']).toEqual({ ...SPEC, replicas: 1 });
    expect(warned).toEqual([]);
  });

  test('leaves slots alone that do not ask for it, and all of them while it does not lead', async () => {
    leads = false;
    kube.apply('primary', SPEC);
    kube.apply('other', { model: { default: 'a.gguf' }, replicas: 7 });
    load(9);
    await looked();
    expect([replicas(), replicas('other')]).toEqual([1, 7]);
    leads = true;
    await looked();
    expect([replicas(), replicas('other')]).toEqual([4, 7]);
  });

  test('takes back what another autoscaler writes, and says which one to remove', async () => {
    kube.apply('primary', SPEC);
    load(4);
    await looked();
    expect(replicas()).toBe(2);
    // Every few seconds, and said once a minute.
    for (const at of [0, 1000, 2000]) {
      now = at;
      kube.apply('primary', { ...SPEC, replicas: 3 });
      await looked();
      expect(replicas()).toBe(2);
    }
    expect(warned).toEqual([
      'Something else set "replicas" of the slot "primary" to 3, not 2: remove the HorizontalPodAutoscaler or ScaledObject of this slot, or its "autoscale"',
    ]);
  });
});
