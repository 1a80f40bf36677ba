/** Runs GGUF models without containers: with an installed llama-server, otherwise with the embedded engine. */
import { findProgram } from '../../platform/find-program.ts';
import type { ProgramBackends } from '../../schema/status/hardware.ts';
import type { Backend } from '../../schema/slot/provider-kinds.ts';
import { outputOf, programOrEngine, rememberBackends } from '../host-program.ts';
import { toolboxSources, type Engine } from '../install-engine.ts';
import type { HostProgram, ProgramHost } from '../provider.ts';
import { PROGRAM } from './decide/gguf-command.ts';

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

/** Returns the backends of the program to be started. `fingerprint` changes with the devices. */
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

/** Device names without their number: https://github.com/ggml-org/llama.cpp/tree/master/ggml/src */
const BACKEND_OF_DEVICE: Readonly<Record<string, Backend>> = { CUDA: 'cuda', ROCm: 'rocm', Vulkan: 'vulkan' };
/** Precedes the devices. Without it, the program does not know the option. */
const HEAD = /^available devices:/im;

/** Parses `llama-server --list-devices`, one device a line: `  CUDA0: NVIDIA RTX A2000 (12044 MiB, 11893 MiB free)`. */
export function parseDeviceList(output: string): readonly Backend[] | undefined {
  if (!HEAD.test(output)) return undefined;
  const names = [...output.matchAll(/^\s+([A-Za-z]+)\d+:\s/gm)].map(([, name = '']) => name);
  return [...new Set(names.flatMap((name) => BACKEND_OF_DEVICE[name] ?? []))];
}
