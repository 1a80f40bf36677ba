import { beforeEach, describe, expect, test } from '@jest/globals';
import type { DesiredSlot } from '../../../src/reconciler/ports.ts';
import { createSlotResources, type SlotResources } from '../../../src/cluster/slots/slot-resources.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { createInMemoryKube, type MemoryKube } from '../../support/kube/in-memory-kube.ts';

const primary = SlotName.parse('primary');
const model = (name: string) => ({ model: { default: name } });
const signal = new AbortController().signal;

describe('a SlotSpec whose rollouts are paused', () => {
  let kube: MemoryKube;
  let source: SlotResources;
  const create = () => createSlotResources({ slots: kube.slots, log: kube.log, now: kube.clock.now });
  beforeEach(() => {
    kube = createInMemoryKube();
    source = create();
  });
  const read = async (): Promise<DesiredSlot | undefined> => {
    const result = await source.read(signal);
    if (!result.ok) throw new Error(result.failure.message);
    return result.value.slots.get(primary);
  };
  const paused = (name: string, more: object = {}) => ({ ...model(name), ...more, rollout: { paused: true } });
  const restart = () => {
    kube.touch('primary', { status: { observedGeneration: 2, lastGood: source.lastGoodOf(primary, 'uid-1') } });
    source = create();
  };

  test('an edit waits, also after a restart, and takes effect with the end of the pause', async () => {
    kube.apply('primary', model('a.gguf'));
    await read();
    kube.apply('primary', paused('b.gguf'));
    const waits = {
      generation: 2,
      spec: { model: { default: 'a.gguf' } },
      paused: { waits: true, spec: { model: { default: 'b.gguf' } } },
    };
    expect(await read()).toMatchObject(waits);
    restart();
    expect(await read()).toMatchObject(waits);
    kube.apply('primary', model('b.gguf'));
    const resumed = await read();
    expect(resumed).toMatchObject({ generation: 3, spec: { model: { default: 'b.gguf' } } });
    expect(resumed?.paused).toBeUndefined();
  });

  test('the number of replicas is followed, and nothing waits because of it', async () => {
    kube.apply('primary', { ...model('a.gguf'), replicas: 1 });
    await read();
    kube.apply('primary', paused('a.gguf', { replicas: 3 }));
    expect(await read()).toMatchObject({ spec: { cluster: { replicas: 3 } }, paused: { waits: false } });
  });

  test('a slot that is created so is off', async () => {
    kube.apply('primary', paused('a.gguf'));
    expect(await read()).toMatchObject({ spec: { enabled: false }, paused: { waits: true } });
  });
});
