/**
 * A second service on this machine for a moment, with directories of its own and one slot at a time: it asks, admits,
 * starts and probes as the real one does, and whatever it finds out is in the conditions of its slot.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { formatToml } from '../../files/toml/decide/toml-text.ts';
import { readRegularFile } from '../../files/regular-file.ts';
import { ifThere, writeFileAtomically, type FileOwner } from '../../files/write-file.ts';
import { ACCEPTED_FILES } from '../../models/catalogue/accepted-files.ts';
import { UPDATED_CATALOGUE } from '../../models/catalogue/catalogue-source.ts';
import { sleep } from '../../platform/clock.ts';
import { findProgram, outputOf } from '../../providers/host-program.ts';
import type { ProgramOptions, Provider } from '../../providers/provider.ts';
import { defined } from '../../schema/pod/kube-fields.ts';
import type { SlotProgram } from '../../schema/slot/toolbox-images.ts';
import { quoteOutput } from '../../schema/words/failure.ts';
import { LOCAL_SOCKET } from '../../schema/words/access.ts';
import { isTable, toSnakeCase } from '../../schema/words/key-case.ts';
import { connect, slotPath, type Client } from '../connect/client.ts';
import { judgeTrial, type Trial } from '../decide/engine-upgrade.ts';
import { CHECKOUT, configDirOf, stateDirOf, type Environment } from '../installation.ts';
import { CliFailure, EXIT } from '../output/exit-codes.ts';
import { withoutControls } from '../output/terminal.ts';

export interface TrialOptions {
  /** The environment of the real service. */
  readonly env: Environment;
  readonly runtime: 'podman' | 'process';
  /** The user of the real service, where this one is root. */
  readonly owner: FileOwner | undefined;
}

export interface TrialService {
  /** Starts a slot, and stops it once it has answered or failed. `document`: keys in camelCase. */
  tryOut(document: Readonly<Record<string, unknown>>, withinMs: number): Promise<Trial>;
  close(): Promise<void>;
}

const ASK_WITHIN_MS = 15_000;
/** A model server is killed earlier (`SVC_STOP_GRACE`). */
const STOP_WITHIN_MS = 60_000;
const POLL_MS = 100;
/** Its next start begins with an empty log. */
const LOG_WITHIN_MS = 3000;
const PORTS = 20;
const LAST_PORT = 65_535;
const ERROR_CHARACTERS = 600;
/** All that a server or the runtime may need of the environment of the real service. */
const PASSED = [
  'PATH',
  'HOME',
  'LANG',
  'XDG_RUNTIME_DIR',
  'CONTAINER_HOST',
  'SVC_PODMAN_SOCKET',
  'SVC_HARDWARE_FILE',
  'SVC_CATALOGUE_KEY',
  'SVC_ACCEPTED_LICENSES',
];
const OF_CATALOGUE = [UPDATED_CATALOGUE, ACCEPTED_FILES] as const;

export async function openTrialService(options: TrialOptions): Promise<TrialService> {
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-upgrade-'));
  const places = { configDir: path.join(directory, 'config'), stateDir: path.join(directory, 'state') };
  const slotsDir = path.join(places.configDir, 'slots');
  const { owner } = options;
  for (const each of [places.configDir, places.stateDir, slotsDir]) await mkdir(each, { mode: 0o700 });
  if (owner !== undefined)
    for (const each of [directory, places.configDir, places.stateDir, slotsDir]) await chown(each, owner.uid, owner.gid);
  const write: Write = async (file, text) => await writeFileAtomically(file, text, { mode: 0o600, ...defined({ owner }) });
  await copyNames(options.env, places, write);
  const service = await startService(options, places);
  // Containers of slots with the same name have the same name, whatever service has them.
  const name = `upgrade-${process.pid}`;
  const close = async (): Promise<void> => {
    for (const signal of INTERRUPTS) process.off(signal, interrupt);
    await service.stop();
    await rm(directory, { recursive: true, force: true });
  };
  const interrupt = (): void => void close().finally(() => process.exit(EXIT.failed));
  for (const signal of INTERRUPTS) process.once(signal, interrupt);
  return {
    close,
    async tryOut(document, withinMs) {
      const file = path.join(slotsDir, `${name}.toml`);
      const text = toSnakeCase(document);
      await write(file, formatToml(isTable(text) ? text : {}));
      const find = async (client: Client) => await client.find(slotPath(name), 'slot');
      const trial = await service.until(withinMs, async (client) => {
        const slot = await find(client);
        const judged = slot && judgeTrial(slot);
        return judged?.kind === 'failed' ? { ...judged, message: `${judged.message}${await lastLine(client, name)}` } : judged;
      });
      await rm(file);
      const isGone = await service.until(STOP_WITHIN_MS, async (client) => (await find(client)) === undefined || undefined);
      if (isGone === undefined) throw new CliFailure('A server that was tried out does not end');
      return trial ?? { kind: 'failed', message: `It did not answer within ${Math.round(withinMs / 1000)} s` };
    },
  };
}

