/** Asks the llama-server of this machine which devices it can compute with. */
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { findProgram } from '../../platform/find-program.ts';
import type { ProgramBackends } from '../../schema/status/hardware.ts';
import { PROGRAM } from './decide/gguf-command.ts';
import { parseDeviceList } from './decide/parse-device-list.ts';

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
