/** A runtime and downloads that are slow, hang, throw, fail or lie. */
import type { Clock, ModelStore, Progress, Runtime } from '../../../../src/reconciler/ports.ts';
import { fail, ok, type Result } from '../../../../src/schema/words/failure.ts';
import { WorkloadId } from '../../../../src/schema/words/names.ts';
import { suffer, type Disturb } from './disturbance.ts';

/** Its lies: a workload is said to run and was never started, or is said to be gone and still runs. */
export function disturbRuntime(runtime: Runtime, clock: Clock, disturb: Disturb): Runtime {
  let lies = 0;
  return {
    ...runtime,
    async observe(images, signal) {
      const disturbance = disturb('runtime');
      // What is slow is the answer: it shows what was there before.
      const seen = await runtime.observe(images, signal);
      await suffer(clock, disturbance);
      return seen;
    },
    async apply(workload, signal) {
      const disturbance = disturb('apply');
      // Whether it takes effect before the adapter throws is left open.
      if (disturbance?.kind === 'throw' && clock.now() % 2 === 0) await runtime.apply(workload, signal);
      await suffer(clock, disturbance);
      if (signal.aborted) return giveUp(clock);
      if (disturbance?.kind === 'lie') return ok(WorkloadId.parse(`lie-${(lies += 1)}-${workload.name}`));
      return await runtime.apply(workload, signal);
    },
    async stop(id, options, signal) {
      const disturbance = disturb('stop');
      await suffer(clock, disturbance);
      if (signal.aborted) return giveUp(clock);
      if (disturbance?.kind === 'fail') return fail('retry', 'StopFailed', disturbance.message);
      return disturbance?.kind === 'lie' ? ok(undefined) : await runtime.stop(id, options, signal);
    },
    async pull(image, onProgress, signal) {
      return await disturbPull(clock, disturb, signal, async () => await runtime.pull(image, onProgress, signal));
    },
    work: async (id) => await runtime.work?.(id),
    async *logs(id, options, signal) {
      await suffer(clock, disturb('logs'));
      yield* runtime.logs(id, options, signal);
    },
  };
}

export function disturbDownloads(models: ModelStore, clock: Clock, disturb: Disturb): ModelStore {
  return {
    ...models,
    async pull(id, onProgress: (progress: Progress) => void, signal) {
      return await disturbPull(clock, disturb, signal, async () => await models.pull(id, onProgress, signal));
    },
  };
}

/** Many libraries throw when a call is aborted; others return a failure. */
function giveUp(clock: Clock): typeof GIVEN_UP {
  if (clock.now() % 4 !== 0) throw new Error('The call was aborted');
  return GIVEN_UP;
}

/** A slow download ends soon after it was cancelled. */
async function disturbPull(clock: Clock, disturb: Disturb, signal: AbortSignal, pull: () => Promise<Result<void>>): Promise<Result<void>> {
  const disturbance = disturb('pull');
  if (disturbance?.kind !== 'slow') await suffer(clock, disturbance);
  else {
    for (let left = disturbance.ms; left > 0 && !signal.aborted; left -= CANCEL_MS) await suffer(clock, { kind: 'slow', ms: CANCEL_MS });
  }
  if (disturbance?.kind === 'fail') return fail('retry', 'InternalError', disturbance.message);
  return await pull();
}

/** How long it takes until a cancelled download has ended. */
const CANCEL_MS = 700;
const GIVEN_UP = fail('retry', 'Aborted', 'It was given up before it began');
