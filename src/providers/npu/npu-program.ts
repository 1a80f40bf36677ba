/** Runs FastFlowLM without containers, if somebody has installed it. */
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { findProgram } from '../../platform/find-program.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { ProgramBackends } from '../../schema/status/hardware.ts';
import type { HostProgram, ProgramHost } from '../provider.ts';
import { PROGRAM } from './decide/npu-command.ts';

/** It reads files of the kernel, and loads the library of the driver. */
const VALIDATE_WITHIN_MS = 10_000;
const MAX_OUTPUT_BYTES = 256 * 1024;

const Validation = z.object({ ready: z.boolean() });

export function openFlm({ env }: ProgramHost): HostProgram {
  let asked: { readonly key: string; readonly answer: Promise<ProgramBackends | undefined> } | undefined;
  const find = async (): Promise<Result<string>> => {
    const found = await findProgram(PROGRAM, env['PATH']);
    if (found !== undefined) return ok(found);
    return fail(
      'stalled',
      'ProgramMissing',
      `Install FastFlowLM, and put its program "${PROGRAM}" on the PATH of the service, or use containers: it is not on this machine`,
    );
  };
  return {
    async resolve() {
      const found = await find();
      return found.ok ? ok([found.value]) : found;
    },
    async describe() {
      const found = await find();
      return found.ok ? ok({ name: `"${found.value}"` }) : found;
    },
    /** The program itself knows best whether its driver, the firmware and XRT are as it needs them. */
    async reportBackends(devices) {
      const found = await find();
      if (!found.ok) return undefined;
      const { mtimeMs, size } = await stat(found.value);
      const key = [found.value, mtimeMs, size, devices].join('\n');
      if (asked?.key !== key) asked = { key, answer: validate(found.value, env) };
      return asked.answer;
    },
  };
}

async function validate(
  program: string,
  { PATH, HOME }: Readonly<Record<string, string | undefined>>,
): Promise<ProgramBackends | undefined> {
  const output = await new Promise<string>((resolve) => {
    const options = { cwd: '/', env: { PATH, HOME }, timeout: VALIDATE_WITHIN_MS, maxBuffer: MAX_OUTPUT_BYTES };
    execFile(program, ['validate', '--json'], options, (_error, stdout) => resolve(stdout));
  });
  const validation = Validation.safeParse(parseJson(output.slice(Math.max(0, output.indexOf('{'))))).data;
  return validation === undefined ? undefined : { name: `"${program} validate"`, backends: validation.ready ? ['npu'] : [] };
}
