/** Runs GGUF models without containers: with an installed llama-server, otherwise with the embedded engine. */
import type { ProgramBackends } from '../../schema/status/hardware.ts';
import type { Backend } from '../../schema/slot/provider-kinds.ts';
import { findProgram, outputOf, programOrEngine, rememberBackends } from '../host-program.ts';
import { toolboxSources, type Engine } from '../install-engine.ts';
import type { AskHealth, Endpoint, Health, HostProgram, ProbeIo, ProbeResponse, ProgramHost } from '../provider.ts';
import { PROGRAM } from './decide/gguf-command.ts';
import { judgeAlive, judgeStatus } from '../decide/judge-status.ts';
import * as checks from './decide/derive-health.ts';
import { ggufModel } from './decide/gguf-model.ts';
import { roleOf } from './decide/model-role.ts';

export const EMBEDDED_ENGINE: Engine = {
  name: 'the embedded engine',
  sources: toolboxSources('embedded'),
  download: 'about 40 MB',
  instead: 'install llama-server',
};
const EMBEDDED: ProgramBackends = { name: 'the embedded engine (install "llama-server" to use a GPU)', backends: ['cpu'] };

export const openLlamaServer = (host: ProgramHost): HostProgram => ({
  ...programOrEngine(PROGRAM, EMBEDDED_ENGINE, 'engine', host),
  reportBackends: createDeviceLister(host.env),
});

/** `fingerprint` changes with the devices. */
export function createDeviceLister(env: ProgramHost['env']): (fingerprint: string) => Promise<ProgramBackends | undefined> {
  const listDevices = rememberBackends(async (program) => {
    const { stdout, stderr } = await outputOf(program, ['--list-devices'], env);
    const backends = parseDeviceList(`${stdout}\n${stderr}`);
    return backends === undefined ? undefined : { name: `"${program}"`, backends: ['cpu', ...backends] };
  });
  return async (fingerprint) => {
    const program = await findProgram(PROGRAM, env['PATH']);
    return program === undefined ? EMBEDDED : listDevices(program, fingerprint);
  };
}

const BACKEND_OF_DEVICE: Readonly<Record<string, Backend>> = { CUDA: 'cuda', ROCm: 'rocm', Vulkan: 'vulkan' };
/** Precedes the devices. Without it, the program does not know the option. */
const HEAD = /^available devices:/im;

/** One device a line: `  CUDA0: NVIDIA RTX A2000 (12044 MiB, 11893 MiB free)`. */
export function parseDeviceList(output: string): readonly Backend[] | undefined {
  if (!HEAD.test(output)) return undefined;
  const names = [...output.matchAll(/^\s+([A-Za-z]+)\d+:\s/gm)].map(([, name = '']) => name);
  return [...new Set(names.flatMap((name) => BACKEND_OF_DEVICE[name] ?? []))];
}

/** The first request may compile shaders, which takes many seconds on a slow GPU. */
const PROBE_TIMEOUT_MS = 30_000;
/** Threads that wait for nothing respond to `/health` within milliseconds. */
const ALIVE_TIMEOUT_MS = 3_000;

const PROBE_OF = { generate: 'completion', embed: 'embedding', rerank: 'rerank' } as const;

/**
 * A server busy with long requests responds late to the probe, and at once to `/health`. Most answer the probe, and are
 * asked nothing else: with 2,000 slots, each exchange takes half a percent of a core.
 */
export const askHealth: AskHealth = async (endpoint, io, slot, signal) => {
  const { start } = roleOf(slot.name, slot.spec, ggufModel(slot.model));
  const probe = PROBE_OF[start];
  const answered = judgeProbe(probe, await post(endpoint, io, checks.PROBES[probe], signal));
  return answered.kind === 'passing' ? answered : ((await askAlive(endpoint, io, signal)) ?? answered);
};

/** One request per capability. Only the probe's own must pass: a causal reranker may not generate text. */
export const askReadiness: AskHealth = async (endpoint, io, slot, signal) => {
  const notAlive = await askAlive(endpoint, io, signal);
  if (notAlive !== undefined) return notAlive;
  const { start, capabilities } = roleOf(slot.name, slot.spec, ggufModel(slot.model));
  const own = PROBE_OF[start];
  const check = async (each: checks.Check): Promise<Health> => {
    const health = await askOne(each);
    return each !== own && health.kind === 'failing' ? { kind: 'passing' } : health;
  };
  const askOne = async (each: checks.Check): Promise<Health> => {
    const answer = await post(endpoint, io, checks.READINESS_CHECKS[each], signal);
    // Servers that do not know a parameter of the check, such as the embedded engine, get the plain probe.
    if (answer.status >= 400 && answer.status !== 503) return judgeProbe(each, await post(endpoint, io, checks.PROBES[each], signal));
    return judgeStatus(answer) ?? checks.deriveReadiness(each, answer, ggufModel(slot.model), slot.spec.backend);
  };
  return checks.worstOf(await Promise.all(checks.checksFor(capabilities, own).map(check)));
};

async function askAlive(endpoint: Endpoint, io: ProbeIo, signal: AbortSignal): Promise<Health | undefined> {
  const alive = await io.request(endpoint, { method: 'GET', path: '/health', timeoutMs: ALIVE_TIMEOUT_MS, signal });
  return judgeAlive(alive);
}

const post = (endpoint: Endpoint, io: ProbeIo, request: checks.ProbeRequest, signal: AbortSignal): Promise<ProbeResponse> =>
  io.request(endpoint, { method: 'POST', ...request, timeoutMs: PROBE_TIMEOUT_MS, signal });
const judgeProbe = (probe: checks.Check, response: ProbeResponse): Health => judgeStatus(response) ?? checks.deriveHealth(probe, response);
