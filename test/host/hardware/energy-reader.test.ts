/** Sensors of a directory that looks like `/`, with everything that can be wrong with them. */
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createEnergyReader } from '../../../src/host/hardware/energy-reader.ts';
import { createToolRunner, type RunTool } from '../../../src/host/hardware/machine-tools.ts';

const NVIDIA = { nvidia: true };
const NO_NVIDIA = { nvidia: false };
const NOBODY = 65_534;

let root: string;
let time: number;
let commands: string[];
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-energy-'));
  time = 1000;
  commands = [];
});
afterEach(async () => await rm(root, { recursive: true, force: true }));

async function put(directory: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(root, 'sys/class', directory, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, `${text}\n`);
  }
}

/** As the kernel shows it: the entry of a class is a link, and so is its device. */
async function putGpu(index: number, address: string, files: Readonly<Record<string, string>>): Promise<void> {
  await put(`hwmon/hwmon${index}`, files);
  const device = path.join(root, 'sys/devices', address);
  await mkdir(path.join(device, 'power'), { recursive: true });
  await symlink(device, path.join(root, `sys/class/hwmon/hwmon${index}/device`));
}

const reader = (tool: RunTool = async () => undefined, timeoutMs?: number) =>
  createEnergyReader({
    env: {},
    root,
    now: () => time,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    tool: async (command) => {
      commands.push(command.join(' '));
      return await tool(command);
    },
  });

const putPackage = async (index: number, energy: string): Promise<void> =>
  await put(`powercap/intel-rapl:${index}`, { name: `package-${index}`, energy_uj: energy, max_energy_range_uj: '65532610987' });

