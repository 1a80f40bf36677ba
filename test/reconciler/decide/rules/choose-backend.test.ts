import { describe, expect, test } from '@jest/globals';
import { gguf } from '../../../../src/providers/gguf/gguf.ts';
import { rankBackends } from '../../../../src/providers/decide/rank-backends.ts';
import type { ProviderRegistry } from '../../../../src/providers/provider.ts';
import { backendMissing, computesWith, withBackends } from '../../../../src/reconciler/decide/rules/choose-backend.ts';
import type { DesiredSlot } from '../../../../src/reconciler/ports.ts';
import type { DeviceFacts } from '../../../../src/schema/device-facts.ts';
import { SlotName } from '../../../../src/schema/names.ts';
import { PLAIN_PROVIDER } from '../../../support/plain-provider.ts';
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

/** The provider of images as it may come to be: it computes with one backend only. */
const PROVIDERS: ProviderRegistry = {
  gguf,
  image: { ...PLAIN_PROVIDER, kind: 'image', rankBackends: (machine) => rankBackends('image', machine) },
};

function chosen(asked: DesiredSlot, devices: DeviceFacts | undefined): DesiredSlot {
  const found = withBackends(new Map([['it', asked]]), PROVIDERS, { devices }).get('it');
  if (found === undefined) throw new Error('The slot is gone');
  return found;
}

const missing = (spec: DesiredSlot['spec'], devices: DeviceFacts | undefined) =>
  backendMissing(spec, PROVIDERS[spec.provider], { devices });

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
      const { spec } = chosen(slot(), devices);
      expect(spec.backend).toBe(expected);
      expect(missing(spec, devices)).toBeUndefined();
    });
  }

  test('stays the same object where nothing changes', () => {
    const plain = slot();
    expect(chosen(plain, AMD)).toBe(plain);
    expect(chosen(plain, undefined)).toBe(plain);
  });
});

test('a slot keeps its backend if its provider fails to judge', () => {
  const asked = slot();
  const broken = {
    ...gguf,
    rankBackends: () => {
      throw new Error('It exploded');
    },
  };
  expect(withBackends(new Map([['it', asked]]), { gguf: broken }, { devices: NONE }).get('it')).toBe(asked);
});

describe('a slot with a backend', () => {
  test('keeps it, and it is missing only if no device is there', () => {
    const asked = slot({ backend: 'cuda' });
    expect(chosen(asked, NONE)).toBe(asked);
    expect(missing(asked.spec, undefined)).toBeUndefined();
    expect(missing(asked.spec, NVIDIA)).toBeUndefined();
    expect(missing(slot({ backend: 'rocm' }).spec, AMD)).toBeUndefined();
    expect(missing(slot({ backend: 'cpu' }).spec, NONE)).toBeUndefined();
  });

  test('says why it is missing, and what can be used instead', () => {
    const messageOf = (backend: NonNullable<SlotDocument['backend']>, devices: DeviceFacts): string | undefined =>
      missing(slot({ backend }).spec, devices)?.message;
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
    expect(chosen(image, NONE)).toBe(image);
    expect(missing(image.spec, NONE)).toMatchObject({
      reason: 'DeviceMissing',
      message: expect.stringMatching(/^Make the device available: "rocm" is not available here/),
    });
  });
});

test('a slot with no GPUs computes on the CPU, whatever its backend is', () => {
  expect(computesWith(slot({ backend: 'cuda', resources: { gpus: 0 } }).spec)).toBe('cpu');
  expect(computesWith(slot({ backend: 'cuda' }).spec)).toBe('cuda');
});
