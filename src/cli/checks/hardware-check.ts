/** What `svcctl doctor` says about GPUs and NPUs. */
import { createHardwareProbe, replayHardware } from '../../host/hardware/hardware-probe.ts';
import { readRecording } from '../../host/hardware/record-machine.ts';
import type { Device, Hardware } from '../../schema/status/hardware.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import type { Environment } from '../connect/service-options.ts';
import { fail, ok, warn, type Check } from './check.ts';

const NAME = 'hardware';

export async function checkHardware({ SVC_HARDWARE_FILE: file }: Pick<Settings, 'SVC_HARDWARE_FILE'>, env: Environment): Promise<Check> {
  if (file === undefined) return judgeHardware(await createHardwareProbe({ env }).read());
  const recording = await readRecording(file);
  if (!recording.ok) return fail(NAME, recording.failure.message, 'The service does not start with it');
  const { found } = judgeHardware(await replayHardware(recording.value, file).read());
  return warn(NAME, `The recording "${file}": ${found}`, 'Unset SVC_HARDWARE_FILE unless you develop for the machine that was recorded');
}

/** Pure. */
export function judgeHardware({ devices, devicesHidden }: Pick<Hardware, 'devices' | 'devicesHidden'>): Check {
  if (devicesHidden !== undefined) return ok(NAME, `Not known: ${devicesHidden}`);
  if (devices.length === 0) return ok(NAME, 'No GPU and no NPU: models are computed on the CPU');
  const found = devices.map(describeDevice).join('; ');
  // None of the backends uses a GPU of Apple, and nobody can change that.
  const unused = devices.filter(({ vendor, backends }) => backends.length === 0 && vendor !== 'apple');
  if (unused.length === 0) return ok(NAME, found);
  return warn(NAME, found, `Install the driver that ${unused.map(({ id }) => id).join(', ')} needs, or do without; see docs/hardware.md`);
}

function describeDevice({ id, name, backends, unavailable }: Device): string {
  const label = name === undefined ? id : `${id} ${name}`;
  if (backends.length > 0) return `${label} (${backends.join(', ')})`;
  const reasons = new Set(Object.values(unavailable ?? {}));
  return reasons.size === 0 ? `${label} (unused)` : `${label} (unused: ${[...reasons].join(', ')})`;
}
