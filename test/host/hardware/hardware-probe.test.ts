/** The adapter reads recordings back from directory trees that look like the recorded machines. */
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { hardwareOf } from '../../../src/host/hardware/decide/hardware-of.ts';
import { createHardwareProbe, readRecording } from '../../../src/host/hardware/hardware-probe.ts';
import { createMachineTools, type AskTool, type RunTool } from '../../../src/host/hardware/machine-tools.ts';
import { HardwareRecordingSchema, type HardwareRecording } from '../../../src/schema/status/hardware.ts';
import { RECORDED_MACHINES, recordingFile, recordingOf } from '../../support/hardware/recorded-machines.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-hardware-'));
});
afterEach(() => rm(root, { recursive: true }));

async function buildTree({ files, links, present }: HardwareRecording): Promise<void> {
  const place = async (path: string): Promise<string> => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    return join(root, path);
  };
  for (const [path, text] of Object.entries(files)) await writeFile(await place(path), text);
  for (const [path, target] of Object.entries(links)) await symlink(`../../../../bus/pci/drivers/${target}`, await place(path));
  for (const path of present) await writeFile(await place(path), '');
}

const toolsOf =
  ({ tools }: HardwareRecording): RunTool =>
  async (command) =>
    tools[command.join(' ')];

describe('createHardwareProbe()', () => {
  for (const name of RECORDED_MACHINES) {
    test(`reads "${name}" from its files and tools`, async () => {
      const recording = recordingOf(name);
      await buildTree(recording);
      const probe = createHardwareProbe({ env: {}, root, tool: toolsOf(recording), platform: recording.platform });
      const expected = hardwareOf({ ...recording, architecture: process.arch }, { kind: 'machine' });
      expect(await probe.read()).toEqual(expected);
      expect(HardwareRecordingSchema.parse(await probe.record())).toMatchObject({ platform: recording.platform });
    });
  }

  test('finds nothing in an empty tree, and does not fail', async () => {
    const probe = createHardwareProbe({ env: {}, root, tool: async () => undefined, platform: 'linux' });
    expect(await probe.read()).toMatchObject({ devices: [], memory: { totalBytes: expect.any(Number) } });
  });

  test('does not fail with directories in the place of files, loops of links, or files of megabytes', async () => {
    const recording = recordingOf('w7900');
    await buildTree({ ...recording, files: { ...recording.files, '/proc/cpuinfo': 'x'.repeat(5_000_000) }, links: {} });
    await rm(join(root, 'sys/bus/pci/devices/0000:03:00.0/vendor'));
    await mkdir(join(root, 'sys/bus/pci/devices/0000:03:00.0/vendor'));
    await symlink('driver', join(root, 'sys/bus/pci/devices/0000:16:00.0/driver'));
    const probe = createHardwareProbe({ env: {}, root, tool: async () => undefined, platform: 'linux' });
    expect(await probe.read()).toMatchObject({ devices: [] });
  });

  test('records no serial numbers, UUIDs or host names', async () => {
    const recording = recordingOf('rtx-3090-and-4090');
    const secret = 'SECRET-0815';
    const information = '/proc/driver/nvidia/gpus/0000:05:00.0/information';
    await buildTree({
      ...recording,
      files: {
        ...recording.files,
        [information]: `${recording.files[information]}GPU UUID: \t ${secret}\n`,
        '/proc/cpuinfo': `${recording.files['/proc/cpuinfo']}Serial\t\t: ${secret}\n`,
        '/sys/class/kfd/kfd/topology/nodes/1/properties': `simd_count 80\nunique_id ${secret}\n`,
        '/sys/bus/pci/devices/0000:05:00.0/unique_id': secret,
        '/sys/bus/pci/devices/0000:05:00.0/serial_number': secret,
        '/etc/hostname': secret,
      },
    });
    const probe = createHardwareProbe({ env: { HOSTNAME: secret }, root, tool: toolsOf(recording), platform: 'linux' });
    expect(JSON.stringify(await probe.record())).not.toContain(secret);
  });

  test('asks nvidia-smi only where a driver of NVIDIA is loaded, and without the newer field if that is refused', async () => {
    const asked: string[] = [];
    const tool: RunTool = async (command) => {
      asked.push(command.join(' '));
      return command.join(' ').includes('compute_cap') ? undefined : '00000000:05:00.0, NVIDIA GeForce RTX 3090, 24576, 100\n';
    };
    await buildTree(recordingOf('rtx-3090-and-4090'));
    const found = await createHardwareProbe({ env: {}, root, tool, platform: 'linux' }).read();
    expect(found.devices[0]).toMatchObject({ memory: { totalBytes: 24_576 * 1024 * 1024 } });
    expect(found.devices[0]).not.toHaveProperty('architecture');
    expect(asked).toHaveLength(2);
    const other = await mkdtemp(join(root, 'other-'));
    await createHardwareProbe({ env: {}, root: other, tool, platform: 'linux' }).read();
    expect(asked).toHaveLength(2);
  });
});

