/** Recordings of machines for tests: `test/host/hardware/recorded/<name>.json`. Each says where its facts come from, and what is composed. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { hardwareOf } from '../../../src/host/hardware/decide/hardware-of.ts';
import { HardwareRecordingSchema, type Hardware, type HardwareRecording } from '../../../src/schema/status/hardware.ts';

export const RECORDED_MACHINES = [
  'arc-a750',
  'dgx-spark',
  'intel-graphics-and-nouveau',
  'macbook-m2-max',
  'notebook-with-two-gpus',
  'raspberry-pi-5',
  'renoir-without-compute-driver',
  'rtx-3090-and-4090',
  'server-without-gpu',
  'strix-halo-128gb',
  'strix-halo-96gb-set-aside',
  'w7900',
] as const;
export type RecordedMachine = (typeof RECORDED_MACHINES)[number];

export function recordingFile(name: RecordedMachine): string {
  return fileURLToPath(new URL(`../../host/hardware/recorded/${name}.json`, import.meta.url));
}

export function recordingOf(name: RecordedMachine): HardwareRecording {
  return HardwareRecordingSchema.parse(JSON.parse(readFileSync(recordingFile(name), 'utf8')));
}

export function recordedHardware(name: RecordedMachine): Hardware {
  return hardwareOf(recordingOf(name), { kind: 'machine' });
}
