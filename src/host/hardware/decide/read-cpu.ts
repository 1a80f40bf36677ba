/** Parses `/proc/cpuinfo`. Pure. */
import type { Cpu } from '../../../schema/status/hardware.ts';
import type { MachineView } from './machine-view.ts';

export const CPUINFO = '/proc/cpuinfo';
/** The board, where the CPU has no name of its own: `Raspberry Pi 5 Model B Rev 1.0`. */
export const BOARD_FILE = '/proc/device-tree/model';

const KEPT = /^(?:processor|model name|physical id|core id)\s*:/;

/** Leaves what is parsed here: all of it is some hundred kilobytes on a large server, and has the serial number of a Raspberry Pi. */
export function pickCpuinfo(text: string): string {
  return text
    .split('\n')
    .filter((line) => KEPT.test(line))
    .map((line) => `${line.replace(/\s*:\s*/, ': ').trimEnd()}\n`)
    .join('');
}

export function linuxCpu(view: MachineView): Partial<Cpu> {
  const text = view.text(CPUINFO) ?? '';
  const values = (key: string): readonly string[] =>
    [...text.matchAll(new RegExp(`^${key}\\s*: *(.*)$`, 'gm'))].map(([, value = '']) => value.trim());
  const model = values('model name')[0] ?? view.text(BOARD_FILE);
  const threads = values('processor').length;
  const sockets = values('physical id');
  const cores = new Set(values('core id').map((core, index) => `${sockets[index] ?? ''}/${core}`)).size;
  return { ...(model === undefined ? {} : { model }), ...(threads === 0 ? {} : { threads }), ...(cores === 0 ? {} : { cores }) };
}
