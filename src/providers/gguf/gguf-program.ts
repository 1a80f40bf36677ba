/** Runs GGUF models without containers: with the llama-server that is installed, else with the embedded engine, which is installed on demand. */
import path from 'node:path';
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { findProgram } from '../../platform/find-program.ts';
import { ok } from '../../schema/words/failure.ts';
import { ensureEngine, isEngineInstalled, toolboxSources, type Engine } from '../install-engine.ts';
import type { HostProgram, ProgramHost } from '../provider.ts';
import { PROGRAM } from './decide/gguf-command.ts';
import type { ProgramBackends } from '../../schema/status/hardware.ts';
import type { Backend } from '../../schema/slot/provider-kinds.ts';

export const EMBEDDED_ENGINE: Engine = {
  name: 'the embedded engine',
  sources: toolboxSources('embedded'),
  download: 'about 40 MB',
  instead: 'install llama-server',
};

export function openLlamaServer({ env, stateDir, onProgress }: ProgramHost): HostProgram {
  const dir = path.join(stateDir, 'engine');
  return {
    async resolve(signal) {
      const installed = await findProgram(PROGRAM, env['PATH']);
      return installed === undefined ? ensureEngine({ engine: EMBEDDED_ENGINE, dir, env, onProgress }, signal) : ok([installed]);
    },
    async describe() {
      const installed = await findProgram(PROGRAM, env['PATH']);
      if (installed !== undefined) return ok({ name: `"${installed}"` });
      if (await isEngineInstalled(EMBEDDED_ENGINE, dir)) return ok({ name: EMBEDDED_ENGINE.name });
      return ok({ name: EMBEDDED_ENGINE.name, installs: `${EMBEDDED_ENGINE.download} are downloaded when the first slot is loaded` });
    },
    reportBackends: createDeviceLister(env),
  };
}

/** Asks the llama-server of this machine which devices it can compute with. */

/** It loads the libraries of the GPU, which takes a second or two. */
const LIST_WITHIN_MS = 10_000;
const MAX_OUTPUT_BYTES = 256 * 1024;
/** The embedded engine uses the CPU only. */
const EMBEDDED: ProgramBackends = { name: 'the embedded engine (install "llama-server" to use a GPU)', backends: ['cpu'] };

/**
 * Returns a function that looks up what the program that would be started now can compute with; undefined if the program does not say. The program is asked
 * again only after it, or what `fingerprint` returns of the devices, has changed.
 */
export function createDeviceLister(
  env: Readonly<Record<string, string | undefined>>,
): (fingerprint: string) => Promise<ProgramBackends | undefined> {
  let asked: { readonly key: string; readonly answer: Promise<ProgramBackends | undefined> } | undefined;
  return async (fingerprint) => {
    const program = await findProgram(PROGRAM, env['PATH']);
    if (program === undefined) return EMBEDDED;
    const { mtimeMs, size } = await stat(program);
    const key = [program, mtimeMs, size, fingerprint].join('\n');
    if (asked?.key !== key) asked = { key, answer: listDevices(program, env) };
    return asked.answer;
  };
}

async function listDevices(
  program: string,
  { PATH, HOME }: Readonly<Record<string, string | undefined>>,
): Promise<ProgramBackends | undefined> {
  const output = await new Promise<string>((resolve) => {
    const options = { cwd: '/', env: { PATH, HOME }, timeout: LIST_WITHIN_MS, maxBuffer: MAX_OUTPUT_BYTES };
    execFile(program, ['--list-devices'], options, (_error, stdout, stderr) => resolve(`${stdout}\n${stderr}`));
  });
  const backends = parseDeviceList(output);
  return backends === undefined ? undefined : { name: `"${program}"`, backends: ['cpu', ...backends] };
}

/** Reads what `llama-server --list-devices` prints: `  CUDA0: NVIDIA RTX A2000 (12044 MiB, 11893 MiB free)`, one device a line. Pure. */

/** By the name that llama.cpp gives to the devices of a backend, followed by a number. https://github.com/ggml-org/llama.cpp/tree/master/ggml/src */
const BACKEND_OF_DEVICE: Readonly<Record<string, Backend>> = { CUDA: 'cuda', ROCm: 'rocm', Vulkan: 'vulkan' };

/** The line that precedes the devices. Without it, the program does not know the option. */
const HEAD = /^available devices:/im;

/** Undefined if this is not a list of devices. */
export function parseDeviceList(output: string): readonly Backend[] | undefined {
  if (!HEAD.test(output)) return undefined;
  const names = [...output.matchAll(/^\s+([A-Za-z]+)\d+:\s/gm)].map(([, name = '']) => name);
  return [...new Set(names.flatMap((name) => BACKEND_OF_DEVICE[name] ?? []))];
}
