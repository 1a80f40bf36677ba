import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createClock } from '../../src/platform/clock.ts';
import { countOomKills, createHostProbe, isKilledByKernel } from '../../src/host/host-probe.ts';
import { createProbeIo } from '../../src/platform/probe-io.ts';
import type { Hardware } from '../../src/schema/status/hardware.ts';
import { recordedHardware } from '../support/hardware/recorded-machines.ts';
import { freePort } from '../support/runtimes/runtime-world.ts';

describe('createHostProbe()', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'svc-host-'));
  });
  afterEach(() => rm(dir, { recursive: true }));

  const read = async (files: Readonly<Record<string, string>>) => {
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(dir, path)), { recursive: true });
      await writeFile(join(dir, path), text);
    }
    return createHostProbe({ procDir: join(dir, 'proc'), cgroupDir: join(dir, 'cgroup') }).read(AbortSignal.timeout(5000));
  };
  const meminfo = 'MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:    8000 kB\n';

  test.each([
    ['0::/system.slice/svc.service\n', 'cgroup/system.slice/svc.service/memory.events', 'low 0\noom 3\noom_kill 2\noom_group_kill 0\n', 2],
    ['4:memory:/svc\n0::/\n', 'cgroup/memory/svc/memory.oom_control', 'oom_kill_disable 0\nunder_oom 0\noom_kill 5\n', 5],
    ['0::/\n', 'cgroup/elsewhere', '', undefined],
  ])('counts kills of the kernel for want of memory in the group %j', async (group, file, text, kills) => {
    await read({ 'proc/self/cgroup': group, [file]: text });
    expect(await countOomKills(join(dir, 'proc'), join(dir, 'cgroup'))).toBe(kills);
  });

  const nowUs = Math.floor(Number(process.hrtime.bigint()) / 1000);
  const kill = 'Out of memory: Killed process 4711 (llama-server) total-vm:9kB, anon-rss:8kB\n';
  test.each([
    ['a kill', `3,88,${nowUs},-;${kill}`, true],
    ['a kill in a control group', `3,88,${nowUs},-,caller=T7;Memory cgroup o${kill.slice(1)}`, true],
    ['a kill of an earlier process with this id', `3,88,${nowUs - 60_000_000},-;${kill}`, false],
    ['a kill of another process', `3,88,${nowUs},-;${kill.replace('4711', '471')}`, false],
    ['a message of a program', `14,88,${nowUs},-;service: said "${kill}`, false],
    ['nothing', '', false],
  ])('reads in the log of the kernel: %s', async (_what, record, expected) => {
    const log = join(dir, 'kmsg');
    await writeFile(log, record);
    expect(await isKilledByKernel(4711, Date.now() - 30_000, log)).toBe(expected);
  });

  test('does not wait for a log of the kernel that is missing, or that nothing is written to', async () => {
    const pipe = join(dir, 'pipe');
    execFileSync('mkfifo', [pipe]);
    for (const log of [pipe, join(dir, 'missing'), dir]) expect(await isKilledByKernel(4711, 0, log)).toBe(false);
  });

  test('reads the hardware as well if it is told how, and limits its memory to that of the container', async () => {
    const hardware = recordedHardware('w7900');
    const cgroupDir = join(dir, 'cgroup');
    for (const [file, text] of [
      ['memory.max', '4000000\n'],
      ['memory.current', '1000000\n'],
    ] as const) {
      await mkdir(cgroupDir, { recursive: true });
      await writeFile(join(cgroupDir, file), text);
    }
    await mkdir(join(dir, 'proc/self'), { recursive: true });
    await writeFile(join(dir, 'proc/self/cgroup'), '0::/\n');
    const probeOf = (found: Hardware) => createHostProbe({ procDir: join(dir, 'proc'), cgroupDir, hardware: async () => found });
    const facts = await probeOf(hardware).read(AbortSignal.timeout(5000));
    expect(facts).toEqual({ memoryTotalBytes: 4_000_000, memoryAvailableBytes: 3_000_000, hardware });
  });

  test('takes the memory of a recording as it is, since the limits of this machine do not apply to another one', async () => {
    const hardware: Hardware = {
      ...recordedHardware('server-without-gpu'),
      source: { kind: 'recording', file: '/machine.json', about: '' },
    };
    const facts = await createHostProbe({ hardware: async () => hardware }).read(AbortSignal.timeout(5000));
    expect(facts).toMatchObject({ memoryTotalBytes: 527_985_408 * 1024, memoryAvailableBytes: 515_899_392 * 1024 });
  });

  test('reads this machine', async () => {
    const facts = await createHostProbe().read(AbortSignal.timeout(5000));
    expect(facts.memoryTotalBytes).toBeGreaterThan(0);
    expect(facts.memoryAvailableBytes).toBeGreaterThan(0);
    expect(facts.memoryAvailableBytes).toBeLessThanOrEqual(facts.memoryTotalBytes ?? 0);
  });

  test('reports the machine’s memory if there is no limit', async () => {
    const facts = await read({
      'proc/meminfo': meminfo,
      'proc/self/cgroup': '0::/a\n',
      'cgroup/a/memory.max': 'max\n',
      'cgroup/a/memory.current': '5\n',
    });
    expect(facts).toEqual({ memoryTotalBytes: 16_384_000, memoryAvailableBytes: 8_192_000 });
  });

  test('applies limits of cgroup v2, also of parent groups, and counts inactive cache as free', async () => {
    const facts = await read({
      'proc/meminfo': meminfo,
      'proc/self/cgroup': '0::/a/b\n',
      'cgroup/a/b/memory.max': 'max\n',
      'cgroup/a/b/memory.current': '1\n',
      'cgroup/a/memory.max': '4000000\n',
      'cgroup/a/memory.current': '3000000\n',
      'cgroup/a/memory.stat': 'anon 1000000\ninactive_file 2000000\n',
    });
    expect(facts).toEqual({ memoryTotalBytes: 4_000_000, memoryAvailableBytes: 3_000_000 });
  });

  test('applies limits of cgroup v1, and recognises its value for "no limit"', async () => {
    const files = {
      'proc/meminfo': meminfo,
      'proc/self/cgroup': '3:cpu:/\n2:memory:/a\n',
      'cgroup/memory/a/memory.usage_in_bytes': '1000000',
    };
    expect(await read({ ...files, 'cgroup/memory/a/memory.limit_in_bytes': '9223372036854771712' })).toMatchObject({
      memoryTotalBytes: 16_384_000,
    });
    expect(await read({ ...files, 'cgroup/memory/a/memory.limit_in_bytes': '2000000' })).toEqual({
      memoryTotalBytes: 2_000_000,
      memoryAvailableBytes: 1_000_000,
    });
  });

  test('reports unknown memory if the numbers cannot be parsed', async () => {
    expect(await read({ 'proc/meminfo': 'nonsense' })).toEqual({ memoryTotalBytes: undefined, memoryAvailableBytes: undefined });
  });
});

