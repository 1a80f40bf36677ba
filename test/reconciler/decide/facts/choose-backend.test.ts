/** Decided from recordings of machines, in `test/host/hardware/recorded`. */
import { describe, expect, test } from '@jest/globals';
import { rankBackends } from '../../../../src/providers/decide/rank-backends.ts';
import { gguf } from '../../../../src/providers/gguf/gguf.ts';
import type { ProviderRegistry } from '../../../../src/providers/provider.ts';
import {
  backendChoice,
  backendMissing,
  computesWith,
  devicesMissing,
  judgeAll,
  withBackends,
} from '../../../../src/reconciler/decide/facts/choose-backend.ts';
import type { DesiredSlot } from '../../../../src/reconciler/ports.ts';
import type { Hardware } from '../../../../src/schema/status/hardware.ts';
import { SlotName } from '../../../../src/schema/words/names.ts';
import type { Backend } from '../../../../src/schema/slot/provider-kinds.ts';
import { parseSlot, type SlotDocument, type SlotSpec } from '../../../../src/schema/slot/slot-spec.ts';
import { PLAIN_PROVIDER } from '../../../support/plain-provider.ts';
import { recordedHardware } from '../../../support/hardware/recorded-machines.ts';

const NONE = recordedHardware('server-without-gpu');
const AMD = recordedHardware('w7900');
const STRIX_HALO = recordedHardware('strix-halo-128gb');
const INTEL = recordedHardware('arc-a750');
const NVIDIA = recordedHardware('rtx-3090-and-4090');
const NOUVEAU = recordedHardware('intel-graphics-and-nouveau');
const MAC = recordedHardware('macbook-m2-max');
const HIDDEN: Hardware = { ...NONE, devicesHidden: 'the service runs in a container' };
const reporting = (hardware: Hardware, ...backends: readonly Backend[]): Hardware => ({
  ...hardware,
  programs: { gguf: { name: '"/usr/bin/llama-server"', backends } },
});

function slot(document: Partial<SlotDocument> = {}): DesiredSlot {
  const name = SlotName.parse('primary');
  const parsed = parseSlot(name, { model: { default: 'a.gguf' }, ...document });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return { name, spec: parsed.spec, generation: 1, problems: [] };
}

/** Providers as they may come to be: each computes with one backend only. */
const only = (kind: 'image' | 'npu') => ({
  ...PLAIN_PROVIDER,
  kind,
  rankBackends: (hardware: Hardware | undefined) => rankBackends(kind, hardware),
});
const PROVIDERS: ProviderRegistry = { gguf, image: only('image'), npu: only('npu') };

function chosen(asked: DesiredSlot, hardware: Hardware | undefined): DesiredSlot {
  const found = withBackends(new Map([['it', asked]]), { providers: PROVIDERS }, hardware).get('it');
  if (found === undefined) throw new Error('The slot is gone');
  return found;
}

const missing = (spec: DesiredSlot['spec'], hardware: Hardware | undefined) =>
  backendMissing(spec, judgeAll(PROVIDERS, hardware).get(spec.provider));
const choice = (spec: DesiredSlot['spec'], hardware: Hardware | undefined) =>
  backendChoice(spec, judgeAll(PROVIDERS, hardware).get(spec.provider));

describe('a slot without a backend', () => {
  const cases: readonly (readonly [string, Hardware | undefined, string])[] = [
    ['gets the default where the hardware is not known', undefined, 'vulkan'],
    ['gets the default where the devices cannot be seen', HIDDEN, 'vulkan'],
    ['gets the default with a GPU of AMD, where rocm is possible too', AMD, 'vulkan'],
    ['gets the default with the GPU of an APU', STRIX_HALO, 'vulkan'],
    ['gets the default with a GPU of Intel', INTEL, 'vulkan'],
    ['gets cuda with GPUs of NVIDIA, as images for Vulkan cannot use them', NVIDIA, 'cuda'],
    ['gets cpu without any GPU', NONE, 'cpu'],
    ['gets cpu on a Mac, whose GPU none of the backends uses', MAC, 'cpu'],
    ['gets what the program on the host reports, whatever the devices are', reporting(AMD, 'cpu'), 'cpu'],
    ['gets the best one that the program reports', reporting(NONE, 'cpu', 'rocm'), 'rocm'],
    ['gets what the program reports also where the devices cannot be seen', reporting(HIDDEN, 'cpu'), 'cpu'],
  ];
  for (const [sentence, hardware, expected] of cases) {
    test(sentence, () => {
      const { spec } = chosen(slot(), hardware);
      expect(spec.backend).toBe(expected);
      expect(missing(spec, hardware)).toBeUndefined();
      // Whoever did not name a backend is told why it is not the usual one.
      expect(choice(spec, hardware) === undefined).toBe(expected === 'vulkan');
    });
  }

  test('stays the same object where nothing changes', () => {
    const plain = slot();
    expect(chosen(plain, AMD)).toBe(plain);
    expect(chosen(plain, undefined)).toBe(plain);
  });

  test('says why it does not compute with the default one', () => {
    const sentenceOf = (hardware: Hardware): string | undefined => choice(chosen(slot(), hardware).spec, hardware);
    expect(sentenceOf(NONE)).toBe('"cpu", as the default "vulkan" is not available here: this machine has no GPU');
    expect(sentenceOf(MAC)).toBe(
      '"cpu", as the default "vulkan" is not available here: macOS has no driver for Vulkan (gpu0: Apple M2 Max)',
    );
    expect(choice(slot({ backend: 'cpu' }).spec, NONE)).toBeUndefined();
  });
});

