import { describe, expect, test } from '@jest/globals';
import { backendMissing, computesWith, withBackend } from '../../../../src/reconciler/decide/rules/choose-backend.ts';
import type { DesiredSlot } from '../../../../src/reconciler/ports.ts';
import type { DeviceFacts } from '../../../../src/schema/device-facts.ts';
import { SlotName } from '../../../../src/schema/names.ts';
import { parseSlot, type SlotDocument } from '../../../../src/schema/slot-spec.ts';

const NONE: DeviceFacts = { kfd: false, nvidia: false, accel: false, renderDrivers: [], programs: {} };
const AMD: DeviceFacts = { ...NONE, kfd: true, renderDrivers: ['amdgpu'] };
const INTEL: DeviceFacts = { ...NONE, renderDrivers: ['i915'] };
const NVIDIA: DeviceFacts = { ...NONE, nvidia: true, renderDrivers: ['nvidia'] };
const program = (...backends: NonNullable<DeviceFacts['programs']['gguf']>['backends']): DeviceFacts['programs'] => ({
  gguf: { name: '"/usr/bin/llama-server"', backends },
});

function slot(document: Partial<SlotDocument> = {}): DesiredSlot {
  const name = SlotName.parse('primary');
  const parsed = parseSlot(name, { model: { default: 'a.gguf' }, ...document });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return { name, spec: parsed.spec, generation: 1, problems: [] };
}

describe('a slot without a backend', () => {
  const cases: readonly (readonly [string, DeviceFacts | undefined, string])[] = [
    ['gets the default where the devices are not known', undefined, 'vulkan'],
    ['gets the default with a GPU of AMD, where rocm is possible too', AMD, 'vulkan'],
    ['gets the default with a GPU of Intel', INTEL, 'vulkan'],
    ['gets cuda with a GPU of NVIDIA, as images for Vulkan cannot use it', NVIDIA, 'cuda'],
    ['gets cpu without any GPU', NONE, 'cpu'],
    ['gets what the program on the host reports, whatever the devices are', { ...AMD, programs: program('cpu') }, 'cpu'],
    ['gets the best one that the program reports', { ...NONE, programs: program('cpu', 'rocm') }, 'rocm'],
  ];
  for (const [sentence, devices, expected] of cases) {
    test(sentence, () => {
      const chosen = withBackend(slot(), devices).spec;
      expect(chosen.backend).toBe(expected);
      expect(backendMissing(chosen, devices)).toBeUndefined();
    });
  }

  test('stays the same object where nothing changes', () => {
    const plain = slot();
    expect(withBackend(plain, AMD)).toBe(plain);
    expect(withBackend(plain, undefined)).toBe(plain);
  });
});

describe('a slot with a backend', () => {
  test('keeps it, and it is missing only if no device is there', () => {
    const asked = slot({ backend: 'cuda' });
    expect(withBackend(asked, NONE)).toBe(asked);
    expect(backendMissing(asked.spec, undefined)).toBeUndefined();
    expect(backendMissing(asked.spec, NVIDIA)).toBeUndefined();
    expect(backendMissing(slot({ backend: 'rocm' }).spec, AMD)).toBeUndefined();
    expect(backendMissing(slot({ backend: 'cpu' }).spec, NONE)).toBeUndefined();
  });

  test('says why it is missing, and what can be used instead', () => {
    const messageOf = (backend: NonNullable<SlotDocument['backend']>, devices: DeviceFacts): string | undefined =>
      backendMissing(slot({ backend }).spec, devices)?.message;
    expect(messageOf('cuda', NONE)).toBe('Set "backend" to "cpu": "cuda" is not available here, because this machine has no NVIDIA device');
    expect(messageOf('rocm', INTEL)).toBe(
      'Set "backend" to "vulkan" or "cpu": "rocm" is not available here, because this machine has no "/dev/kfd" with a GPU',
    );
    expect(messageOf('vulkan', NVIDIA)).toBe(
      'Set "backend" to "cuda" or "cpu": "vulkan" is not available here, because the only GPU of this machine is one of NVIDIA',
    );
    expect(messageOf('cuda', { ...NVIDIA, programs: program('cpu', 'vulkan') })).toBe(
      'Set "backend" to "vulkan" or "cpu": "cuda" is not available here, because "/usr/bin/llama-server" reports no device for it',
    );
  });

  test('is refused where its provider has no other one', () => {
    const image = slot({ provider: 'image', model: { default: 'sdxl-turbo' } });
    expect(withBackend(image, NONE)).toBe(image);
    expect(backendMissing(image.spec, NONE)).toMatchObject({
      reason: 'DeviceMissing',
      message: expect.stringMatching(/^Make the device available: "rocm" is not available here/),
    });
  });
});

test('a slot with no GPUs computes on the CPU, whatever its backend is', () => {
  expect(computesWith(slot({ backend: 'cuda', resources: { gpus: 0 } }).spec)).toBe('cpu');
  expect(computesWith(slot({ backend: 'cuda' }).spec)).toBe('cuda');
});