describe('createClock()', () => {
  test('calls back once, and not too early', async () => {
    const clock = createClock();
    const at = clock.now() + 30;
    const called = await new Promise<number>((resolve) => clock.at(at, () => resolve(clock.now())));
    expect(called).toBeGreaterThanOrEqual(at);
  });

  test('calls back immediately for a time in the past, never if cancelled, and not yet for a distant time', async () => {
    const clock = createClock();
    const seen: string[] = [];
    clock.at(clock.now() - 1000, () => seen.push('past'));
    clock.at(clock.now() + 10, () => seen.push('cancelled'))();
    const cancel = clock.at(clock.now() + 2 ** 40, () => seen.push('far'));
    await new Promise((resolve) => setTimeout(resolve, 60));
    cancel();
    expect(seen).toEqual(['past']);
  });
});

describe('createProbeIo()', () => {
  const io = createProbeIo();
  const options = (path: string, timeoutMs = 2000) => ({ method: 'GET' as const, path, timeoutMs, signal: AbortSignal.timeout(10_000) });
  const server = createServer((request, response) => {
    if (request.url === '/silent') return;
    if (request.url === '/long') response.end('x'.repeat(1024 * 1024));
    else if (request.url === '/endless') setInterval(() => response.write('y'.repeat(1000)), 5).unref();
    else if (request.method === 'GET') response.writeHead(503).end('loading');
    else request.on('data', (data: Buffer) => response.end(`got ${data.toString()}`));
  });
  let endpoint: { host: string; port: number };
  beforeEach(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    endpoint = { host: '127.0.0.1', port: typeof address === 'object' ? (address?.port ?? 0) : 0 };
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  test('returns status and body, and sends a body', async () => {
    expect(await io.request(endpoint, options('/'))).toEqual({ status: 503, body: 'loading' });
    expect(await io.request(endpoint, { ...options('/'), method: 'POST', body: '{"a":1}' })).toEqual({ status: 200, body: 'got {"a":1}' });
  });

  test('reads at most 64 KiB, also of an endless body', async () => {
    expect((await io.request(endpoint, options('/long'))).body).toHaveLength(64 * 1024);
    expect((await io.request(endpoint, options('/endless'))).body).toHaveLength(64 * 1024);
  });

  test('never throws: no listener, no answer, cancelled', async () => {
    expect(await io.request({ host: '127.0.0.1', port: await freePort() }, options('/'))).toMatchObject({
      status: 0,
      error: 'Connection refused: the server is not listening yet',
    });
    expect(await io.request(endpoint, options('/silent', 100))).toMatchObject({ status: 0, error: expect.stringContaining('100 ms') });
    expect(await io.request(endpoint, { ...options('/silent'), signal: AbortSignal.abort() })).toMatchObject({ status: 0 });
    expect(await io.request({ host: 'not a host', port: 1 }, options('/'))).toMatchObject({ status: 0, error: expect.any(String) });
  });
});
