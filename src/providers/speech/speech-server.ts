/** Runs speech models without containers: with an installed program, otherwise with the speech server here. */
import { findProgram } from '../../platform/find-program.ts';
import { programOrEngine } from '../host-program.ts';
import { toolboxSources, type Engine } from '../install-engine.ts';
import type { HostProgram, ProgramHost } from '../provider.ts';
import { PROGRAMS, type SpeechTask } from './decide/speech-command.ts';

export const SPEECH_ENGINE: Engine = {
  name: 'the speech engine',
  sources: toolboxSources('speech'),
  download: 'about 11 MB',
  instead: 'use containers',
};

/** Both tasks share one installation. */
export function openSpeechServer(task: SpeechTask, host: ProgramHost): HostProgram {
  return {
    ...programOrEngine(PROGRAMS[task], SPEECH_ENGINE, 'speech-engine', host),
    /** The prebuilt libraries compute on the CPU only. Another program of that name does not say. */
    async reportBackends() {
      const installed = await findProgram(PROGRAMS[task], host.env['PATH']);
      return installed === undefined ? { name: SPEECH_ENGINE.name, backends: ['cpu'] } : undefined;
    },
  };
}
