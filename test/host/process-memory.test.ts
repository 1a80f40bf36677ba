import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { memoryOfProcess, sumOfProcesses } from '../../src/host/decide/process-memory.ts';
import { createProcessMemoryReader } from '../../src/host/process-memory.ts';

test('memoryOfProcess() reads what the kernel writes, and nothing where it does not', () => {
  const status = 'Name:\tnode\nVmRSS:\t   60 kB\nRssAnon:\t   10 kB\nRssFile:\t   20 kB\nRssShmem:\t   30 kB\n';
  expect(memoryOfProcess(status)).toEqual({ ownBytes: 40 * 1024, mappedBytes: 20 * 1024 });
  expect(memoryOfProcess('Name:\tkthreadd\n')).toBeUndefined();
  expect(memoryOfProcess('')).toBeUndefined();
});

test('sumOfProcesses() counts a file once that several processes map', () => {
  const mib = 2 ** 20;
  const parts = [
    { ownBytes: 100 * mib, mappedBytes: 500 * mib },
    { ownBytes: 20 * mib, mappedBytes: 500 * mib },
  ];
  expect(sumOfProcesses(parts)).toEqual({ host: 128 * mib, mapped: 512 * mib });
  expect(sumOfProcesses([])).toBeUndefined();
});

test('a process is measured with those that it started', async () => {
  const program = 'const held = Buffer.alloc(200 * 2 ** 20, 1); console.log(held.length); setInterval(() => held, 1000)';
  const shell = spawn('sh', ['-c', `"$0" -e '${program}'; true`, process.execPath], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  try {
    await once(shell.stdout, 'data');
    const used = await createProcessMemoryReader().read(shell.pid ?? 0);
    expect(used?.host).toBeGreaterThan(200 * 2 ** 20);
    expect(used?.host).toBeLessThan(500 * 2 ** 20);
  } finally {
    process.kill(-(shell.pid ?? 0), 'SIGKILL');
  }
  expect(await createProcessMemoryReader().read(2 ** 22 + 1)).toBeUndefined();
});
