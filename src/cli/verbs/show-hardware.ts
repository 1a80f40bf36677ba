/** `svcctl hardware`: the machine of the service or of a recording; `record` prints a recording of this machine. */
import path from 'node:path';
import { viewHardware } from '../../api/manage/decide/inventory-view.ts';
import { createHardwareProbe, replayHardware, readRecording } from '../../host/hardware/hardware-probe.ts';
import type { Answer } from '../connect/api-answers.ts';
import { CliFailure, EXIT, type ExitCode } from '../output/exit-codes.ts';
import { cellText, dataText, listText, sizeText, type Column, type Output, type OutputOptions } from '../output/output.ts';
import type { Cli } from '../verb.ts';

type HardwareAnswer = Answer<'hardware'>;
type Device = HardwareAnswer['devices'][number];

export async function runHardware(cli: Cli, options: OutputOptions & { readonly file?: string }, what?: string): Promise<ExitCode> {
  if (what === 'record') {
    const recording = await createHardwareProbe({ env: cli.env }).record();
    await cli.terminal.write(`${JSON.stringify(recording, undefined, 1)}\n`);
    return EXIT.done;
  }
  const answer =
    options.file === undefined
      ? await (await cli.connect(options)).request('GET', '/api/hardware', 'hardware')
      : await readFile(path.resolve(options.file));
  await cli.terminal.write((await dataText(options.output, answer)) ?? (await hardwareText(cli, options.output, answer)));
  return EXIT.done;
}

async function readFile(file: string): Promise<HardwareAnswer> {
  const recording = await readRecording(file);
  if (!recording.ok) throw new CliFailure(recording.failure.message);
  const hardware = await replayHardware(recording.value, file).read();
  const { totalBytes, availableBytes } = hardware.memory ?? {};
  return viewHardware({ memoryTotalBytes: totalBytes, memoryAvailableBytes: availableBytes, hardware });
}

async function hardwareText({ terminal }: Cli, output: Output, answer: HardwareAnswer): Promise<string> {
  const { recording, devices, devices_hidden: hidden, programs } = answer;
  const lines = [
    ...Object.entries(recording ? { recording: recording.file, about: recording.about } : {}).map(([name, text]) => [name, cellText(text)]),
    ['cpu', cpuText(answer)],
    ['memory', `${sizeText(answer.memory_total_bytes)}, ${sizeText(answer.memory_available_bytes)} available`],
    ...programs.map(({ provider, name, backends }) => [provider, `${cellText(name)}: ${backends.map(cellText).join(', ')}`]),
    ...(!hidden ? [] : [['devices', `unknown: ${cellText(hidden)}`]]),
    ...(!hidden && devices.length === 0 ? [['devices', 'none; models run on the CPU']] : []),
  ];
  const facts = lines.map(([name = '', text = '']) => `${terminal.paint('bold', name.padEnd(10))}${text}\n`).join('');
  const table = await listText(terminal, output, { key: 'devices', items: devices, columns: COLUMNS });
  return table === '' ? facts : `${facts}\n${table}`;
}

function cpuText({ cpu }: HardwareAnswer): string {
  if (!cpu) return '-';
  const cores = typeof cpu.cores !== 'number' ? '' : `${cpu.cores} cores, `;
  return `${cellText(cpu.model)}, ${cores}${cpu.threads} threads, ${cellText(cpu.architecture)}`;
}

const COLUMNS: readonly Column<Device>[] = [
  { title: 'DEVICE', cell: ({ id }) => cellText(id) },
  { title: 'NAME', cell: ({ name }) => cellText(name) },
  { title: 'VENDOR', wide: true, cell: ({ vendor }) => cellText(vendor) },
  { title: 'PCI', wide: true, cell: ({ pci_address: address }) => cellText(address) },
  { title: 'PATH', wide: true, cell: (device) => cellText(device.path) },
  { title: 'DRIVER', cell: ({ driver }) => cellText(driver) },
  { title: 'TARGET', wide: true, cell: ({ architecture }) => cellText(architecture) },
  { title: 'MEMORY', cell: (device) => sizeText(device.memory_total_bytes) },
  { title: 'FREE', moves: true, cell: (device) => sizeText(device.memory_free_bytes) },
  { title: 'SHARED', cell: ({ unified }) => (unified ? 'with host' : 'no') },
  { title: 'BACKENDS', cell: ({ backends }) => (backends.length === 0 ? '-' : backends.map(cellText).join(',')) },
  { title: 'NOTE', cell: noteText },
];

/** `cuda, vulkan: no driver is loaded for the GPU`. */
function noteText({ unavailable }: Device): string {
  const backendsOf = Map.groupBy(unavailable, ({ reason }) => reason);
  return [...backendsOf]
    .map(([reason, all]) => `${all.map(({ backend }) => cellText(backend)).join(', ')}: ${cellText(reason)}`)
    .join('; ');
}
