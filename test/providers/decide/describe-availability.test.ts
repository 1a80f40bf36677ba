import { describe, expect, test } from '@jest/globals';
import { describeAvailability, type RunsIn } from '../../../src/providers/decide/rank-backends.ts';
import { gguf } from '../../../src/providers/gguf/gguf.ts';
import { fail, ok } from '../../../src/schema/words/failure.ts';
import type { Hardware } from '../../../src/schema/status/hardware.ts';
import { recordedHardware } from '../../support/hardware/recorded-machines.ts';

const AMD = recordedHardware('w7900');
const NONE = recordedHardware('server-without-gpu');
const engine = { name: 'the embedded engine', backends: ['cpu'] as const };
const ENGINE: Hardware = { ...NONE, programs: { gguf: engine } };
const images = (...backends: Extract<RunsIn, { kind: 'images' }>['backends']): RunsIn => ({ kind: 'images', backends });
const process = (program: Extract<RunsIn, { kind: 'process' }>['program']): RunsIn => ({ kind: 'process', program });

describe('describeAvailability()', () => {
  const cases: Readonly<Record<string, readonly [RunsIn, Hardware | undefined, boolean, string]>> = {
    'names the images of a machine that is not known': [
      images('cpu', 'vulkan'),
      undefined,
      true,
      'Runs in toolbox images for "vulkan" and "cpu"; "rocm" and "cuda" are not available, because there is no toolbox image',
    ],
    'leaves out what the machine cannot run, and says why': [
      images('cpu', 'vulkan', 'rocm', 'cuda'),
      AMD,
      true,
      'Runs in toolbox images for "vulkan", "rocm" and "cpu"; "cuda" is not available, because this machine has no GPU of NVIDIA',
    ],
    'asks for an image where there is none': [
      images(),
      AMD,
      false,
      'No toolbox image exists; build one with "svcctl toolbox build", or name one in "toolboxes.toml"',
    ],
    'asks for a device or an image where no image can be used': [
      images('cuda'),
      NONE,
      false,
      '"vulkan" is not available, because this machine has no GPU; "rocm" is not available, because this machine has no GPU of AMD; "cuda" is not available, because this machine has no GPU of NVIDIA; "cpu" is not available, because there is no toolbox image; make a device available, or build a toolbox image',
    ],
    'names the program of a process': [
      process(ok({ name: '"/usr/bin/llama-server"' })),
      undefined,
      true,
      'Runs as a process on this machine with "vulkan", "rocm", "cuda" and "cpu": "/usr/bin/llama-server"',
    ],
    'says what will be installed, and what the program cannot use': [
      process(ok({ name: 'the embedded engine', installs: 'about 40 MB are downloaded when the first slot is loaded' })),
      ENGINE,
      true,
      'Runs as a process on this machine with "cpu": the embedded engine (about 40 MB are downloaded when the first slot is loaded); "vulkan", "rocm" and "cuda" are not available, because the embedded engine reports no such device',
    ],
    'passes on what to install': [
      process(fail('stalled', 'ProgramMissing', 'Install "x", and put it on the PATH: it is not on this machine')),
      AMD,
      false,
      'Install "x", and put it on the PATH: it is not on this machine',
    ],
  };
  for (const [sentence, [runsIn, hardware, available, reason]] of Object.entries(cases)) {
    test(sentence, () => {
      expect(describeAvailability(gguf, runsIn, hardware)).toMatchObject({ available, reason });
    });
  }

  test('judges each backend in the order of preference', () => {
    expect(describeAvailability(gguf, images('rocm', 'cpu'), AMD).backends).toEqual([
      { backend: 'vulkan', available: false, reason: 'there is no toolbox image' },
      { backend: 'rocm', available: true, reason: '' },
      { backend: 'cuda', available: false, reason: 'this machine has no GPU of NVIDIA' },
      { backend: 'cpu', available: true, reason: '' },
    ]);
  });
});
