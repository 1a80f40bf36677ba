/** What `flm validate --json` prints, and what a user is told. The texts are recorded ones, of other machines. */
import { describe, expect, test } from '@jest/globals';
import { parseValidation, whyNotReady } from '../../../src/providers/npu/decide/npu-validation.ts';

/** FastFlowLM 1.0.5 on a machine that is ready. */
const READY = {
  all_fw_ok: true,
  amd_device_found: true,
  devices: [{ cols: 8, device: '/dev/accel/accel0', fw_build: 64, fw_major: 1, fw_minor: 1, fw_ok: true, fw_patch: 2 }],
  drm_version: '0.10',
  enough_cols: true,
  kernel: '7.2.5-200.fc44.x86_64',
  kernel_ok: true,
  memlock_limit: 'infinity',
  memlock_ok: true,
  object: 'npu_stack_validation',
  platform: 'linux',
  ready: true,
};

const why = (changes: object): string => {
  const found = parseValidation(`[WARNING] something\n${JSON.stringify({ ...READY, ready: false, ...changes }, undefined, 4)}`);
  return found === undefined ? 'no report' : whyNotReady('"flm validate"', found);
};

test('a machine that is ready', () => expect(parseValidation(JSON.stringify(READY))).toMatchObject({ ready: true }));

describe('a machine that is not says why, and what to do', () => {
  test.each([
    [
      { memlock_ok: false, memlock_limit: '8388608' },
      '"flm validate" reports: locked memory is limited to 8388608 bytes, and 100 MiB are needed: set "LimitMEMLOCK=infinity" in the unit, or "ulimit -l unlimited"',
    ],
    [{ kernel_ok: false, kernel: '6.12.1', drm_version: undefined }, '"flm validate" reports: the kernel is 6.12.1: use 6.17 or newer'],
    [
      { kernel_ok: false, drm_version: '0.5' },
      '"flm validate" reports: the kernel is 7.2.5-200.fc44.x86_64 and its driver "amdxdna" 0.5: use a kernel from 6.17 and a driver from 0.6',
    ],
    [{ all_fw_ok: false }, '"flm validate" reports: the firmware of the NPU is too old: update the package linux-firmware'],
    [
      { amd_device_found: false, devices: [], enough_cols: false },
      '"flm validate" reports: no NPU is found: load the driver "amdxdna" (kernel 6.17, or its package); the NPU has too few columns: XDNA 2 is needed',
    ],
    [{}, '"flm validate" reports that the NPU is not ready'],
  ])('%j', (changes, expected) => expect(why(changes)).toBe(expected));
});

test.each(['', 'flm: command failed', '{', '{"ready":"yes"}', '[]'])('%j is no report', (text) =>
  expect(parseValidation(text)).toBeUndefined(),
);
