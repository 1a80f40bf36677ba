import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { expect, test } from '@jest/globals';
import { createPlainLog } from '../../src/platform/log.ts';
import { parseSettings } from '../../src/schema/settings/settings.ts';
import { countProcesses, fitConnections } from '../../src/wiring/start-workers.ts';
import { createInMemoryRuntime } from '../support/in-memory/in-memory-runtime.ts';
import { createWorldClock } from '../support/simulation/world-clock.ts';

const log = createPlainLog('silent', () => undefined);

async function countOf(SVC_WORKERS: string, network: 'shared' | 'pods', SVC_CONTROL_PLANE = 'shared') {
  const parsed = parseSettings({ SVC_WORKERS, SVC_CONTROL_PLANE, SVC_LISTEN: '127.0.0.1:0' });
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const runtime = createInMemoryRuntime({ clock: createWorldClock() });
  const counted = await countProcesses(
    { settings: parsed.settings, log },
    { runtime: { ...runtime, traits: { ...runtime.traits, network } } },
  );
  return counted.ok ? counted.value : counted.failure.message;
}

test.each<[string, 'shared' | 'pods', number | string]>([
  ['1', 'shared', 1],
  ['3', 'shared', 3],
  ['auto', 'shared', Math.min(64, availableParallelism())],
  ['1', 'pods', 1],
  ['3', 'pods', '"SVC_WORKERS" must be 1 in a cluster, not "3": run more replicas of the gateway instead'],
  ['auto', 'pods', '"SVC_WORKERS" must be 1 in a cluster, not "auto": run more replicas of the gateway instead'],
])('SVC_WORKERS=%s where workloads are reached over "%s" means %s', async (setting, network, expected) => {
  expect(await countOf(setting, network)).toBe(expected);
});

test.each<[string, 'shared' | 'pods', number | string]>([
  ['1', 'shared', 2],
  ['3', 'shared', 4],
  ['auto', 'shared', Math.min(64, availableParallelism()) + 1],
  ['1', 'pods', '"SVC_CONTROL_PLANE" must be "shared" in a cluster, not "separate": run more replicas of the gateway instead'],
])('SVC_WORKERS=%s beside a service that only decides, over "%s", means %s', async (setting, network, expected) => {
  expect(await countOf(setting, network, 'separate')).toBe(expected);
});

test('a process that may open 1,024 files accepts 384 connections, so that 256 files can be opened for its slots', () => {
  const script =
    "import('./src/host/host-probe.ts').then(async ({ mostConnections }) => console.log(JSON.stringify(await mostConnections())))";
  const ran = spawnSync('prlimit', ['--nofile=1024', process.execPath, '-e', script], { encoding: 'utf8' });
  expect(JSON.parse(ran.stdout)).toEqual({ descriptors: 1024, connections: 384 });
});

test('more connections than files may be open are not accepted, and the log says why', async () => {
  const lines: string[] = [];
  const fitted = async (SVC_MAX_CONNECTIONS: string) => {
    const parsed = parseSettings({ SVC_MAX_CONNECTIONS, SVC_LISTEN: '127.0.0.1:0' });
    if (!parsed.ok) throw new Error(parsed.problems.join('; '));
    return (await fitConnections({ settings: parsed.settings, log: createPlainLog('info', (line) => lines.push(line)) })).settings
      .SVC_MAX_CONNECTIONS;
  };
  expect([await fitted('10'), lines]).toEqual([10, []]);
  const most = await fitted('1000000');
  expect(most).toBeLessThan(1_000_000);
  expect(lines.join('')).toContain(`"SVC_MAX_CONNECTIONS" is ${most}, because this process may open`);
});