/** What the server wrote last, which conditions have only later; empty without any. */
async function lastLine(client: Client, name: string): Promise<string> {
  let lines = '';
  for (const deadline = performance.now() + LOG_WITHIN_MS; lines.trim() === '' && performance.now() < deadline; await sleep(POLL_MS))
    lines = await (await client.stream(`${slotPath(name)}/logs?tail=1`)).text();
  return lines.trim() === '' ? '' : `; ${quoteOutput('last log line', lines.slice(-ERROR_CHARACTERS))}`;
}

type Write = (file: string, text: string) => Promise<void>;
type Places = Readonly<Record<'configDir' | 'stateDir', string>>;
const INTERRUPTS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** What the names of models mean to the real service. */
async function copyNames(env: Environment, { configDir, stateDir }: Places, write: Write): Promise<void> {
  const files = [
    [configDirOf(env), configDir, 'models.toml'] as const,
    ...OF_CATALOGUE.map((name) => [stateDirOf(env), stateDir, name] as const),
  ];
  for (const [from, to, name] of files) {
    const text = await ifThere(readRegularFile(path.join(from, name)));
    if (text !== undefined) await write(path.join(to, name), text);
  }
}

async function startService({ env, runtime, owner }: TrialOptions, { configDir, stateDir }: Places) {
  const port = await freePort();
  const child = spawn(process.execPath, [path.join(CHECKOUT, 'src/cli/svcctl.mjs'), 'serve'], {
    env: {
      ...Object.fromEntries(PASSED.flatMap((key) => (env[key] === undefined ? [] : [[key, env[key]]]))),
      SVC_LISTEN: `127.0.0.1:${port}`,
      SVC_PORT_RANGE: `${port + 1}-${port + PORTS}`,
      SVC_CONFIG_DIR: configDir,
      SVC_STATE_DIR: stateDir,
      SVC_MODELS_DIR: env['SVC_MODELS_DIR'] ?? path.join(stateDirOf(env), 'models'),
      SVC_RUNTIME: runtime,
      SVC_ON_EXIT: 'stop',
      // Nobody has a token: only this user may open its socket.
      SVC_AUTH_ENABLED: '1',
      SVC_USAGE: 'off',
      SVC_REVISION_HISTORY: '0',
      SVC_PROMPT_CACHE_LIMIT: '0',
      SVC_LOG_LEVEL: 'error',
    },
    // It stops when the channel ends, so that it does not outlive a verb that is killed.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    ...owner,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output = `${output}${chunk.toString()}`.slice(-ERROR_CHARACTERS)));
  let client: Client | undefined;
  /** Undefined when the time is over. */
  const until = async <Found>(withinMs: number, look: (client: Client) => Promise<Found | undefined>): Promise<Found | undefined> => {
    for (const deadline = performance.now() + withinMs; performance.now() < deadline; await sleep(POLL_MS)) {
      if (hasEnded(child)) throw new CliFailure(`The service for the trial has ended: ${withoutControls(output.trim())}`);
      if (client === undefined && existsSync(path.join(stateDir, LOCAL_SOCKET)))
        client = await connect({}, { SVC_STATE_DIR: stateDir }, { now: Date.now, onWait: () => undefined });
      const found = client && (await look(client));
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return { until, stop: async () => await stop(child) };
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null;

async function stop(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
  await ended;
  clearTimeout(late);
}

/** The ports after it are likely to be free as well; one that is not is passed over. */
async function freePort(): Promise<number> {
  const server = createServer().listen({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return Math.min(typeof address === 'object' && address !== null ? address.port : 0, LAST_PORT - PORTS);
}

/** Runs a build for its help, with a limited time and output, and without rights that a slot would not have. */
export async function askBuild(
  { env, owner }: Pick<TrialOptions, 'env' | 'owner'>,
  { program, help }: Provider,
  { image, path: file }: SlotProgram,
): Promise<ProgramOptions | undefined> {
  if (help === undefined) return undefined;
  if (file !== undefined) {
    const found = await findProgram(file, undefined);
    if (found === undefined) throw new CliFailure(`"${file}" is no program that can be run`);
    const { stdout, stderr } = await outputOf(found, help.arguments, env, { ...owner });
    return help.parse(`${stdout}\n${stderr}`);
  }
  const reference = image ?? '';
  const [{ findPodmanSocket }, { createPodmanRuntime }] = await Promise.all([
    import('../../host/podman/podman-api.ts'),
    import('../../host/podman/podman-runtime.ts'),
  ]);
  const socketPath = await findPodmanSocket(env);
  if (socketPath === undefined) throw new CliFailure('No podman socket was found', { hint: 'Set SVC_PODMAN_SOCKET as for the service' });
  const runtime = createPodmanRuntime({ socketPath, instance: `upgrade-${process.pid}` });
  const { signal } = new AbortController();
  const facts = await runtime.observe([{ reference }], signal);
  const isHere = facts.ok && facts.value.images.some(({ present }) => present);
  const pulled = isHere ? facts : await runtime.pull({ reference }, () => undefined, signal);
  if (!pulled.ok) throw new CliFailure(pulled.failure.message);
  const printed = await runtime.print?.({ reference }, [program, ...help.arguments], AbortSignal.timeout(ASK_WITHIN_MS));
  if (printed?.ok === false) throw new CliFailure(printed.failure.message);
  return printed && help.parse(printed.value);
}
