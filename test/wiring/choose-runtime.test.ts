/** Which runtime a machine keeps, and what becomes of workloads of another one. */
import { createServer, type Server } from 'node:http';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { chooseWorld, keepRuntime } from '../../src/wiring/choose-runtime.ts';
import { createPlainLog } from '../../src/platform/log.ts';
import { PROVIDERS } from '../../src/providers/registry.ts';
import type { Runtime } from '../../src/reconciler/ports.ts';
import { fail } from '../../src/schema/words/failure.ts';
import { parseSettings } from '../../src/schema/settings/settings.ts';
import { createInMemoryRuntime } from '../support/in-memory/in-memory-runtime.ts';
import { createWorldClock } from '../support/simulation/world-clock.ts';
import { tinyWorkload } from '../support/runtimes/runtime-world.ts';

const IMAGE = '[gguf.cpu]\nimage = "localhost/toolbox:v1"\n';
const SLOT = 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n';

let dir: string;
let podman: Server | undefined;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'svc-world-'));
  await mkdir(join(dir, 'config/slots'), { recursive: true });
  await mkdir(join(dir, 'state'));
  await writeFile(join(dir, 'config/slots/primary.toml'), SLOT);
});
afterEach(async () => {
  await stopPodman();
  await rm(dir, { recursive: true });
});

const socketPath = (): string => join(dir, 'podman.sock');
async function startPodman(): Promise<void> {
  podman = createServer((request, response) => {
    response.setHeader('libpod-api-version', '4.3.1');
    response.setHeader('content-type', 'application/json');
    response.statusCode = request.method === 'GET' ? 200 : 500;
    response.end(request.url?.includes('/containers/json') === true ? '[]' : '{}');
  });
  await new Promise<void>((resolve) => podman?.listen(socketPath(), resolve));
}
async function stopPodman(): Promise<void> {
  podman?.closeAllConnections();
  await new Promise((resolve) => (podman === undefined ? resolve(undefined) : podman.close(resolve)));
  podman = undefined;
}

async function worldOf(SVC_RUNTIME: string) {
  const parsed = parseSettings({
    SVC_RUNTIME,
    SVC_LISTEN: '127.0.0.1:0',
    SVC_CONFIG_DIR: join(dir, 'config'),
    SVC_STATE_DIR: join(dir, 'state'),
    SVC_MODELS_DIR: join(dir, 'models'),
  });
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const world = await chooseWorld({
    settings: parsed.settings,
    version: 'test',
    log: createPlainLog('silent', () => undefined),
    env: { SVC_PODMAN_SOCKET: socketPath(), PATH: '' },
    toolboxManifest: 'manifests/toolboxes.toml',
    providers: PROVIDERS,
  });
  if (!world.ok) throw new Error(world.failure.message);
  return world.value;
}
const kindOf = async (runtime: string) => (await worldOf(runtime)).runtime.traits.kind;
/** Whatever becomes of the start, the runtime was used for one. */
const startSlot = async (runtime: string) =>
  await (await worldOf(runtime)).runtime.apply(tinyWorkload({ port: 1 }, { host: '127.0.0.1', port: 1 }), AbortSignal.timeout(60_000));

describe('SVC_RUNTIME=auto', () => {
  test('chooses podman where it answers and has an image of a wanted slot', async () => {
    await startPodman();
    expect(await kindOf('auto')).toBe('process');
    await writeFile(join(dir, 'config/toolboxes.toml'), IMAGE);
    expect(await kindOf('auto')).toBe('podman');
    await writeFile(join(dir, 'config/slots/primary.toml'), `enabled = false\n${SLOT}`);
    await writeFile(join(dir, 'config/slots/listen.toml'), 'provider = "stt"\n[model]\ndefault = "x"\n');
    expect(await kindOf('auto')).toBe('process');
  });

  test('keeps processes when podman is installed later', async () => {
    await startSlot('auto');
    await startPodman();
    await writeFile(join(dir, 'config/toolboxes.toml'), IMAGE);
    expect(await kindOf('auto')).toBe('process');
  });

  test('keeps processes of version 0.2, which remembered nothing', async () => {
    await mkdir(join(dir, 'state/run'));
    await writeFile(join(dir, 'state/run/svc-slot-primary.json'), '{}');
    await startPodman();
    await writeFile(join(dir, 'config/toolboxes.toml'), IMAGE);
    expect(await kindOf('auto')).toBe('process');
  });

  test('keeps podman while it does not answer', async () => {
    await startPodman();
    await writeFile(join(dir, 'config/toolboxes.toml'), IMAGE);
    await startSlot('auto');
    await stopPodman();
    const { runtime } = await worldOf('auto');
    expect(runtime.traits.kind).toBe('podman');
    expect(await runtime.observe([], AbortSignal.timeout(60_000))).toMatchObject({ ok: false, failure: { reason: 'RuntimeUnreachable' } });
  });

  test('refuses to start where the memory cannot be read, instead of choosing anew', async () => {
    await mkdir(join(dir, 'state/runtime.json'));
    await expect(worldOf('auto')).rejects.toThrow(/The runtime of the slots is not known: EISDIR/);
  });
});

