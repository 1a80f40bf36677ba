/** Runs GGUF models without containers: with the llama-server that is installed, else with the embedded engine, which is installed on demand. */
import path from 'node:path';
import { findProgram } from '../../platform/find-program.ts';
import { ok } from '../../schema/words/failure.ts';
import { ensureEngine, isEngineInstalled, toolboxSources, type Engine } from '../install-engine.ts';
import type { HostProgram, ProgramHost } from '../provider.ts';
import { PROGRAM } from './decide/gguf-command.ts';
import { createDeviceLister } from './list-devices.ts';

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
