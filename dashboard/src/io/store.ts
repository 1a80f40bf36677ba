/** The state of all slots. Each slot has its own signals, so that an event redraws only its card. */
import { batch, signal, type Signal } from '@preact/signals';
import { drawPauseMs, type Freshness } from '../decide/pace.ts';
import { ratesBetween, readTotals, type SlotRates, type SlotTotals } from '../decide/token-rates.ts';
import { afterEntry, isMoving, orderSlots } from '../decide/slot-facts.ts';
import type { Slot, SlotLine, SlotList, Status, TimelineEntry } from '../types.ts';
import { ApiError, type Client } from './client.ts';
import { connectEvents, type EventConnection } from './event-stream.ts';
import { afterNextFrame, beforeNextFrame } from './next-frame.ts';

export interface SlotSignals {
  readonly slot: Signal<Slot>;
  readonly line: Signal<Pick<SlotLine, 'in_flight' | 'parked' | 'progress'>>;
  readonly rates: Signal<SlotRates | undefined>;
  /** Output tokens per second, oldest first. */
  readonly history: Signal<readonly number[]>;
  readonly lastEvent: Signal<TimelineEntry | undefined>;
}

export interface Store {
  /** Undefined until the first response. */
  readonly names: Signal<readonly string[] | undefined>;
  of(name: string): SlotSignals | undefined;
  readonly freshness: Signal<Freshness>;
  readonly status: Signal<Omit<Status, 'slots'> | undefined>;
  /** Events of all slots, newest first. */
  readonly recent: Signal<readonly TimelineEntry[]>;
  readonly failure: Signal<string>;
  reload(): Promise<void>;
  retryNow(): void;
}

/** Batches the events of a starting slot, which has several within a second, into one request. */
const BATCH_MS = 200;
const STATUS_MS = 2000;
const METRICS_MS = 6000;
/** More changed slots than this are cheaper to read as one list. */
const MAX_SINGLE_READS = 5;
/** Least time between two lists. Under load, events deliver states at once; everything else may lag. */
const LIST_MS = 2000;
const MAX_RECENT = 500;
export const MAX_HISTORY = 60;

export function createStore(client: Client): Store {
  const bySlot = new Map<string, SlotSignals>();
  const names = signal<readonly string[] | undefined>(undefined);
  const freshness = signal<Freshness>('connecting');
  const status = signal<Omit<Status, 'slots'> | undefined>(undefined);
  const recent = signal<readonly TimelineEntry[]>([]);
  const failure = signal('');
  const dirty = new Set<string>();
  let isBatching = false;
  let listedAt = Number.NEGATIVE_INFINITY;
  let arrived: TimelineEntry[] = [];
  let drawAfter = Number.NEGATIVE_INFINITY;
  let hasConnected = false;
  let connection: EventConnection | undefined;

  function upsert(slot: Slot): void {
    const signals = bySlot.get(slot.name);
    if (signals !== undefined) {
      // A list contains many unchanged slots, which must not redraw.
      if (JSON.stringify(signals.slot.peek()) !== JSON.stringify(slot)) signals.slot.value = slot;
    } else
      bySlot.set(
        slot.name,
        createSignals(
          slot,
          recent.peek().find((entry) => entry.slot === slot.name),
        ),
      );
  }

  function order(): void {
    const next = orderSlots([...bySlot.values()].map(({ slot }) => slot.peek()));
    if (next.join('\n') !== names.peek()?.join('\n') || names.peek() === undefined) names.value = next;
  }

  async function reload(): Promise<void> {
    listedAt = performance.now();
    const { slots } = await client.fetchJson<SlotList>('/api/slots');
    batch(() => {
      for (const slot of slots) upsert(slot);
      const present = new Set<string>(slots.map(({ name }) => name));
      for (const name of bySlot.keys()) if (!present.has(name)) bySlot.delete(name);
      order();
      failure.value = '';
    });
  }

  async function refresh(wanted: readonly string[]): Promise<void> {
    if (wanted.length > MAX_SINGLE_READS) return reload();
    for (const name of wanted) {
      try {
        upsert(await client.fetchJson<Slot>(`/api/slots/${encodeURIComponent(name)}`));
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 404) throw error;
        bySlot.delete(name);
      }
    }
    order();
  }

  function markDirty(name: string): void {
    dirty.add(name);
    if (isBatching) return;
    isBatching = true;
    setTimeout(() => {
      isBatching = false;
      const wanted = [...dirty];
      dirty.clear();
      void reportTo(failure, refresh(wanted));
    }, pauseBefore(dirty.size));
  }

  function pauseBefore(count: number): number {
    return bySlot.size > MAX_SINGLE_READS && count > 0 ? Math.max(BATCH_MS, listedAt + LIST_MS - performance.now()) : BATCH_MS;
  }

  function onEntry(entry: TimelineEntry): void {
    arrived.push(entry);
    if (arrived.length > 1) return;
    const pause = drawAfter - performance.now();
    if (pause > 0) setTimeout(() => beforeNextFrame(flushEvents), pause);
    else beforeNextFrame(flushEvents);
  }

  function flushEvents(): void {
    const seen = new Set(recent.peek().map(({ seq }) => seq));
    const fresh = arrived.filter(({ seq }) => !seen.has(seq));
    drawAfter = performance.now() + drawPauseMs(arrived.length);
    arrived = [];
    batch(() => {
      recent.value = [...fresh.toReversed(), ...recent.peek()].slice(0, MAX_RECENT);
      for (const entry of fresh) {
        const signals = bySlot.get(entry.slot);
        if (signals === undefined) continue;
        signals.lastEvent.value = entry;
        // Shows the state at once; the rest of the slot is loaded.
        signals.slot.value = afterEntry(signals.slot.peek(), entry);
      }
    });
    for (const { slot } of fresh) markDirty(slot);
  }

  function onStatus({ slots, ...rest }: Status): void {
    batch(() => {
      status.value = rest;
      for (const line of slots) {
        const signals = bySlot.get(line.name);
        if (signals === undefined) continue;
        const { in_flight, parked, progress } = signals.line.peek();
        const isSame = in_flight === line.in_flight && parked === line.parked && progress?.done === line.progress?.done;
        if (!isSame) signals.line.value = line;
      }
    });
    const lines = new Map<string, SlotLine>(slots.map((line) => [line.name, line]));
    if (slots.some(({ name }) => !bySlot.has(name))) void reportTo(failure, reload());
    for (const [name, { slot }] of bySlot) {
      const line = lines.get(name);
      if (line === undefined || isMoving(slot.peek().status.state) || line.state !== slot.peek().status.state) markDirty(name);
    }
  }

  function connect(): void {
    connection = connectEvents({
      client,
      onEvent({ event, data }) {
        if (event === 'timeline') onEntry(JSON.parse(data));
        if (event === 'gap') void reportTo(failure, reload());
      },
      onOpen: () => {
        // The first stream repeats everything since the first list.
        if (hasConnected || failure.peek() !== '') void reportTo(failure, reload());
        hasConnected = true;
      },
      onFreshness: (next) => (freshness.value = next),
    });
  }

  // Deferred until the first cards are drawn.
  void reportTo(failure, reload()).then(() =>
    afterNextFrame(() => {
      connect();
      repeat(STATUS_MS, async () => onStatus(await client.fetchJson<Status>('/api/status')));
      repeat(METRICS_MS, createRateReader(client, bySlot));
    }),
  );
  return {
    names,
    of: (name) => bySlot.get(name),
    freshness,
    status,
    recent,
    failure,
    reload,
    retryNow: () => connection?.retryNow(),
  };
}

