/** Runs speech models without containers: with a program of that name that is installed, else with the speech server of this project, whose engine is installed on demand. */
import path from 'node:path';
import { findProgram } from '../../platform/find-program.ts';
import { ok } from '../../schema/words/failure.ts';
import { ensureEngine, isEngineInstalled, toolboxSources, type Engine } from '../install-engine.ts';
import type { HostProgram, ProgramHost } from '../provider.ts';
import { PROGRAMS, type SpeechTask } from './decide/speech-command.ts';

export const SPEECH_ENGINE: Engine = {
  name: 'the speech engine',
  sources: toolboxSources('speech'),
  download: 'about 11 MB',
  instead: 'use containers',
};

/** Both tasks share what is installed. */
export function openSpeechServer(task: SpeechTask, { env, stateDir, onProgress }: ProgramHost): HostProgram {
  const dir = path.join(stateDir, 'speech-engine');
  const findInstalled = async () => findProgram(PROGRAMS[task], env['PATH']);
  return {
    async resolve(signal) {
      const installed = await findInstalled();
      return installed === undefined ? ensureEngine({ engine: SPEECH_ENGINE, dir, env, onProgress }, signal) : ok([installed]);
    },
    async describe() {
      const installed = await findInstalled();
      if (installed !== undefined) return ok({ name: `"${installed}"` });
      if (await isEngineInstalled(SPEECH_ENGINE, dir)) return ok({ name: SPEECH_ENGINE.name });
      return ok({ name: SPEECH_ENGINE.name, installs: `${SPEECH_ENGINE.download} are downloaded when the first slot is loaded` });
    },
    /** The prebuilt libraries compute on the CPU only. Another program of that name does not say what it can. */
    async reportBackends() {
      return (await findInstalled()) === undefined ? { name: SPEECH_ENGINE.name, backends: ['cpu'] } : undefined;
    },
  };
}
