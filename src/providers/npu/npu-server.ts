/** Runs FastFlowLM without containers, if it is installed. */
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { ok } from '../../schema/words/failure.ts';
import { installedProgram, outputOf, rememberBackends } from '../host-program.ts';
import type { HostProgram, ProgramHost } from '../provider.ts';
import { PROGRAM } from './decide/npu-command.ts';

const Validation = z.object({ ready: z.boolean() });

export function openFlm({ env }: ProgramHost): HostProgram {
  const { find, describe } = installedProgram(PROGRAM, env, 'install FastFlowLM and put it on the PATH of the service, or use containers');
  /** Only the program knows whether driver, firmware and XRT are as it needs them. */
  const validate = rememberBackends(async (program) => {
    const { stdout } = await outputOf(program, ['validate', '--json'], env);
    const validation = Validation.safeParse(parseJson(stdout.slice(Math.max(0, stdout.indexOf('{'))))).data;
    return validation === undefined ? undefined : { name: `"${program} validate"`, backends: validation.ready ? ['npu'] : [] };
  });
  return {
    async resolve() {
      const found = await find();
      return found.ok ? ok([found.value]) : found;
    },
    describe,
    async reportBackends(devices) {
      const found = await find();
      return found.ok ? validate(found.value, devices) : undefined;
    },
  };
}
