/** Sends a body from disk to a connection, also while its end is still on its way. */
import type { BodySpool } from './body/body-spool.ts';

export interface SpoolFlowSink {
  /** Returns false if the flow should wait for `resume`. */
  write(bytes: Buffer): boolean;
  /** Everything has been written. */
  end(): void;
  fail(error: unknown): void;
}

/** Large enough that reading costs few calls, small enough that many flows fit into memory. */
const PIECE_BYTES = 128 * 1024;

export interface SpoolFlow {
  /** Everything has been written. */
  isDone(): boolean;
  resume(): void;
  /** Ends the flow without a call of the sink. */
  stop(): void;
}

export function startSpoolFlow(spool: BodySpool, sink: SpoolFlowSink): SpoolFlow {
  let at = 0;
  let isDone = false;
  let isStopped = false;
  let resume: (() => void) | undefined;

  async function run(): Promise<void> {
    for (;;) {
      const bytes = await spool.read(at, PIECE_BYTES);
      if (isStopped || bytes === undefined) return;
      if (bytes.length === 0) {
        isDone = true;
        sink.end();
        return;
      }
      at += bytes.length;
      if (!sink.write(bytes)) await new Promise<void>((resolve) => (resume = resolve));
    }
  }

  run().catch((error: unknown) => {
    if (!isStopped) sink.fail(error);
  });
  return {
    isDone: () => isDone,
    resume: () => resume?.(),
    stop() {
      isStopped = true;
      resume?.();
    },
  };
}
