/** The state of all slots. Each slot has its own signals, so that an event redraws only its card. */
import { batch, signal, type Signal } from '@preact/signals';
import { drawPauseMs, type Freshness } from '../decide/pace.ts';
import { ratesBetween, type SlotRates, type SlotTotals } from '../decide/token-rates.ts';
import { isMoving, movedBy, orderSlots } from '../decide/slot-facts.ts';
import type { Slot, SlotLine, SlotList, Status, TimelineEntry } from '../types.ts';
import type { Client } from './client.ts';
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
  readonly status: Signal<Omit<Status, 'slots' | 'slots_version' | 'slots_removed'> | undefined>;
  /** Events of all slots, newest first. */
  readonly recent: Signal<readonly TimelineEntry[]>;
  readonly failure: Signal<string>;
  reload(): Promise<void>;
  retryNow(): void;
}

/** Batches the events of a starting slot, which has several within a second, into one request. */
const BATCH_MS = 200;
const STATUS_MS = 2000;
const RATES_MS = 6000;
/** With more slots than this, the service looks through them at most every `LIST_MS`. Events deliver states at once. */
const MANY_SLOTS = 100;
const LIST_MS = 2000;
/** The first cards are drawn before the rest of a long list arrives. */
const FIRST_PAGE = 500;
const MAX_RECENT = 500;
export const MAX_HISTORY = 60;

export function createStore(client: Client): Store {
  const bySlot = new Map<string, SlotSignals>();
  const names = signal<readonly string[] | undefined>(undefined);
  const freshness = signal<Freshness>('connecting');
  const status = signal<Omit<Status, 'slots' | 'slots_version' | 'slots_removed'> | undefined>(undefined);
  const recent = signal<readonly TimelineEntry[]>([]);
  const failure = signal('');
  /** The version of the list as it was read last. */
  let version = '';
  /** As they were read; events may be ahead of it, or late. */
  const read = new Map<string, Slot>();
  const touched = new Set<string>();
  let linesVersion = '';
  const totals = new Map<string, SlotTotals>();
  let isDirty = false;
  let listedAt = Number.NEGATIVE_INFINITY;
  let arrived: TimelineEntry[] = [];
  let drawAfter = Number.NEGATIVE_INFINITY;
  let hasConnected = false;
  let connection: EventConnection | undefined;

  function upsert(slot: Slot): void {
    read.set(slot.name, slot);
    const signals = bySlot.get(slot.name);
    if (signals !== undefined) {
      // A list contains many unchanged slots, which must not redraw. One that was read before is often the same object.
      const shown = signals.slot.peek();
      if (shown !== slot && JSON.stringify(shown) !== JSON.stringify(slot)) signals.slot.value = slot;
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

  /** Reads what has changed since the last list, and at first all, page by page. */
  async function reload(): Promise<void> {
    listedAt = performance.now();
    const late = [...touched];
    touched.clear();
    const since = version === '' ? '' : `&since=${encodeURIComponent(version)}`;
    let page = await client.fetchJson<SlotList>(`/api/slots?limit=${FIRST_PAGE}${since}`);
    ({ version } = page);
    const { removed } = page;
    const present = new Set<string>();
    for (;;) {
      batch(() => {
        for (const slot of page.slots) upsert(slot);
        for (const { name } of page.slots) present.add(name);
        order();
        failure.value = '';
      });
      if (page.continue === null) break;
      page = await client.fetchJson<SlotList>(`/api/slots?limit=${FIRST_PAGE}${since}&continue=${encodeURIComponent(page.continue)}`);
    }
    for (const name of removed ?? [...bySlot.keys()].filter((each) => !present.has(each))) {
      bySlot.delete(name);
      read.delete(name);
    }
    // What the list does not name is as it was read before, whatever a late event said.
    for (const name of late) {
      const slot = read.get(name);
      if (slot !== undefined && !present.has(name)) upsert(slot);
    }
    order();
  }

  function markDirty(): void {
    if (isDirty) return;
    isDirty = true;
    const pauseMs = bySlot.size > MANY_SLOTS ? Math.max(BATCH_MS, listedAt + LIST_MS - performance.now()) : BATCH_MS;
    setTimeout(() => {
      isDirty = false;
      void reportTo(failure, reload());
    }, pauseMs);
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
        touched.add(entry.slot);
      }
      // Shows the state at once; the rest of the slot is loaded.
      for (const slot of movedBy(fresh, (name) => bySlot.get(name)?.slot.peek())) setSlot(bySlot.get(slot.name), slot);
    });
    if (fresh.length > 0) markDirty();
  }

  function onStatus({ slots, slots_version: next, slots_removed: removed, ...rest }: Status): void {
    linesVersion = next;
    batch(() => {
      status.value = rest;
      for (const line of slots) {
        if (line.totals !== null) totals.set(line.name, line.totals);
        const signals = bySlot.get(line.name);
        if (signals === undefined) continue;
        const { in_flight, parked, progress } = signals.line.peek();
        const isSame = in_flight === line.in_flight && parked === line.parked && progress?.done === line.progress?.done;
        if (!isSame) signals.line.value = line;
      }
    });
    const differs = ({ name, state }: SlotLine): boolean => bySlot.get(name)?.slot.peek().status.state !== state;
    for (const name of removed ?? []) totals.delete(name);
    const isGone = removed?.some((name) => bySlot.has(name)) ?? slots.length !== bySlot.size;
    if (isGone || slots.some(differs) || [...bySlot.values()].some(({ slot }) => isMoving(slot.peek().status.state))) markDirty();
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
      const readLines = async () => await client.fetchJson<Status>(`/api/status?since=${encodeURIComponent(linesVersion)}`);
      repeat(STATUS_MS, async () => onStatus(await readLines()));
      repeat(RATES_MS, createRateReader(totals, bySlot));
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

function setSlot(signals: SlotSignals | undefined, slot: Slot): void {
  if (signals !== undefined) signals.slot.value = slot;
}

function createSignals(slot: Slot, lastEvent: TimelineEntry | undefined): SlotSignals {
  return {
    slot: signal(slot),
    line: signal<SlotSignals['line']['value']>({ in_flight: 0, parked: 0, progress: null }),
    rates: signal<SlotRates | undefined>(undefined),
    history: signal<readonly number[]>([]),
    lastEvent: signal(lastEvent),
  };
}

function createRateReader(totals: ReadonlyMap<string, SlotTotals>, bySlot: ReadonlyMap<string, SlotSignals>): () => Promise<void> {
  let last: ReadonlyMap<string, SlotTotals> | undefined;
  let readAt = 0;
  return async () => {
    const [before, now] = [last, performance.now()];
    const seconds = (now - readAt) / 1000;
    [last, readAt] = [new Map(totals), now];
    if (before === undefined) return;
    batch(() => {
      for (const [name, { rates, history }] of bySlot) {
        const after = totals.get(name);
        const next = after === undefined ? undefined : ratesBetween(before.get(name), after, seconds);
        const last = rates.peek();
        const shown = next?.firstTokenSeconds ?? last?.firstTokenSeconds;
        // Slots at rest are not drawn again.
        const isSame = next === undefined || (next.tokensPerSecond === (last?.tokensPerSecond ?? 0) && shown === last?.firstTokenSeconds);
        if (!isSame) rates.value = { ...next, firstTokenSeconds: shown };
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