test('a change of the setting is remembered with the former runtime, until nothing runs there', async () => {
  const memory = async () => JSON.parse(await readFile(join(dir, 'state/runtime.json'), 'utf8'));
  await startSlot('process');
  expect(await memory()).toEqual({ chosen: { runtime: 'process' } });
  await startPodman();
  await startSlot('podman');
  expect(await memory()).toEqual({ chosen: { runtime: 'podman', socketPath: socketPath() }, leaving: { runtime: 'process' } });
  const { runtime } = await worldOf('podman');
  expect(await runtime.observe([], AbortSignal.timeout(60_000))).toMatchObject({ ok: true });
  expect(await memory()).toEqual({ chosen: { runtime: 'podman', socketPath: socketPath() } });
  await runtime.apply(tinyWorkload({ port: 1 }, { host: '127.0.0.1', port: 1 }), AbortSignal.timeout(60_000));
  expect(await memory()).toEqual({ chosen: { runtime: 'podman', socketPath: socketPath() } });
});

describe('Workloads of a former runtime', () => {
  const signal = AbortSignal.timeout(60_000);
  const runtimeWith = async (name: string): Promise<Runtime> => {
    const runtime = createInMemoryRuntime({ clock: createWorldClock() });
    await runtime.apply(tinyWorkload({ port: 20_000, name }, { host: '127.0.0.1', port: 20_000 }), signal);
    return runtime;
  };
  const namesIn = async (runtime: Runtime) => {
    const facts = await runtime.observe([], signal);
    return facts.ok ? facts.value.workloads.map(({ name }) => name) : facts.failure.reason;
  };

  test('are observed beside those of the present one with their ports, and stopped where they run', async () => {
    const former = await runtimeWith('former');
    let drained = 0;
    const both = keepRuntime(await runtimeWith('present'), former, async () => void (drained += 1));
    expect(await namesIn(both)).toEqual(['present', 'former']);
    const facts = await both.observe([], signal);
    const found = facts.ok ? facts.value.workloads.find(({ name }) => name === 'former') : undefined;
    expect([found?.endpoints.length, drained]).toEqual([1, 0]);
    if (found !== undefined) await both.stop(found.id, { graceMs: 0 }, signal);
    expect(await namesIn(former)).toEqual([]);
    expect([await namesIn(both), drained]).toEqual([['present'], 1]);
    await namesIn(both);
    expect(drained).toBe(1);
  });

  test('stay known while the former runtime does not answer', async () => {
    const former = await runtimeWith('former');
    let answers = true;
    const unreliable: Runtime = {
      ...former,
      observe: async (...asked) => (answers ? await former.observe(...asked) : fail('retry', 'RuntimeUnreachable', 'No socket')),
    };
    let drained = 0;
    const both = keepRuntime(await runtimeWith('present'), unreliable, async () => void (drained += 1));
    await namesIn(both);
    answers = false;
    expect([await namesIn(both), drained]).toEqual([['present', 'former'], 0]);
  });

  test('do not hide that the present runtime does not answer', async () => {
    const present: Runtime = { ...(await runtimeWith('present')), observe: async () => fail('retry', 'RuntimeUnreachable', 'No socket') };
    const both = keepRuntime(present, await runtimeWith('former'), async () => undefined);
    expect(await namesIn(both)).toBe('RuntimeUnreachable');
  });
});
