/**
 * Who may write next. Keys wait in the order in which they were asked for, each at most once; what is written is decided when a key's turn
 * comes, so that only the newest is. Says nothing about what a write is.
 */
import type { Clock } from '../../reconciler/ports.ts';

export interface WriteTurns<Key> {
  /** Gives the key a turn, also when it has one just now. A time it was told to wait for is no longer waited for. */
  ask(key: Key): void;
  /** Nobody has a turn before then. Ends a flush: what is left would not get through. */
  pauseUntil(at: number): void;
  /** Resolves when every key that waits had a turn, without waiting for times. */
  flush(): Promise<void>;
  /** Nobody waits any longer, for a turn or for a time; turns under way go on. No timer is left. */
  clear(): void;
  /** Keys that wait for their turn now. */
  backlog(): number;
}

export interface WriteTurnsOptions<Key> {
  readonly clock: Clock;
  readonly concurrency: number;
  /** One turn. Answers when the key wants another one (Unix milliseconds); undefined: not until it is asked for. `hurry`: it will not get one. */
  readonly turn: (key: Key, hurry: boolean) => Promise<number | undefined> | number | undefined;
}

/** Timers a few milliseconds apart are one. */
const GATHERED_MS = 20;

export function createWriteTurns<Key>({ clock, concurrency, turn }: WriteTurnsOptions<Key>): WriteTurns<Key> {
  const ready = new Set<Key>();
  const later = new Map<Key, number>();
  const underWay = new Set<Key>();
  /** Of those in `later`, or before: one that is no longer waited for leaves its time behind. */
  let earliest = Number.POSITIVE_INFINITY;
  let pausedUntil = 0;
  let hurry = false;
  let timer: { readonly at: number; readonly cancel: () => void } | undefined;
  let whenQuiet: (() => void)[] = [];

  const pump = (): void => {
    while (underWay.size < concurrency && (hurry || clock.now() >= pausedUntil)) {
      const key = firstOf(ready, underWay);
      if (key === undefined) break;
      ready.delete(key);
      const taken = turn(key, hurry);
      if (taken instanceof Promise) void takeTurn(key, taken);
      else if (taken !== undefined) wait(key, taken);
    }
    arm();
    if (hurry && ready.size + underWay.size === 0) endHurry();
  };
  const takeTurn = async (key: Key, taken: Promise<number | undefined>): Promise<void> => {
    underWay.add(key);
    const again = await taken;
    underWay.delete(key);
    if (again !== undefined && !ready.has(key)) wait(key, again);
    pump();
  };
  const wait = (key: Key, until: number): void => {
    later.set(key, until);
    earliest = Math.min(earliest, until);
  };
  const arm = (): void => {
    const paused = ready.size > 0 && clock.now() < pausedUntil ? pausedUntil : Number.POSITIVE_INFINITY;
    if (later.size === 0) earliest = Number.POSITIVE_INFINITY;
    const at = Math.min(paused, earliest);
    if (at === Number.POSITIVE_INFINITY) {
      timer?.cancel();
      timer = undefined;
      return;
    }
    if (timer !== undefined && timer.at <= at) return;
    timer?.cancel();
    timer = { at, cancel: clock.at(Math.max(at, clock.now() + 1), onTime) };
  };
  const onTime = (): void => {
    timer = undefined;
    const until = clock.now() + GATHERED_MS;
    earliest = Number.POSITIVE_INFINITY;
    for (const [key, at] of later) {
      if (at > until) {
        earliest = Math.min(earliest, at);
        continue;
      }
      later.delete(key);
      ready.add(key);
    }
    pump();
  };
  const endHurry = (): void => {
    hurry = false;
    for (const resolve of whenQuiet) resolve();
    whenQuiet = [];
  };

  return {
    ask(key) {
      later.delete(key);
      ready.add(key);
      pump();
    },
    pauseUntil(at) {
      pausedUntil = Math.max(pausedUntil, at);
      if (hurry) endHurry();
    },
    async flush() {
      for (const key of later.keys()) ready.add(key);
      later.clear();
      hurry = true;
      const quiet = new Promise<void>((resolve) => whenQuiet.push(resolve));
      pump();
      await quiet;
    },
    clear() {
      ready.clear();
      later.clear();
      arm();
      if (hurry && underWay.size === 0) endHurry();
    },
    backlog: () => ready.size,
  };
}

function firstOf<Key>(keys: ReadonlySet<Key>, except: ReadonlySet<Key>): Key | undefined {
  for (const key of keys) if (!except.has(key)) return key;
  return undefined;
}
