import { expect, test } from '@jest/globals';
import { gguf } from '../../../src/providers/gguf/gguf.ts';
import { withBackends } from '../../../src/reconciler/decide/facts/choose-backend.ts';
import { rememberBackends } from '../../../src/reconciler/remember/desire.ts';
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
