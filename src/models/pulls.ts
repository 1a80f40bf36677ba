/** One download per model, however many callers wait. It stops with the last one and keeps its part. */
import type { Progress } from '../reconciler/ports.ts';
import { fail, type Failure, type Result } from '../schema/words/failure.ts';
import type { ModelId } from '../schema/words/names.ts';
import { messageOf } from '../platform/error-text.ts';

export interface ModelPull {
  readonly id: ModelId;
  readonly progress: Progress | undefined;
  readonly isRequested: boolean;
  /** Set after a requested pull failed, until it is requested again or cancelled. */
  readonly failure: Failure | undefined;
}

export type Pulls = ReturnType<typeof createPulls>;

type FetchInto = (id: ModelId, onProgress: (progress: Progress) => void, signal: AbortSignal) => Promise<Result<unknown>>;

interface Running {
  readonly waiting: Set<(progress: Progress) => void>;
  readonly abort: AbortController;
  readonly result: Promise<Result<void>>;
  progress: Progress | undefined;
}

interface Request {
  readonly abort: AbortController;
  failure: Failure | undefined;
}

export function createPulls(fetch: FetchInto) {
  const running = new Map<ModelId, Running>();
  const requests = new Map<ModelId, Request>();

  function begin(id: ModelId): Running {
    const abort = new AbortController();
    const waiting: Running['waiting'] = new Set();
    const onProgress = (progress: Progress): void => {
      run.progress = progress;
      for (const listener of waiting) listener(progress);
    };
    const result = fetch(id, onProgress, abort.signal)
      .then(
        (fetched): Result<void> => (fetched.ok ? { ok: true, value: undefined } : fetched),
        (error: unknown) => fail('retry', 'InternalError', messageOf(error)),
      )
      .finally(() => {
        if (running.get(id) === run) running.delete(id);
      });
    const run: Running = { waiting, abort, result, progress: undefined };
    running.set(id, run);
    return run;
  }

  /** Ends early for this caller when its signal aborts. */
  async function join(id: ModelId, onProgress: (progress: Progress) => void, signal: AbortSignal): Promise<Result<void>> {
    if (signal.aborted) return interrupted(id);
    const run = running.get(id) ?? begin(id);
    const listener = (progress: Progress): void => onProgress(progress);
    run.waiting.add(listener);
    if (run.progress !== undefined) onProgress(run.progress);
    const left = Promise.withResolvers<Result<void>>();
    const leave = (): void => left.resolve(interrupted(id));
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await Promise.race([run.result, left.promise]);
    } finally {
      signal.removeEventListener('abort', leave);
      run.waiting.delete(listener);
      if (run.waiting.size === 0) {
        // The next caller starts a new one, which waits until this one has released its file.
        if (running.get(id) === run) running.delete(id);
        run.abort.abort();
      }
    }
  }

  return {
    join,
    /** Starts the download for a caller that does not wait. */
    request(id: ModelId): void {
      const before = requests.get(id);
      if (before !== undefined && before.failure === undefined) return;
      const request: Request = { abort: new AbortController(), failure: undefined };
      requests.set(id, request);
      void join(id, () => undefined, request.abort.signal).then((result) => {
        if (requests.get(id) !== request) return;
        if (result.ok) requests.delete(id);
        else request.failure = result.failure;
      });
    },
    cancel(id: ModelId): boolean {
      requests.get(id)?.abort.abort();
      return requests.delete(id);
    },
    list(): readonly ModelPull[] {
      const failed = [...requests].flatMap(([id, { failure }]) => (failure === undefined || running.has(id) ? [] : [{ id, failure }]));
      return [
        ...[...running].map(([id, { progress }]) => ({ id, progress, isRequested: requests.has(id), failure: undefined })),
        ...failed.map(({ id, failure }) => ({ id, progress: undefined, isRequested: true, failure })),
      ];
    },
  };
}

function interrupted(id: ModelId): Result<never> {
  return fail('retry', 'Aborted', `Fetching the model "${id}" was interrupted; the next attempt resumes it`);
}
