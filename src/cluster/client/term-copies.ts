/**
 * Copies of objects that only the leader needs. They exist during a term, and are empty otherwise: with fifty replicas,
 * each change of an object that all of them watch is sent fifty times.
 */
import type { Wake } from '../../reconciler/ports.ts';
import { addWake } from '../../platform/clock.ts';
import type { KubeObject, Reflector } from './ports.ts';
import type { RefreshableReflector } from './reflector.ts';

export function createTermCopies() {
  const nothing: ReadonlyMap<string, KubeObject> = new Map();
  const begins: ((term: AbortSignal) => Promise<void>)[] = [];
  return {
    /** `begin` starts the copy, not its own `start`. Without a term, its health is "current". */
    add(open: () => RefreshableReflector): Reflector {
      const wakes = new Set<Wake>();
      let current: RefreshableReflector | undefined;
      begins.push(async (term) => {
        if (term.aborted) return;
        const copy = open();
        current = copy;
        term.addEventListener('abort', () => (current = current === copy ? undefined : current), { once: true });
        copy.changes((withinMs) => {
          for (const wake of wakes) wake(withinMs);
        }, term);
        const isRead = copy.refresh(term);
        copy.start(term);
        await isRead;
      });
      return {
        items: () => current?.items() ?? nothing,
        health: () => current?.health() ?? { kind: 'current' },
        noteWritten: (object) => current?.noteWritten(object),
        noteRemoved: (name, uid) => current?.noteRemoved(name, uid),
        changes: (wake, signal) => addWake(wakes, wake, signal),
        start: () => undefined,
      };
    },
    /** Resolves when each copy has read the newest state, or when the term has ended. */
    begin: async (term: AbortSignal): Promise<void> => void (await Promise.all(begins.map(async (begin) => await begin(term)))),
  };
}
