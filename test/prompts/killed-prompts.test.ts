/**
 * The real llama-server, or the service, is killed while a conversation is being saved or restored, and the disk is full while one is saved. The conversation takes more than
 * 100 MB, so that this lasts long enough to be met: a server that moves it has the file open.
 */
import { readdirSync, readFileSync, readlinkSync, statfsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { writeLargeModel } from '../../bench/large-model.ts';
import { denseModel } from '../../bench/large-shapes.ts';
import { eventually } from '../support/eventually.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { describeWithPodman } from '../support/require/require-podman.ts';
import { describeWithMounts, mountSmallDisk, type SmallDisk } from '../support/require/require-mounts.ts';
import { isAnswering, servingProcess, startService, type Service } from '../support/service.ts';

/** Few tokens, and half a megabyte of keys and values for each. */
const MODEL = denseModel({
  layers: 16,
  width: 64,
  heads: 128,
  headsKv: 128,
  headLength: 64,
  feedForward: 64,
  vocabulary: 2000,
  context: 512,
  format: 'q8_0',
});
const PROMPT = Array.from({ length: 300 }, (_, index) => 500 + index);
const SLOT = 'backend = "cpu"\n[model]\ndefault = "large.gguf"\nargs = ["--ctx-size", "512", "--parallel", "1"]\n';
const OFF = `enabled = false\n${SLOT}`;
const MIB = 2 ** 20;
/** Budgets of the service: a save may delay a stop by five seconds, a restore a start by ten, beyond what they take anyway. */
const SAVE_MS = 5000;
const RESTORE_MS = 10_000;

/** Starts the service with the model, and returns what tests do with it. */
async function startBed(settings: Readonly<Record<string, string>> = {}) {
  const environment = { PATH: `${await directoryOfLlamaServer()}:${process.env['PATH'] ?? ''}`, ...settings };
  const service = await startService({ runtime: 'process', environment });
  await writeLargeModel(path.join(service.modelsDir, 'large.gguf'), MODEL);
  const directory = (): string => path.join(service.environment['SVC_STATE_DIR'] ?? '', 'prompts/primary');
  const files = async (): Promise<readonly string[]> => readdir(directory()).catch(() => []);
  const explain = async (): Promise<string> => {
    const { text } = JSON.parse(await (await fetch(`${service.url}/api/slots/primary/explain`)).text());
    return text;
  };
  /** Returns how long it took, in milliseconds. */
  const becomes = async (what: 'ready' | 'offline'): Promise<number> => {
    const from = performance.now();
    await service.until('primary', what, (slot) => (what === 'ready' ? isAnswering(slot) : slot?.status.state === what));
    return performance.now() - from;
  };
  const on = async (): Promise<number> => {
    await service.save('primary', SLOT);
    return becomes('ready');
  };
  const off = async (): Promise<number> => {
    await service.save('primary', OFF);
    return becomes('offline');
  };
  /** Returns the tokens of the prompt that were computed. */
  const ask = async (): Promise<number> => {
    const answer = await fetch(`${service.url}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'primary', prompt: PROMPT, max_tokens: 1, temperature: 0 }),
    });
    const read = await answer.text();
    if (!answer.ok) throw new Error(read);
    return JSON.parse(read).timings.prompt_n;
  };
  /** Starts a server with a conversation. Returns its process, and how long a start and a stop without one take on this machine now. */
  const serve = async (): Promise<{ readonly server: number; readonly startMs: number; readonly stopMs: number }> => {
    await on();
    const stopMs = await off();
    const startMs = await on();
    expect(await ask()).toBe(PROMPT.length);
    const server = (await servingProcess(service)) ?? 0;
    expect(server).toBeGreaterThan(0);
    return { server, startMs, stopMs };
  };
  /** As `serve`, and the conversation is saved. */
  const save = async (): Promise<{ readonly startMs: number }> => {
    const served = await serve();
    await off();
    if ((await files()).length !== 1) throw new Error(`The conversation was not saved: ${await explain()}`);
    return served;
  };
  /** The server that has a file of kept prompts open. It looks at one process without a pause: some milliseconds count. */
  const moving = async (): Promise<number> => {
    let pid: number | undefined;
    await eventually('a server runs', () => (pid = serversOf(service)[0]) !== undefined, 60_000);
    for (const deadline = Date.now() + 60_000; Date.now() < deadline; await new Promise(setImmediate))
      if (pid !== undefined && openFiles(pid).some((file) => file.startsWith(directory()))) return pid;
    throw new Error(`The server has not moved a conversation: ${await explain()}`);
  };
  return { service, files, explain, becomes, on, off, ask, serve, save, moving };
}

describeWithPodman('A conversation that is being moved when something ends', () => {
  let bed: Awaited<ReturnType<typeof startBed>>;
  beforeEach(async () => void (bed = await startBed()), 120_000);
  afterEach(async () => bed?.service.dispose(), 60_000);

  test('is lost with its server while it is saved, and the slot starts without it', async () => {
    const { serve, moving, off, explain, files, on, ask } = bed;
    const { stopMs } = await serve();
    const met = moving().then((pid) => process.kill(pid, 'SIGKILL'));
    expect(await off()).toBeLessThan(stopMs + SAVE_MS);
    expect(await met).toBe(true);
    expect(await explain()).toContain('prompts: not saved: the server does not answer');
    expect(await files()).toEqual([]);
    await on();
    expect(await ask()).toBe(PROMPT.length);
  }, 180_000);

  test('is not offered again after its server was killed while it read it', async () => {
    const { service, save, moving, explain, files, becomes, ask } = bed;
    const { startMs } = await save();
    const met = moving().then((pid) => process.kill(pid, 'SIGKILL'));
    await service.save('primary', SLOT);
    expect(await met).toBe(true);
    // A crash is repaired after a second; restoring was not waited for.
    expect(await becomes('ready')).toBeLessThan(startMs + RESTORE_MS);
    expect(await files()).toEqual([]);
    expect(await explain()).toContain('prompts: not restored: the server does not answer');
    expect(await ask()).toBe(PROMPT.length);
  }, 180_000);

  test('is lost with the service while it is saved, and the slot says so when it starts', async () => {
    const { service, serve, moving, explain, files, becomes, on, ask } = bed;
    const { stopMs } = await serve();
    const met = moving().then(async () => service.kill('SIGKILL'));
    await service.save('primary', OFF);
    await met;
    expect((await files()).filter((name) => name.endsWith('.part'))).toHaveLength(1);
    await service.start();
    // Before its first pass, the service shows nothing of the server.
    await eventually('the server has ended', () => serversOf(service).length === 0, stopMs + SAVE_MS);
    await becomes('offline');
    await on();
    expect(await explain()).toContain('prompts: not restored: the service ended while a conversation was being saved or restored');
    expect(await files()).toEqual([]);
    expect(await ask()).toBe(PROMPT.length);
  }, 180_000);

  test('is lost with the service and the server while it is restored, and the slot says so when it starts', async () => {
    const { service, save, moving, explain, files, becomes, ask } = bed;
    const { startMs } = await save();
    const met = moving().then(async (pid) => {
      process.kill(pid, 'SIGKILL');
      await service.kill('SIGKILL');
    });
    await service.save('primary', SLOT);
    await met;
    await service.start();
    expect(await becomes('ready')).toBeLessThan(startMs + RESTORE_MS);
    expect(await explain()).toContain('prompts: not restored: the service ended while a conversation was being saved or restored');
    expect(await files()).toEqual([]);
    expect(await ask()).toBe(PROMPT.length);
  }, 180_000);

  test('does not hinder the next service when the last one was killed while it was restored', async () => {
    const { service, save, moving, off, becomes, on, ask } = bed;
    const { startMs } = await save();
    const met = moving().then(async (pid) => {
      await service.kill('SIGKILL');
      return pid;
    });
    await service.save('primary', SLOT);
    const server = await met;
    await service.start();
    expect(await becomes('ready')).toBeLessThan(startMs + RESTORE_MS);
    // It is the same server, which has read its file meanwhile.
    expect(await servingProcess(service)).toBe(server);
    expect(await ask()).toBeLessThanOrEqual(PROMPT.length);
    await off();
    await on();
    expect(await ask()).toBeLessThan(PROMPT.length / 10);
  }, 180_000);
});

describeWithPodman('The real llama-server', () => {
  describeWithMounts('A conversation that is being saved when the disk becomes full', () => {
    let disk: SmallDisk;
    let bed: Awaited<ReturnType<typeof startBed>>;
    beforeAll(async () => {
      disk = mountSmallDisk(1500);
      bed = await startBed({ SVC_STATE_DIR: disk.path });
    }, 120_000);
    afterAll(async () => {
      await bed?.service.dispose();
      disk?.dispose();
    }, 60_000);

    test('is not kept, and the stop does not wait', async () => {
      const { serve, moving, off, explain, files, on, ask } = bed;
      const { stopMs } = await serve();
      const met = moving().then(async (pid) => {
        process.kill(pid, 'SIGSTOP');
        try {
          // A write that has begun goes on, and a disk cannot become smaller than what is on it.
          await eventually('the server is stopped', () => isStopped(pid));
          const { bavail, bsize, blocks } = statfsSync(disk.path);
          disk.resize(Math.ceil(((blocks - bavail) * bsize) / MIB) + 1);
        } finally {
          process.kill(pid, 'SIGCONT');
        }
      });
      expect(await off()).toBeLessThan(stopMs + SAVE_MS);
      await met;
      expect(await files()).toEqual([]);
      expect(await explain()).toMatch(/prompts: not saved: the server (?:has written nothing|answers \d+)/);
      disk.resize(1500);
      await on();
      expect(await ask()).toBe(PROMPT.length);
    }, 180_000);
  });
});

/** Processes that serve a model of this service. */
function serversOf({ modelsDir }: Service): readonly number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && orNothing(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'), '').includes(modelsDir));
}

function openFiles(pid: number): readonly string[] {
  const names = orNothing(() => readdirSync(`/proc/${pid}/fd`), []);
  return names.map((name) => orNothing(() => readlinkSync(`/proc/${pid}/fd/${name}`), ''));
}

/** Whether no thread of a process runs any more. */
function isStopped(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).every((task) => /\) [Tt] /.test(readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8')));
}

/** Processes and files end while one looks. */
function orNothing<Value>(read: () => Value, nothing: Value): Value {
  try {
    return read();
  } catch {
    return nothing;
  }
}
