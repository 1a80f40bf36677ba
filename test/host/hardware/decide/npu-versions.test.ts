/** Kernel and firmware that the server of an NPU demands (`flm validate`), as the files of a machine have them. */
import { expect, test } from '@jest/globals';
import { hardwareOf } from '../../../../src/host/hardware/decide/hardware-of.ts';
import { recordingOf } from '../../../support/hardware/recorded-machines.ts';

test.each([
  ['6.17.0-35-generic', '1.1.2.64', undefined],
  ['7.2.5-200.fc44.x86_64', '1.1.0.0', undefined],
  ['6.12.57+deb13-amd64', '1.1.2.64', 'the kernel is 6.12.57+deb13-amd64, and the server of the NPU needs 6.17 or newer'],
  [
    '6.17.0',
    '1.0.0.63',
    'the firmware of the NPU is 1.0.0.63, and 1.1.0.0 is needed: update the package with the firmware (linux-firmware)',
  ],
  ['?', 'garbage', undefined],
])('does not offer an NPU with kernel %s and firmware %s, if either is too old', (kernel, firmware, why) => {
  const recording = recordingOf('strix-halo-128gb');
  const versions = { '/proc/sys/kernel/osrelease': `${kernel}\n`, '/sys/bus/pci/devices/0000:c4:00.1/fw_version': `${firmware}\n` };
  const { devices } = hardwareOf({ ...recording, files: { ...recording.files, ...versions } }, { kind: 'machine' });
  const npu = devices.find(({ kind }) => kind === 'npu');
  expect([npu?.backends, npu?.unavailable?.npu]).toEqual([why === undefined ? ['npu'] : [], why]);
});
