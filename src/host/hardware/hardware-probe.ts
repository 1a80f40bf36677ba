/**
 * Reads the hardware of this machine, or replays a recording. Devices are looked up every half minute, and vendor tools
 * run in the background (`machine-tools.ts`). Never throws.
 */
import { performance } from 'node:perf_hooks';
import type { Hardware, HardwareRecording } from '../../schema/status/hardware.ts';
import { hardwareOf } from './decide/hardware-of.ts';
import { createMachineFiles, readLayout, readLevels, type Layout, type Machine } from './record-machine.ts';
import { createMachineTools, type RunTool } from './machine-tools.ts';

export interface HardwareProbe {
  read(): Promise<Hardware>;
  /** The input of `read`. */
  record(): Promise<HardwareRecording>;
}

export interface HardwareProbeOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** For tests: replaces `/`. */
  readonly root?: string;
  /** For tests: replaces processes. */
  readonly tool?: RunTool;
  readonly platform?: string;
}

/** Drivers and devices may appear while the service runs. */
const LAYOUT_FRESH_MS = 30_000;

export function createHardwareProbe({ env, root, tool, platform = process.platform }: HardwareProbeOptions): HardwareProbe {
  const now = (): number => performance.now();
  const machine: Machine = {
    files: createMachineFiles(root),
    tools: createMachineTools({ env, now, ...(tool === undefined ? {} : { run: tool }) }),
    platform,
    architecture: process.arch,
  };
  let known: { readonly at: number; readonly layout: Promise<Layout> } | undefined;
  const record = async (): Promise<HardwareRecording> => {
    if (known === undefined || now() - known.at > LAYOUT_FRESH_MS) known = { at: now(), layout: readLayout(machine) };
    return await readLevels(machine, await known.layout);
  };
  return { record, read: async () => hardwareOf(await record(), { kind: 'machine' }) };
}

/** Constant: memory use of a recording does not change. */
export function replayHardware(recording: HardwareRecording, file: string): HardwareProbe {
  const hardware = hardwareOf(recording, { kind: 'recording', file, about: recording.about });
  return { read: async () => hardware, record: async () => recording };
}
