import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { cpuMsOf, measuredForMs, memoryOfProcess, sumOfProcesses, createProcessMemoryReader } from '../../src/host/process-memory.ts';
import { eventually } from '../support/eventually.ts';

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

test('measuredForMs() makes the last measurement of a process a recent one, however short its life was, and few of a long one', () => {
  const times = [0];
  for (let at = 0; at < 3_600_000; at = times.at(-1) ?? 0) times.push(at + measuredForMs(at));
  for (const [index, at] of times.entries()) expect((times[index + 1] ?? at) - at).toBeLessThanOrEqual(Math.max(200, at / 4));
  expect(times.length).toBeLessThan(400);
});

test('a process that takes its memory after it was measured for the first time is measured again soon', async () => {
  const program = "process.stdin.once('data', () => { globalThis.held = Buffer.alloc(200 * 2 ** 20, 1) }); console.log('ready')";
  const child = spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    await once(child.stdout, 'data');
    const reader = createProcessMemoryReader();
    const read = async (): Promise<number> => (await reader.read(child.pid ?? 0))?.host ?? 0;
    expect(await read()).toBeLessThan(200 * 2 ** 20);
    child.stdin.write('go');
    await eventually('it is seen to have 200 MiB', async () => (await read()) > 200 * 2 ** 20, 5000);
  } finally {
    child.kill('SIGKILL');
  }
});

test('what processes use of the memory of devices is read for all of them together', async () => {
  const asked: number[] = [];
  const devices = async (pids: readonly number[]): Promise<number> => {
    asked.push(...pids);
    return 100 * 2 ** 20;
  };
  expect(await createProcessMemoryReader({ devices }).read(process.pid)).toMatchObject({ device: 128 * 2 ** 20 });
  expect(asked).toContain(process.pid);
  expect(await createProcessMemoryReader({ devices: async () => undefined }).read(process.pid)).not.toHaveProperty('device');
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

test('cpuMsOf() reads time on the CPU and pages read from a disk, whatever the name of the program', () => {
  const fields = ['S', 1, 2, 2, 0, -1, 4_194_304, 900, 0, 7, 0, 30, 20, 0, 0, 20].join(' ');
  expect(cpuMsOf(`4711 (llama) 9 (x) ${fields}`)).toBe(507);
  expect(cpuMsOf('')).toBeUndefined();
});

test('the work of a process grows while it computes, and not while it waits', async () => {
  // Ends by its own time on the CPU, so that a busy machine makes no difference.
  const compute = 'for (const { user } = process.cpuUsage(); process.cpuUsage().user < user + 400_000; );';
  const program = `process.stdin.once('data', () => { ${compute} }); console.log('ready')`;
  const child = spawn('sh', ['-c', `"$0" -e "${program}"; true`, process.execPath], { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    await once(child.stdout, 'data');
    const work = async (): Promise<number> => (await createProcessMemoryReader().work(child.pid ?? 0))?.cpuMs ?? Number.NaN;
    const before = await work();
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await work()) - before).toBeLessThan(100);
    child.stdin.write('go');
    await eventually('it has computed', async () => (await work()) - before > 200, 5000);
  } finally {
    child.kill('SIGKILL');
  }
  expect(await createProcessMemoryReader().work(2 ** 22 + 1)).toBeUndefined();
});
