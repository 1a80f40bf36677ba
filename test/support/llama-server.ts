/** The real llama-server as a program of this machine, taken out of the toolbox image. */
import { directoryOfProgram } from './image-program.ts';

/** Returns a directory with an executable `llama-server`, for the `PATH`. */
export const directoryOfLlamaServer = async (): Promise<string> =>
  await directoryOfProgram('localhost/svc-toolbox-gguf-cpu:v1', 'llama-server');