test('a slot keeps its backend if its provider fails to judge', () => {
  const asked = slot();
  const rankBackends = (): never => {
    throw new Error('It exploded');
  };
  expect(withBackends(new Map([['it', asked]]), { providers: { gguf: { ...gguf, rankBackends } } }, NONE).get('it')).toBe(asked);
});

describe('a slot that names devices', () => {
  const naming = (backend: Backend, ...devices: string[]) => slot({ backend, resources: { devices } }).spec;
  const unusable = (name: string, backend: Backend, fix: string): string =>
    `"${name}" of "resources.devices" is no GPU with memory of its own that backend "${backend}" can use here; ${fix}`;

  test.each<[string, SlotSpec, Hardware | undefined, string | undefined]>([
    ['none', slot({ backend: 'cuda' }).spec, NONE, undefined],
    ['one by its id', naming('cuda', 'gpu1'), NVIDIA, undefined],
    ['one by its address', naming('cuda', NVIDIA.devices[1]?.pciAddress ?? ''), NVIDIA, undefined],
    ['one that is not there', naming('cuda', 'gpu0', 'gpu7'), NVIDIA, unusable('gpu7', 'cuda', 'use "gpu0" or "gpu1"')],
    ['one of another backend', naming('vulkan', 'gpu0'), NVIDIA, unusable('gpu0', 'vulkan', 'remove "resources.devices"')],
    ['one in the memory of the host', naming('vulkan', 'gpu0'), STRIX_HALO, unusable('gpu0', 'vulkan', 'remove "resources.devices"')],
    ['one with the CPU', naming('cpu', 'gpu0'), NVIDIA, unusable('gpu0', 'cpu', 'remove "resources.devices"')],
    ['one where nothing is known', naming('cuda', 'gpu0'), undefined, unusable('gpu0', 'cuda', 'remove "resources.devices"')],
  ])('%s', (_what, spec, hardware, message) => {
    expect(devicesMissing(spec, hardware, true)?.message).toBe(message);
  });

  test('in a cluster is told what chooses them there', () => {
    expect(devicesMissing(naming('cuda', 'gpu0'), undefined, false)).toMatchObject({
      reason: 'DeviceMissing',
      message: expect.stringContaining('"nodeSelector"'),
    });
  });
});

describe('a slot with a backend', () => {
  test('keeps it, and it is missing only if no device is there', () => {
    const asked = slot({ backend: 'cuda' });
    expect(chosen(asked, NONE)).toBe(asked);
    for (const hardware of [undefined, NVIDIA, HIDDEN]) expect(missing(asked.spec, hardware)).toBeUndefined();
    expect(missing(slot({ backend: 'rocm' }).spec, AMD)).toBeUndefined();
    expect(missing(slot({ backend: 'cpu' }).spec, NONE)).toBeUndefined();
    expect(missing(slot({ provider: 'npu', model: { default: 'llama3.2:1b' } }).spec, STRIX_HALO)).toBeUndefined();
  });

  test('says why it is missing, and what can be used instead', () => {
    const messageOf = (backend: Backend, hardware: Hardware): string | undefined => missing(slot({ backend }).spec, hardware)?.message;
    expect(messageOf('cuda', NONE)).toBe(
      'Backend "cuda" is not available here, because this machine has no GPU of NVIDIA; set "backend" to "cpu"',
    );
    expect(messageOf('rocm', INTEL)).toBe(
      'Backend "rocm" is not available here, because this machine has no GPU of AMD; set "backend" to "vulkan" or "cpu"',
    );
    expect(messageOf('vulkan', NVIDIA)).toBe(
      'Backend "vulkan" is not available here, because images for Vulkan cannot use the driver of NVIDIA (gpu0: NVIDIA GeForce RTX 3090, gpu1: NVIDIA GeForce RTX 4090); set "backend" to "cuda" or "cpu"',
    );
    expect(messageOf('cuda', NOUVEAU)).toBe(
      'Backend "cuda" is not available here, because the GPU uses the driver "nouveau" instead of "nvidia" (gpu1: GeForce GTX 1060 6GB); set "backend" to "vulkan" or "cpu"',
    );
    expect(messageOf('cuda', reporting(NVIDIA, 'cpu', 'vulkan'))).toBe(
      'Backend "cuda" is not available here, because "/usr/bin/llama-server" reports no such device; set "backend" to "vulkan" or "cpu"',
    );
  });

  test('is refused where its provider has no other one', () => {
    const image = slot({ provider: 'image', model: { default: 'sdxl-turbo' } });
    expect(chosen(image, NONE)).toBe(image);
    expect(missing(image.spec, NONE)).toMatchObject({
      reason: 'DeviceMissing',
      message: expect.stringMatching(/^Backend "rocm" is not available here, because .*; make the device available$/),
    });
  });
});

test('a slot with no GPUs computes on the CPU, whatever its backend is', () => {
  expect(computesWith(slot({ backend: 'cuda', resources: { gpus: 0 } }).spec)).toBe('cpu');
  expect(computesWith(slot({ backend: 'cuda' }).spec)).toBe('cuda');
});
