/** The thread that reads and writes the file of usage, call by call, so that no request waits for a disk. */
import { parentPort, workerData } from 'node:worker_threads';
import { UsageStore, type UsageQuestion } from './usage-store.ts';
import type { UsageRow } from './decide/usage-rows.ts';

export type UsageCall =
  | { readonly kind: 'write'; readonly rows: readonly UsageRow[] }
  | { readonly kind: 'read'; readonly question: UsageQuestion }
  | { readonly kind: 'prune'; readonly before: number }
  | { readonly kind: 'close' };

/** Answers come in the order of the calls. */
function serve(store: UsageStore): void {
  parentPort?.on('message', (call: UsageCall) => {
    if (call.kind === 'write') parentPort?.postMessage(store.write(call.rows));
    else if (call.kind === 'read') parentPort?.postMessage(store.read(call.question));
    else if (call.kind === 'prune') parentPort?.postMessage(store.prune(call.before));
    else {
      store.close();
      parentPort?.postMessage({ ok: true, value: undefined });
      parentPort?.close();
    }
  });
}

serve(new UsageStore(String(workerData)));
