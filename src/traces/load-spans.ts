/**
 * The spans of loads, from what the reconciler reports: one trace for each pass that began a load.
 *
 *   reconcile pass ── load <slot> ─┬─ pull
 *                                  ├─ start
 *                                  └─ warm
 */
import { createRingBuffer } from '../platform/ring-buffer.ts';
import type { Report, StatusSink } from '../reconciler/ports.ts';
import { ANSWERING_STATES, type SlotState, type TimelineEntry } from '../schema/status/slot-status.ts';
import type { SlotName } from '../schema/words/names.ts';
import type { LoadFacts, SpanFacts, SpanRef } from './decide/request-spans.ts';

export interface LoadSpansDeps {
  readonly newId: (bytes: number) => string;
  /** Unix milliseconds. */
  readonly wallNow: () => number;
  /** This replica carries out plans; others see the same loads, and send no spans of them. */
  readonly leads: () => boolean;
  readonly modelOf: (slot: SlotName) => string | undefined;
  readonly send: (spans: readonly SpanFacts[]) => void;
}

export type LoadSpans = ReturnType<typeof createLoadSpans>;

const PARTS: Partial<Record<SlotState, string>> = { pulling: 'pull', starting: 'start', warming: 'warm' };
/** Requests wait for minutes; a slot that crashes is loaded again after seconds. */
const MOST_LOADS = 1000;

type SeenReport = Pick<Report, 'entries'> & { readonly statuses: readonly { readonly name: SlotName }[] };

interface Load extends LoadFacts {
  until: number | undefined;
  readonly refs: SpanRef[];
  readonly self: SpanRef;
  readonly parentId: string;
  part: (SpanRef & { readonly name: string; readonly from: number }) | undefined;
}

export function createLoadSpans({ newId, wallNow, leads, modelOf, send }: LoadSpansDeps) {
  const open = new Map<SlotName, Load>();
  const ended = createRingBuffer<Load>(MOST_LOADS);
  /** The pass under way, once it has begun a load. */
  let pass: SpanRef | undefined;

  function begin({ slot, at }: TimelineEntry): Load {
    pass ??= { traceId: newId(16), spanId: newId(8) };
    const self = { traceId: pass.traceId, spanId: newId(8) };
    const refs = leads() ? [self, pass] : [];
    const load: Load = { slot, from: at, until: undefined, refs, self, parentId: pass.spanId, part: undefined };
    open.set(slot, load);
    return load;
  }

  function endPart({ self, slot, part, refs }: Load, at: number): void {
    if (part === undefined || refs.length === 0) return;
    const { name, from, ...ref } = part;
    const attributes = { 'svc.slot': slot, 'svc.model': modelOf(slot) };
    send([{ ...ref, name, kind: 'internal', parentId: self.spanId, from, until: at, attributes }]);
  }

  function end(load: Load, { at, to, cause }: TimelineEntry): void {
    const { slot, self, parentId, from, refs } = load;
    load.until = at;
    open.delete(slot);
    ended.push(load);
    if (refs.length === 0) return;
    const hasFailed = to === undefined || !ANSWERING_STATES.has(to);
    const error = hasFailed ? /^\w*/.exec(cause ?? '')?.[0] || '_OTHER' : undefined;
    const attributes = { 'svc.slot': slot, 'svc.model': modelOf(slot), 'svc.state': to };
    send([{ ...self, name: `load ${slot}`, kind: 'internal', parentId, from, until: at, attributes, error }]);
  }

  function enter(entry: TimelineEntry): void {
    const { slot, at, to = 'offline' } = entry;
    const name = PARTS[to];
    const load = open.get(slot) ?? (name === undefined ? undefined : begin(entry));
    if (load === undefined) return;
    endPart(load, at);
    load.part = name === undefined ? undefined : { traceId: load.self.traceId, spanId: newId(8), name, from: at };
    if (load.part === undefined) end(load, entry);
    else if (load.refs.length > 0) load.refs.push({ traceId: load.part.traceId, spanId: load.part.spanId });
  }

  return {
    sink: {
      write({ entries, statuses }: SeenReport): void {
        for (const entry of entries) if (entry.kind === 'state') enter(entry);
        for (const slot of open.keys()) if (!statuses.some(({ name }) => name === slot)) open.delete(slot);
      },
    } satisfies StatusSink,
    /** Called after what the pass reports. */
    passFinished({ seconds, result }: { readonly seconds: number; readonly result: string }): void {
      if (pass === undefined) return;
      const until = wallNow();
      if (leads())
        send([
          {
            ...pass,
            name: 'reconcile pass',
            kind: 'internal',
            from: until - seconds * 1000,
            until,
            attributes: { 'svc.pass.result': result },
          },
        ]);
      pass = undefined;
    },
    /** Loads that had not ended before. */
    since: (from: number): readonly LoadFacts[] => [...ended.items().filter(({ until = from }) => until >= from), ...open.values()],
  };
}