describe('createMachineTools()', () => {
  const outputOf = async (asked: ReturnType<AskTool>): Promise<string | undefined> => (await asked)?.output;

  test('runs a tool once at a time, and again when its answer is old', async () => {
    let now = 0;
    let runs = 0;
    const ask = createMachineTools({ env: {}, now: () => now, run: async () => String(++runs) });
    expect(await outputOf(ask([['a']]))).toBe('1');
    now = 4000;
    expect(await outputOf(ask([['a']]))).toBe('1');
    now = 6000;
    // The old answer counts until the new one is there.
    expect(await Promise.all([outputOf(ask([['a']])), outputOf(ask([['a']]))])).toEqual(['1', '1']);
    expect(await outputOf(ask([['a']]))).toBe('2');
    expect(runs).toBe(2);
  });

  test('asks the next command if one fails, and says which one has answered', async () => {
    const ask = createMachineTools({ env: {}, now: () => 0, run: async ([name]) => (name === 'b' ? 'yes' : undefined) });
    expect(await ask([['a'], ['b'], ['c']])).toEqual({ command: ['b'], output: 'yes' });
  });

  test('waits for a tool that hangs only the first time, and only for some seconds', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] });
    try {
      const ask = createMachineTools({ env: {}, now: () => 0, run: async () => new Promise<never>(() => undefined) });
      const first = ask([['a']]);
      await jest.advanceTimersByTimeAsync(3000);
      expect(await first).toBeUndefined();
      expect(await ask([['a']])).toBeUndefined();
    } finally {
      jest.useRealTimers();
    }
  });

  test('runs a program without a shell, and has no answer if it fails or does not exist', async () => {
    const ask = createMachineTools({ env: { PATH: process.env['PATH'] }, now: () => 0 });
    expect(await outputOf(ask([['echo', '$HOME; `id`']]))).toBe('$HOME; `id`\n');
    expect(await ask([['false']])).toBeUndefined();
    expect(await ask([['no-such-program-anywhere']])).toBeUndefined();
  });
});

describe('readRecording()', () => {
  const messageOf = async (text: string): Promise<string> => {
    const file = join(root, 'machine.json');
    await writeFile(file, text);
    const read = await readRecording(file);
    return read.ok ? 'ok' : read.failure.message;
  };

  test('reads what is recorded', async () => {
    expect(await readRecording(recordingFile('w7900'))).toMatchObject({ ok: true, value: { platform: 'linux' } });
    expect(await messageOf(await readFile(recordingFile('arc-a750'), 'utf8'))).toBe('ok');
  });

  test('says what is wrong with a file that is no recording', async () => {
    expect(await messageOf('{')).toMatch(
      /^The recording ".*machine\.json" cannot be read .*; write one with "svcctl hardware record > FILE"$/,
    );
    expect(await messageOf('[]')).toMatch(/^The recording ".*machine\.json" is not valid: /);
    const broken = { ...recordingOf('w7900'), format: 2, files: { 'no/slash': 'x' } };
    expect(await messageOf(JSON.stringify(broken))).toMatch(/format: .*files\.no\/slash: Use an absolute path/);
    expect(await readRecording(join(root, 'absent.json'))).toMatchObject({
      ok: false,
      failure: { message: expect.stringContaining('ENOENT') },
    });
  });
});
