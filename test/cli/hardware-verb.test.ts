/** `svcctl hardware`, with a service and without one. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { HardwareRecordingSchema } from '../../src/schema/status/hardware.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { recordedHardware, recordingFile } from '../support/hardware/recorded-machines.ts';
import { svcctl } from './run-svcctl.ts';

let world: World;
let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svcctl-hardware-'));
  world = await startWorld();
});
afterAll(async () => {
  await world.close();
  await rm(dir, { recursive: true });
});

const ask = (...args: readonly string[]) => svcctl(['hardware', ...args], { env: { SVCCTL_SERVER: world.url } });

describe('svcctl hardware', () => {
  test('shows what the machine of the service has', async () => {
    world.hardware = {
      memoryTotalBytes: 64 * 1024 ** 3,
      memoryAvailableBytes: 50 * 1024 ** 3,
      hardware: recordedHardware('rtx-3090-and-4090'),
    };
    expect(await ask()).toEqual({
      code: 0,
      err: '',
      out: `cpu       AMD Ryzen 9 5950X 16-Core Processor, 16 cores, 32 threads, x64
memory    64.0 GiB, 50.0 GiB available

DEVICE  NAME                     DRIVER  MEMORY    FREE      SHARED  BACKENDS  NOTE
gpu0    NVIDIA GeForce RTX 3090  nvidia  24.0 GiB  9.0 GiB   no      cuda      vulkan: images for Vulkan cannot use the driver of NVIDIA
gpu1    NVIDIA GeForce RTX 4090  nvidia  24.0 GiB  23.5 GiB  no      cuda      vulkan: images for Vulkan cannot use the driver of NVIDIA
`,
    });
    const { devices } = JSON.parse((await ask('-o', 'json')).out);
    expect(devices[1]).toMatchObject({ id: 'gpu1', pci_address: '0000:0a:00.0', architecture: 'sm_89' });
  });

  test('says that a cluster has no machine of its own, and that a container does not show its devices', async () => {
    world.hardware = { memoryTotalBytes: undefined, memoryAvailableBytes: undefined };
    expect((await ask()).out).toContain('devices   unknown: the service runs in a cluster, whose nodes "kubectl describe nodes" shows');
    const hardware = { ...recordedHardware('server-without-gpu'), devicesHidden: 'the service runs in a container' };
    world.hardware = { memoryTotalBytes: 1e9, memoryAvailableBytes: 1e9, hardware };
    expect((await ask()).out).toContain('devices   unknown: the service runs in a container\n');
  });

  test('shows a recording without a service, and says so', async () => {
    const file = recordingFile('intel-graphics-and-nouveau');
    const { code, out } = await svcctl(['hardware', '-f', file], { env: { SVCCTL_SERVER: 'http://127.0.0.1:1' } });
    expect(code).toBe(0);
    expect(out).toContain(`recording ${file}\n`);
    expect(out).toContain('cuda, vulkan: the GPU uses the driver "nouveau" instead of "nvidia"\n');
  });

  test('refuses a file that is no recording', async () => {
    const file = path.join(dir, 'broken.json');
    await writeFile(file, '{"format":1}');
    expect(await ask('-f', file)).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining(`The recording "${file}" is not valid: about: `),
    });
  });

  test('records this machine, so that the recording shows the same again', async () => {
    const { code, out } = await svcctl(['hardware', 'record']);
    expect(code).toBe(0);
    expect(HardwareRecordingSchema.parse(JSON.parse(out))).toMatchObject({ format: 1, platform: process.platform });
    const file = path.join(dir, 'this.json');
    await writeFile(file, out);
    expect(JSON.parse((await ask('-f', file, '-o', 'json')).out)).toMatchObject({
      source: 'recording',
      cpu: { architecture: process.arch },
    });
  });
});
