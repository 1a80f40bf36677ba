/** What servers use of the memory of GPUs, read from directory trees that look like the recorded processes. */
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { bytesOfClients, parseDrmClient, parseNvidiaProcesses, createDeviceMemory } from '../../../src/host/hardware/device-memory.ts';
import type { Device, Hardware } from '../../../src/schema/status/hardware.ts';

interface RecordedProcesses {
  readonly devices: readonly Device[];
  readonly links: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
  readonly tools: Readonly<Record<string, string>>;
  readonly pids: readonly number[];
  /** What is to be found. */
  readonly bytes: number;
}

const RECORDED = path.join(import.meta.dirname, 'recorded-processes');
const NAMES = (await readdir(RECORDED)).map((name) => name.replace('.json', ''));

async function recordingOf(name: string): Promise<RecordedProcesses> {
  const recorded: RecordedProcesses = JSON.parse(await readFile(path.join(RECORDED, `${name}.json`), 'utf8'));
  return recorded;
}

let root: string;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-processes-'));
});
afterEach(() => rm(root, { recursive: true }));

async function readerOf(recorded: RecordedProcesses, source: Hardware['source'] = { kind: 'machine' }) {
  const place = async (name: string): Promise<string> => {
    await mkdir(path.dirname(path.join(root, name)), { recursive: true });
    return path.join(root, name);
  };
  for (const [name, text] of Object.entries(recorded.files)) await writeFile(await place(name), text);
  for (const [name, target] of Object.entries(recorded.links)) await symlink(target, await place(name));
  const hardware: Hardware = {
    source,
    cpu: { architecture: 'x64', threads: 8 },
    memory: undefined,
    devices: recorded.devices,
    programs: {},
  };
  return createDeviceMemory({ hardware: async () => hardware, env: {}, root, tool: async (command) => recorded.tools[command.join(' ')] });
}

describe('createDeviceMemory()', () => {
  for (const name of NAMES) {
    test(`reads what the processes of "${name}" use`, async () => {
      const recorded = await recordingOf(name);
      const read = await readerOf(recorded);
      expect(await read(recorded.pids)).toBe(recorded.bytes);
      expect(await read([1])).toBeUndefined();
    });
  }

  test('skips the figure of a GPU that is no number', async () => {
    const recorded = await recordingOf('rocm-on-two-gpus');
    const [pid] = recorded.pids;
    const figures = { [`/sys/class/kfd/kfd/proc/${pid}/vram_7`]: 'unknown\n', [`/sys/class/kfd/kfd/proc/${pid}/vram_8`]: '' };
    const read = await readerOf({ ...recorded, files: { ...recorded.files, ...figures } });
    expect(await read(recorded.pids)).toBe(recorded.bytes);
  });

  test('reads nothing where there is no GPU, and where a recording takes the place of the machine', async () => {
    const recorded = await recordingOf('arc-xe');
    expect(await (await readerOf({ ...recorded, devices: [] }))(recorded.pids)).toBeUndefined();
    await rm(root, { recursive: true });
    const read = await readerOf(recorded, { kind: 'recording', file: '/r.json', about: '' });
    expect(await read(recorded.pids)).toBeUndefined();
  });
});

test('bytesOfClients() takes a device that it does not know for one with its own memory if it says so', () => {
  const client = (id: string, ...lines: readonly string[]) => {
    const parsed = parseDrmClient(['drm-driver: xe', `drm-client-id: ${id}`, ...lines].join('\n'));
    return parsed === undefined ? [] : [parsed];
  };
  const [own, shared] = [
    client('1', 'drm-resident-vram0: 10', 'drm-resident-gtt: 5'),
    client('2', 'drm-resident-gtt: 5', 'drm-resident-stolen: 1', 'drm-memory-cpu: 100'),
  ];
  expect(bytesOfClients([...own, ...own], [])).toBe(10);
  expect(bytesOfClients(shared, [])).toBe(6);
});

test('parseDrmClient() prefers the standardised key, and skips units that it does not know', () => {
  const lines = ['drm-driver: amdgpu', 'drm-client-id: 1', 'drm-resident-vram: 2 MiB', 'drm-memory-vram: 1 MiB', 'drm-resident-gtt: 5 TiB'];
  expect(parseDrmClient(lines.join('\n'))?.bytes).toEqual(new Map([['vram', 2 * 2 ** 20]]));
  expect(parseDrmClient('pos:\t0\nflags:\t0100000\n')).toBeUndefined();
});

test('parseDrmClient() adds the time of all engines, and leaves it unknown where the driver counts none', () => {
  const client = ['drm-driver: amdgpu', 'drm-client-id: 1'];
  const engines = ['drm-engine-gfx:\t5000000 ns', 'drm-engine-compute: 7000000 ns', 'drm-engine-capacity-compute: 4'];
  expect(parseDrmClient([...client, ...engines].join('\n'))?.busyMs).toBe(12);
  expect(parseDrmClient([...client, 'drm-engine-capacity-compute: 4'].join('\n'))?.busyMs).toBeUndefined();
});

test('nothing that a driver or a tool prints makes these fail, or yields what is no number of bytes', () => {
  const line = fc.oneof(
    fc.string(),
    fc.tuple(fc.constantFrom('drm-driver', 'drm-client-id', 'drm-resident-vram'), fc.string()).map((pair) => pair.join(': ')),
  );
  fc.assert(
    fc.property(fc.array(line), (lines) => {
      const text = lines.join('\n');
      const client = parseDrmClient(text);
      const bytes = [client === undefined ? 0 : bytesOfClients([client], []), ...parseNvidiaProcesses(text).values()];
      for (const each of bytes) expect(Number.isSafeInteger(each) && each >= 0).toBe(true);
    }),
  );
});
