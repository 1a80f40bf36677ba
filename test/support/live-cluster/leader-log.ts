/** Polls controllers in turn for whether they are the leader and what they sent, to record who led when, and who wrote without being the leader. */
import type { ClusterController } from './cluster-controller.ts';
import { changesObjects, sentBetween, type Counts } from './controller-counts.ts';
import { pause } from '../service.ts';

export interface LeaderLog {
  /** Names in the order in which they led. Two leaders at the same time are listed alternately. */
  readonly leaders: readonly string[];
  /** Objects changed by a controller that was not the leader, neither at the poll before nor at the one after. */
  readonly trespasses: readonly string[];
  /** How often all controllers were polled. */
  rounds(): number;
  /** Waits for the next leader, and returns its name and the time it took. */
  nextLeader(timeoutMs: number): Promise<{ readonly name: string; readonly afterMs: number }>;
  stop(): Promise<void>;
}

const PAUSE_MS = 10;

/** Controllers are named by their keys, since two may have the same identity. */
export function logLeaders(controllers: Readonly<Record<string, ClusterController>>): LeaderLog {
  const leaders: string[] = [];
  const trespasses: string[] = [];
  const last = new Map<string, Counts>();
  let rounds = 0;
  let running = true;

  const record = (name: string, now: Counts): void => {
    const before = last.get(name);
    last.set(name, now);
    if (now.leads && leaders.at(-1) !== name) leaders.push(name);
    // A new process counts from zero.
    const isSameLife = before !== undefined && [...before.requests].every(([key, count]) => (now.requests.get(key) ?? 0) >= count);
    if (!isSameLife || before.leads || now.leads) return;
    for (const [key, count] of sentBetween(before, now)) if (changesObjects(key)) trespasses.push(`${name}: ${count} × ${key}`);
  };

  const loop = (async () => {
    while (running) {
      for (const [name, controller] of Object.entries(controllers)) {
        const counts = await controller.counts().catch(() => undefined);
        if (counts === undefined) last.delete(name);
        else record(name, counts);
      }
      rounds += 1;
      await pause(PAUSE_MS);
    }
  })();

  return {
    leaders,
    trespasses,
    rounds: () => rounds,
    async nextLeader(timeoutMs) {
      const known = leaders.length;
      const startedAt = performance.now();
      for (;;) {
        const name = leaders[known];
        const afterMs = performance.now() - startedAt;
        if (name !== undefined) return { name, afterMs };
        if (afterMs > timeoutMs) throw new Error(`There was no other leader within ${timeoutMs} ms; before: ${leaders.join(', ')}`);
        await pause(2);
      }
    },
    async stop() {
      running = false;
      await loop;
    },
  };
}
