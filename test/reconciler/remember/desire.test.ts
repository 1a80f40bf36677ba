import { expect, test } from '@jest/globals';
import { gguf } from '../../../src/providers/gguf/gguf.ts';
import { withBackends } from '../../../src/reconciler/decide/facts/choose-backend.ts';
import { desire, rememberBackends, templatingOf } from '../../../src/reconciler/remember/desire.ts';
import type { Hardware } from '../../../src/schema/status/hardware.ts';
import { recordedHardware } from '../../support/hardware/recorded-machines.ts';
import { factsOf } from '../decide/plan-fixture.ts';

test('a slot without a backend is the same object in each pass, until it or the machine changes', () => {
  const { slot } = factsOf({ workloads: [] });
  const asked = { ...slot, spec: { ...slot.spec, backendGiven: false } };
  const give = rememberBackends();
  const on = (hardware: Hardware, each = asked) => withBackends(new Map([['it', each]]), { providers: { gguf }, give }, hardware).get('it');
  const reporting = (...backends: readonly ('cpu' | 'cuda' | 'rocm')[]): Hardware => ({
    ...recordedHardware('server-without-gpu'),
    programs: { gguf: { name: 'llama-server', backends } },
  });
  const first = on(reporting('cuda'));
  expect(first?.spec.backend).toBe('cuda');
  expect(on(reporting('cuda'))).toBe(first);
  expect(on(reporting('rocm'))?.spec.backend).toBe('rocm');
  expect(on(reporting('cuda'), { ...asked, generation: 7 })).toMatchObject({ generation: 7, spec: { backend: 'cuda' } });
});

test.each([
  ['published', undefined, 900],
  ['shared', undefined, 900],
  ['pods', undefined, undefined],
  ['pods', 500, 500],
] as const)('with the network "%s" and the setting %s, models may use %s of 1000 bytes', (network, setting, expected) => {
  const deps = {
    runtime: { traits: { kind: 'in-memory' as const, images: true, network, modelsTarget: '/models' } },
    models: { root: '/models' },
    providers: { gguf },
    images: () => undefined,
    settings: { SVC_PORT_RANGE: { first: 1, last: 2 }, SVC_MEMORY_BUDGET: setting },
  };
  const host = { memoryTotalBytes: 1000, memoryAvailableBytes: undefined, hardware: recordedHardware('server-without-gpu') };
  const desired = desire(deps, { slots: new Map(), refused: new Map() }, host, templatingOf(deps));
  expect(desired.memoryBudgetBytes).toBe(expected);
});