describe('sensors', () => {
  test('of a machine that has none', async () => {
    expect(await reader()(NO_NVIDIA)).toEqual([]);
    expect(commands).toEqual([]);
  });

  test('of two packages, of which no part counts twice', async () => {
    await putPackage(0, '5000');
    await putPackage(1, '6000');
    await put('powercap/intel-rapl', { enabled: '1' });
    await put('powercap/intel-rapl:0:0', { name: 'core', energy_uj: '4000' });
    await put('powercap/intel-rapl:0:1', { name: 'dram', energy_uj: '70', max_energy_range_uj: '100' });
    const host = { device: 'host', at: 1000, rangeUj: 65_532_610_987 };
    expect(await reader()(NO_NVIDIA)).toEqual([
      { ...host, source: 'RAPL package-0', energyUj: 5000 },
      { ...host, source: 'RAPL package-0 dram', energyUj: 70, rangeUj: 100 },
      { ...host, source: 'RAPL package-1', energyUj: 6000 },
    ]);
  });

  test('of GPUs: a counter before power, an average before a moment, and the address as the name', async () => {
    await putGpu(0, '0000:03:00.0', { name: 'amdgpu', power1_average: '21000000', power1_input: '9' });
    await putGpu(1, '0000:04:00.0', { name: 'amdgpu', power1_input: '22000000' });
    await putGpu(2, '0000:05:00.0', { name: 'xe', energy2_input: '77' });
    await putGpu(3, '0000:06:00.0', { name: 'amdgpu' });
    await put('hwmon/hwmon4', { name: 'k10temp', power1_input: '5' });
    const gpu = { device: 'gpu', at: 1000 };
    expect(await reader()(NO_NVIDIA)).toEqual([
      { ...gpu, source: 'amdgpu 0000:03:00.0', powerUw: 21_000_000 },
      { ...gpu, source: 'amdgpu 0000:04:00.0', powerUw: 22_000_000 },
      { ...gpu, source: 'xe 0000:05:00.0', energyUj: 77 },
      { ...gpu, source: 'amdgpu 0000:06:00.0', problem: 'not reported' },
    ]);
  });

  test('of a GPU that sleeps are not read, which would wake it', async () => {
    await putGpu(0, '0000:03:00.0', { name: 'amdgpu', power1_average: '21000000' });
    await writeFile(path.join(root, 'sys/devices/0000:03:00.0/power/runtime_status'), 'suspended\n');
    expect(await reader()(NO_NVIDIA)).toMatchObject([{ problem: 'suspended' }]);
    await writeFile(path.join(root, 'sys/devices/0000:03:00.0/power/runtime_status'), 'active\n');
    expect(await reader()(NO_NVIDIA)).toMatchObject([{ powerUw: 21_000_000 }]);
  });

  test('of an integrated GPU count where RAPL tells nothing', async () => {
    await putGpu(0, '0000:c4:00.0', { name: 'amdgpu', power1_average: '30000000', in1_label: 'vddnb' });
    await putPackage(0, 'garbage');
    expect(await reader()(NO_NVIDIA)).toMatchObject([
      { source: 'RAPL package-0', problem: 'not a number' },
      { source: 'amdgpu 0000:c4:00.0', device: 'host', powerUw: 30_000_000 },
    ]);
    await putPackage(0, '5000');
    expect(await reader()(NO_NVIDIA)).toMatchObject([{ energyUj: 5000 }, { problem: 'included in RAPL' }]);
  });

  test.each([
    ['vanished', 'cannot be read (ENOENT)', async (file: string) => await rm(file)],
    ['is a directory', 'cannot be read (EISDIR)', async (file: string) => (await rm(file), await mkdir(file))],
    ['is a pipe that nobody writes to', expect.any(String), async (file: string) => (await rm(file), execFileSync('mkfifo', [file]))],
    ['never ends', 'not a number', async (file: string) => (await rm(file), await symlink('/dev/zero', file))],
    ['is empty', 'not a number', async (file: string) => await writeFile(file, '')],
    ['is negative', 'not a number', async (file: string) => await writeFile(file, '-1\n')],
  ])('whose file %s say so', async (_what, problem, prepare) => {
    await putPackage(0, '5000');
    await putPackage(1, '6000');
    await prepare(path.join(root, 'sys/class/powercap/intel-rapl:0/energy_uj'));
    expect(await reader()(NO_NVIDIA)).toMatchObject([{ problem }, { energyUj: 6000 }]);
  });

  test('that only root may read say so, as RAPL does', async () => {
    await putPackage(0, '5000');
    await chmod(root, 0o755);
    await chmod(path.join(root, 'sys/class/powercap/intel-rapl:0/energy_uj'), 0o000);
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(NOBODY);
    try {
      expect(await reader()(NO_NVIDIA)).toMatchObject([{ source: 'RAPL package-0', problem: 'permission denied' }]);
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  });

  test('of very many devices are not all read', async () => {
    for (let index = 0; index < 300; index += 1) await put(`hwmon/hwmon${index}`, { name: 'amdgpu', power1_input: '5' });
    expect((await reader()(NO_NVIDIA)).length).toBe(256);
  });
});

describe('nvidia-smi', () => {
  const answers = async (): Promise<string> => '00000000:01:00.0, 45.32\n';

  test('runs only where it is wanted, and at most every few seconds', async () => {
    const read = reader(answers);
    expect(await read(NO_NVIDIA)).toEqual([]);
    expect(commands).toEqual([]);
    const first = { source: 'nvidia-smi 0000:01:00.0', device: 'gpu', at: 1000, powerUw: 45_320_000 };
    expect(await read(NVIDIA)).toEqual([first]);
    time += 2000;
    expect(await read(NVIDIA)).toEqual([first]);
    expect(commands).toEqual(['nvidia-smi --query-gpu=pci.bus_id,power.draw --format=csv,noheader,nounits']);
    time += 1000;
    expect(await read(NVIDIA)).toEqual([{ ...first, at: 4000 }]);
    expect(commands.length).toBe(2);
  });

  test('that is missing or fails is looked for a minute later', async () => {
    const read = reader(async () => await Promise.reject(new Error('ENOENT')));
    const failed = { source: 'nvidia-smi', device: 'gpu', at: 1000, problem: 'cannot be run' };
    for (const ms of [0, 3000, 56_000]) {
      time += ms;
      expect(await read(NVIDIA)).toEqual([failed]);
    }
    expect(commands.length).toBe(1);
    time += 1500;
    expect(await read(NVIDIA)).toEqual([{ ...failed, at: time }]);
    expect(commands.length).toBe(2);
  });

  test('that hangs delays no reading for long, and does not run twice', async () => {
    const read = reader(async () => await new Promise(() => undefined), 20);
    await putPackage(0, '5000');
    expect([await read(NVIDIA), await read(NVIDIA)]).toEqual([[], []]);
    expect(commands.length).toBe(1);
  });

  test('is a process with a time limit', async () => {
    await writeFile(path.join(root, 'nvidia-smi'), '#!/bin/sh\nexec sleep 600\n', { mode: 0o755 });
    const env = { PATH: `${root}:${process.env['PATH']}` };
    const read = createEnergyReader({ env, root, tool: createToolRunner(env, 100) });
    expect(await read(NVIDIA)).toMatchObject([{ problem: 'cannot be run' }]);
    await writeFile(path.join(root, 'nvidia-smi'), '#!/bin/sh\necho "00000000:01:00.0, 7"\n', { mode: 0o755 });
    expect(await createEnergyReader({ env, root })(NVIDIA)).toMatchObject([{ powerUw: 7_000_000 }]);
  });
});
