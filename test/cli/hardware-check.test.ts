import { expect, test } from '@jest/globals';
import { checkHardware, judgeHardware } from '../../src/cli/checks/host-checks.ts';
import { recordedHardware, recordingFile } from '../support/hardware/recorded-machines.ts';

test.each([
  ['w7900', 'ok', 'gpu0 AMD Radeon Pro W7900 (rocm, vulkan)'],
  ['strix-halo-128gb', 'ok', 'gpu0 AMD Radeon 8060S Graphics (rocm, vulkan); npu0 NPU Strix Halo (npu)'],
  ['server-without-gpu', 'ok', 'No GPU or NPU; models run on the CPU'],
  ['macbook-m2-max', 'ok', 'gpu0 Apple M2 Max (unused: macOS has no driver for Vulkan)'],
  [
    'intel-graphics-and-nouveau',
    'warn',
    'gpu0 UHD Graphics 770 (vulkan); gpu1 GeForce GTX 1060 6GB (unused: the GPU uses the driver "nouveau" instead of "nvidia")',
  ],
] as const)('svcctl doctor on "%s": %s', (machine, result, found) => {
  expect(judgeHardware(recordedHardware(machine))).toMatchObject({ name: 'hardware', result, found });
});

test('svcctl doctor warns where a recording takes the place of the machine, and fails if the recording is broken', async () => {
  const file = recordingFile('w7900');
  expect(await checkHardware({ SVC_HARDWARE_FILE: file }, {})).toMatchObject({
    result: 'warn',
    found: `Recording "${file}": gpu0 AMD Radeon Pro W7900 (rocm, vulkan)`,
    hint: expect.stringContaining('Unset SVC_HARDWARE_FILE'),
  });
  expect(await checkHardware({ SVC_HARDWARE_FILE: '/no/such/file.json' }, {})).toMatchObject({ result: 'fail' });
});

test('svcctl doctor says where devices cannot be seen', () => {
  expect(judgeHardware({ devices: [], devicesHidden: 'the service runs in a container' })).toMatchObject({
    result: 'ok',
    found: 'Unknown: the service runs in a container',
  });
});
