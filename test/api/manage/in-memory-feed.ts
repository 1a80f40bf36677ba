/** A timeline in memory that keeps its newest entries. */
import type { EventFeed } from '../../../src/api/ports.ts';
import type { ProgressListener } from '../../../src/gateway/traffic/hold.ts';
import type { GatewayTraffic } from '../../../src/gateway/traffic/traffic.ts';
import type { SlotName } from '../../../src/schema/words/names.ts';
import type { TimelineEntry } from '../../../src/schema/status/slot-status.ts';

export interface InMemoryFeed extends EventFeed {
  add(entry: Omit<TimelineEntry, 'seq'>): void;
  listeners(): number;
  readonly watchProgress: GatewayTraffic['watchProgress'];
  /** Does what the gateway does when a server reports how far it is. Returns the number of listeners. */
  reportProgress(...progress: Parameters<ProgressListener>): number;
}

export function createInMemoryFeed(kept: number): InMemoryFeed {
  let entries: TimelineEntry[] = [];
  let seq = 0;
  const listeners = new Set<(entry: TimelineEntry) => void>();
  const progressListeners = new Set<ProgressListener>();
  return {
    since(after) {
      const oldest = entries[0]?.seq ?? seq + 1;
      return { entries: entries.slice(Math.max(0, after + 1 - oldest)), gap: after + 1 < oldest && seq > 0 };
    },
    last: () => seq,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    timeline: async (slot: SlotName, limit: number) => entries.filter((entry) => entry.slot === slot).slice(-limit),
    add(fields) {
      const entry = { seq: ++seq, ...fields };
      entries = [...entries, entry].slice(-kept);
      for (const listener of listeners) listener(entry);
    },
    listeners: () => listeners.size,
    watchProgress(listener) {
      progressListeners.add(listener);
      return () => void progressListeners.delete(listener);
    },
    reportProgress(...progress) {
      for (const listener of progressListeners) listener(...progress);
      return progressListeners.size;
    },
  };
}
