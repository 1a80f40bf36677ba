/** The real service on processes or on podman, and access to its servers from outside: finding, killing, freezing and counting them. */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { codeOf } from '../../../src/platform/error-text.ts';
import { eventually } from '../../support/eventually.ts';
import { GGUF_TOOLBOX, PODMAN } from '../../support/require/require-podman.ts';
import { isAnswering, startService, type Service } from '../../support/service.ts';
import { createRandom, type Random } from './random.ts';

export type ChaosRuntime = 'process' | 'podman';

export interface ChaosWorld {
  readonly runtime: ChaosRuntime;
  readonly service: Service;
  readonly random: Random;
  /** Process number of the server that answers for a slot; undefined while none does. */
  serverOf(slot: string): Promise<number | undefined>;
  /** Sends a signal to the server that answers for a slot, once one does. Returns its process number. */
  signal(slot: string, signal: NodeJS.Signals): Promise<number>;
  /** Waits until another server than this one answers for the slot. */
  replaced(slot: string, server: number): Promise<void>;
  /** Process numbers of all model servers of this service, whether it knows them or not. */
  servers(): Promise<readonly number[]>;
  /** Leaves one slot, "primary", with a model that answers, whatever the last case left. */
  reset(): Promise<void>;
  /** Waits until exactly so many model servers run, and the slots answer. */
  settled(slots: readonly string[]): Promise<void>;
}

const SETTLED_WITHIN_MS = 120_000;

export async function openChaosWorld(runtime: ChaosRuntime, environment: Readonly<Record<string, string>> = {}): Promise<ChaosWorld> {
  const toolboxes = runtime === 'podman' ? { toolboxes: GGUF_TOOLBOX } : {};
  const service = await startService({ runtime, environment: { SVC_LOG_LEVEL: 'info', ...environment }, ...toolboxes });
  const servers = (): Promise<readonly number[]> => (runtime === 'podman' ? containerServers(service.configDir) : processServers(service));
  let resets = 0;
  const settled = async (slots: readonly string[]): Promise<void> => {
    for (const slot of slots) await service.until(slot, 'answering', isAnswering, SETTLED_WITHIN_MS);
    await eventually(`${slots.length} model servers run`, async () => (await servers()).length === slots.length, SETTLED_WITHIN_MS);
  };
  const serverOf = async (slot: string): Promise<number | undefined> => {
    const id = await servedBy(service, slot);
    if (id === undefined) return undefined;
    const pid = runtime === 'podman' ? await containerServer(id) : Number(id.split(':')[1]);
    return pid > 0 ? pid : undefined;
  };
  return {
    runtime,
    service,
    settled,
    serverOf,
    async signal(slot, signal) {
      let pid: number | undefined;
      // The service may still name one that was killed a moment ago.
      const isSent = async (): Promise<boolean> => (pid = await serverOf(slot)) !== undefined && send(pid, signal);
      await eventually(`a server answers for "${slot}"`, isSent, SETTLED_WITHIN_MS);
      if (pid === undefined) throw new Error('No server');
      return pid;
    },
    async replaced(slot, server) {
      const isOther = async (): Promise<boolean> => ![undefined, server].includes(await serverOf(slot));
      await eventually(`another server answers for "${slot}"`, isOther, SETTLED_WITHIN_MS);
    },
    async reset() {
      for (const file of await readdir(path.join(service.configDir, 'slots')))
        if (file !== 'primary.toml') await service.remove(path.parse(file).name);
      // Each text is another one, so that crashes of the last case do not count towards a crash loop in the next one.
      resets += 1;
      await service.save('primary', slotOf('demo-fox', `priority = ${resets}`));
      await service.until('primary', 'fresh', (slot) => isAnswering(slot) && slot?.status.model === 'demo-fox', SETTLED_WITHIN_MS);
      await settled(['primary']);
    },
    random: createRandom(SEED),
    servers,
  };
}

const SEED = Number(process.env['SVC_TEST_SEED'] ?? 1);
const SCALE = Number(process.env['SVC_TEST_SCALE'] ?? 1);

/** How often a case does what it does: the full number, or a share of it (`SVC_TEST_SCALE`). */
export const scaled = (times: number): number => Math.max(2, Math.round(times * SCALE));

export const slotOf = (model: string, more = ''): string =>
  `provider = "gguf"\nbackend = "cpu"\n${more}\n[model]\ndefault = "${model}"\nargs = ["--threads", "1"]\n`;

const run = promisify(execFile);
const podman = async (...args: readonly string[]): Promise<string> => (await run('podman', [...PODMAN, ...args])).stdout.trim();

/** The id of the workload that answers, as `explain` names it: of a container, or `<name>:<pid>:<start>`. Undefined while none does. */
async function servedBy({ url }: Service, slot: string): Promise<string | undefined> {
  const { text }: { text: string } = JSON.parse(await (await fetch(`${url}/api/slots/${slot}/explain`)).text());
  return /served by "([^"]+)"/.exec(text)?.[1];
}

/** False if there is no such process. */
function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false;
    throw error;
  }
}

async function containerServer(id: string): Promise<number> {
  return Number(await podman('inspect', '--format', '{{.State.Pid}}', id).catch(() => Number.NaN));
}

async function containerServers(configDir: string): Promise<readonly number[]> {
  const ids = (await podman('ps', '--quiet', '--filter', `label=inference.svc.dev/instance=${configDir}`))
    .split('\n')
    .filter((id) => id !== '');
  // A container may be removed between the list and the question for its process.
  return (await Promise.all(ids.map((id) => containerServer(id)))).filter((pid) => pid > 0);
}

/** Servers have the path of their model in their arguments. */
async function processServers({ modelsDir }: Service): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const command = await readFile(path.join('/proc', pid, 'cmdline'), 'utf8').catch(() => '');
      return command.includes(modelsDir) ? [Number(pid)] : [];
    }),
  );
  return found.flat();
}
