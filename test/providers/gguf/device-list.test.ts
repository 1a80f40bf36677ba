import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { parseDeviceList, createDeviceLister } from '../../../src/providers/gguf/gguf-server.ts';

const LIST = `ggml_cuda_init: found 1 CUDA devices:
  Device 0: NVIDIA RTX A2000 12GB, compute capability 8.6
Available devices:
  CUDA0: NVIDIA RTX A2000 12GB (12044 MiB, 11893 MiB free)
  Vulkan0: NVIDIA RTX A2000 12GB (12288 MiB, 11800 MiB free)
  Vulkan1: AMD Radeon Graphics (RADV) (31000 MiB, 30000 MiB free)
`;

describe('parseDeviceList()', () => {
  test('returns each backend once', () => {
    expect(parseDeviceList(LIST)).toEqual(['cuda', 'vulkan']);
    expect(parseDeviceList('Available devices:\n  ROCm0: AMD Radeon Pro W7900 (46064 MiB, 46000 MiB free)\n')).toEqual(['rocm']);
  });

  test('returns none for a build or a machine without a GPU, and undefined for a program without the option', () => {
    expect(parseDeviceList('Available devices:\n')).toEqual([]);
    expect(parseDeviceList('Available devices:\n  RPC0: 10.0.0.1:5000 (1 MiB, 1 MiB free)\n')).toEqual([]);
    expect(parseDeviceList('error: invalid argument: --list-devices\n')).toBeUndefined();
    expect(parseDeviceList('')).toBeUndefined();
  });
});

describe('createDeviceLister()', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'svc-devices-'));
  });
  afterEach(() => rm(dir, { recursive: true }));

  const install = async (script: string): Promise<void> => {
    await writeFile(join(dir, 'llama-server'), `#!/bin/sh\n${script}\n`);
    await chmod(join(dir, 'llama-server'), 0o755);
  };
  const lister = () => createDeviceLister({ PATH: `${dir}:/usr/bin:/bin`, HOME: dir });

  test('knows that the embedded engine uses the CPU only', async () => {
    expect(await createDeviceLister({ PATH: dir })('')).toEqual({
      name: expect.stringContaining('the embedded engine'),
      backends: ['cpu'],
    });
  });

  test('asks the program that is installed, again only after it or the devices have changed', async () => {
    await install(`echo "$@" >> ${dir}/asked; cat <<'END'\n${LIST}END`);
    const list = lister();
    const found = { name: `"${dir}/llama-server"`, backends: ['cpu', 'cuda', 'vulkan'] };
    expect(await list('a')).toEqual(found);
    expect(await list('a')).toEqual(found);
    await install(`echo "$@" >> ${dir}/asked; echo 'Available devices:'`);
    expect(await list('a')).toMatchObject({ backends: ['cpu'] });
    expect(await list('b')).toMatchObject({ backends: ['cpu'] });
    expect(await readFile(join(dir, 'asked'), 'utf8')).toBe('--list-devices\n'.repeat(3));
  });

  test('knows nothing of a program that does not have the option', async () => {
    await install('echo "error: invalid argument" >&2; exit 1');
    expect(await lister()('')).toBeUndefined();
  });
});
