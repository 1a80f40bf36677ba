/** Asks controllers in turn, again and again, whether they lead and what they sent: who led when, and who wrote without leading. */
import type { ClusterController } from './cluster-controller.ts';
import { changesObjects, sentBetween, type Counts } from './controller-counts.ts';
import { pause } from '../service.ts';

export interface LeaderLog {
  /** Names in the order in which they led; one that leads while another does stands here again and again. */
  readonly leaders: readonly string[];
  /** Objects that somebody changed who did not lead, at the sight before and at the one after. */
  readonly trespasses: readonly string[];
  /** How often all were asked. */
  rounds(): number;
  /** Of who leads now and did not lead at the call: its name, and after how long. */
  nextLeader(timeoutMs: number): Promise<{ readonly name: string; readonly afterMs: number }>;
  stop(): Promise<void>;
}

const PAUSE_MS = 10;

/** Names of controllers: their keys, since two may have one identity. */
export function logLeaders(controllers: Readonly<Record<string, ClusterController>>): LeaderLog {
  const leaders: string[] = [];
  const trespasses: string[] = [];
  const last = new Map<string, Counts>();
  let rounds = 0;
  let going = true;

  const note = (name: string, now: Counts): void => {
    const before = last.get(name);
    last.set(name, now);
    if (now.leads && leaders.at(-1) !== name) leaders.push(name);
    // A new life counts from nothing.
    const isSameLife = before !== undefined && [...before.requests].every(([key, count]) => (now.requests.get(key) ?? 0) >= count);
    if (!isSameLife || before.leads || now.leads) return;
    for (const [key, count] of sentBetween(before, now)) if (changesObjects(key)) trespasses.push(`${name}: ${count} × ${key}`);
  };

  const loop = (async () => {
    while (going) {
      for (const [name, controller] of Object.entries(controllers)) {
        const counts = await controller.counts().catch(() => undefined);
        if (counts === undefined) last.delete(name);
        else note(name, counts);
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
      const begun = performance.now();
      for (;;) {
        const name = leaders[known];
        const afterMs = performance.now() - begun;
        if (name !== undefined) return { name, afterMs };
        if (afterMs > timeoutMs) throw new Error(`Nobody else led within ${timeoutMs} ms; before: ${leaders.join(', ')}`);
        await pause(2);
      }
    },
    async stop() {
      going = false;
      await loop;
    },
  };
}
