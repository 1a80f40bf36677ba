/** How long the answer takes whether a model fits: of a service that runs, and of `svcctl fit` from the start of its process to its end. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { median } from './measure.ts';
import { startBenchService } from './service-process.ts';

const run = promisify(execFile);
const ROUNDS = 9;
const MODEL = 'demo-fox';

export interface FitTimes {
  readonly answerMs: number;
  readonly commandMs: number;
}

/** Medians. The first run fills caches and does not count. `home`: an empty directory. */
export async function measureFit(home: string): Promise<FitTimes> {
  const service = await startBenchService({ SVC_RUNTIME: 'process' });
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, SVCCTL_SERVER: service.url };
  const ask = async (): Promise<string> => await (await fetch(`${service.url}/api/fit?model=${MODEL}`)).text();
  const command = async (): Promise<string> =>
    (await run(process.execPath, ['src/cli/svcctl.mjs', 'fit', MODEL, '--output', 'json'], { env })).stdout;
  try {
    const answers: number[] = [];
    const commands: number[] = [];
    for (let round = 0; round <= ROUNDS; round += 1) {
      const [answerMs, commandMs] = [await timeOfFit(ask), await timeOfFit(command)];
      if (round > 0) answers.push(answerMs);
      if (round > 0) commands.push(commandMs);
    }
    return { answerMs: median(answers), commandMs: median(commands) };
  } finally {
    await service.stop();
  }
}

async function timeOfFit(ask: () => Promise<string>): Promise<number> {
  const began = performance.now();
  const text = await ask();
  const ms = performance.now() - began;
  if (JSON.parse(text).fits !== true) throw new Error(`The model must fit: ${text}`);
  return ms;
}