/** Reads the names only, so that an event of a slot draws no list of slots again. */
export const allSlots = (store: Store): readonly Slot[] => (store.names.value ?? []).flatMap((name) => store.of(name)?.slot.peek() ?? []);

function createSignals(slot: Slot, lastEvent: TimelineEntry | undefined): SlotSignals {
  return {
    slot: signal(slot),
    line: signal<SlotSignals['line']['value']>({ in_flight: 0, parked: 0, progress: null }),
    rates: signal<SlotRates | undefined>(undefined),
    history: signal<readonly number[]>([]),
    lastEvent: signal(lastEvent),
  };
}

function createRateReader(client: Client, bySlot: ReadonlyMap<string, SlotSignals>): () => Promise<void> {
  let before: ReadonlyMap<string, SlotTotals> | undefined;
  let readAt = 0;
  return async () => {
    const text = await (await client.fetch('/api/metrics')).text();
    const [totals, now] = [readTotals(text), performance.now()];
    const seconds = (now - readAt) / 1000;
    const last = before;
    [before, readAt] = [totals, now];
    if (last === undefined) return;
    batch(() => {
      for (const [name, { rates, history }] of bySlot) {
        const after = totals.get(name);
        const next = after === undefined ? undefined : ratesBetween(last.get(name), after, seconds);
        const shown = next?.firstTokenSeconds ?? rates.peek()?.firstTokenSeconds;
        if (next !== undefined) rates.value = { ...next, firstTokenSeconds: shown };
        const values = [...history.peek(), next?.tokensPerSecond ?? 0].slice(-MAX_HISTORY);
        // A slot that has generated nothing has no sparkline.
        if (values.some((value) => value > 0) || history.peek().some((value) => value > 0)) history.value = values;
      }
    });
  };
}

/** Runs at once, then `everyMs` after each run ends. Skips runs while the page is hidden. */
function repeat(everyMs: number, work: () => Promise<void>): void {
  const run = async (): Promise<void> => {
    // The event stream already reports an unreachable service.
    if (!document.hidden) await work().catch(() => undefined);
    setTimeout(() => void run(), everyMs);
  };
  void run();
}

async function reportTo(failure: Signal<string>, work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => {
    failure.value = error instanceof Error ? error.message : String(error);
  });
}
