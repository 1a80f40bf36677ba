/** The hardware without what other programs change all the time, so that a slot need not be planned again because somebody allocated memory. Pure. */
import type { DeviceMemory, Hardware, Machine, MachineDevice } from '../../../schema/status/hardware.ts';

/** Undefined where nothing is known of the hardware. */
export function machineOf(hardware: Hardware | undefined): Machine | undefined {
  if (hardware === undefined) return undefined;
  const { memory, devices, ...machine } = hardware;
  return {
    ...machine,
    memory: memory === undefined ? undefined : { totalBytes: memory.totalBytes },
    devices: devices.map((device) => ({ ...device, memory: device.memory && withoutUse(device.memory) })),
  };
}

function withoutUse({ totalBytes, useUnknown, dedicatedBytes }: DeviceMemory): MachineDevice['memory'] {
  return {
    totalBytes,
    ...(useUnknown === undefined ? {} : { useUnknown }),
    ...(dedicatedBytes === undefined ? {} : { dedicatedBytes }),
  };
}
