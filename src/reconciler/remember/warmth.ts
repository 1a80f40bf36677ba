/**
 * What is known between passes of when slots are needed: `track` learns from a pass, `facts` says which slots are to be
 * loaded ahead of requests now. A schedule and a history are in wall time, which is translated here into facts of a
 * plan (ADR 0138). What is decided is in `rules/warm-schedule.ts` and `rules/forecast.ts`.
 */
import type { Finding } from '../../schema/words/failure.ts';
import { reuse } from '../../schema/words/same-value.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { RequestHistories, RequestHistory } from '../../schema/status/request-history.ts';
import type { Observed } from '../decide/facts/facts.ts';
import { learn, localFormat, localTime, NOTHING_LEARNED, type Learned, type LocalTime } from '../decide/rules/forecast.ts';
import { scheduledAt } from '../decide/rules/warm-schedule.ts';
import type { DesiredSlot } from '../ports.ts';

/** The end of a forecast, for metrics and timelines. */
export type EndedForecast = NonNullable<Learned['ended']> & Pick<RequestHistory, 'outcomes'>;

interface Times {
  readonly now: number;
  readonly wallNow: number;
}

interface WarmthDeps {
  /** IANA name of the time zone. Default: that of this machine. */
  readonly zone?: string | undefined;
  /** Default: nothing is kept. */
  readonly histories?: Pick<RequestHistories, 'write'> | undefined;
  /** What earlier controllers have learned. */
  readonly known?: ReadonlyMap<SlotName, RequestHistory> | undefined;
  readonly onEnded: (slot: SlotName, ended: EndedForecast) => void;
}

export type Warmth = ReturnType<typeof createWarmth>;

/** Enough to read a model from a slow disk before it is loaded. */
const SOON_MS = 60_000;

export function createWarmth({ zone: given, histories, known = new Map(), onEnded }: WarmthDeps) {
  let found: { readonly zone: string; readonly format: Intl.DateTimeFormat } | undefined;
  /** Called when a slot needs it: to load the data of time zones takes 40 ms, and most services have no such slot. */
  function place() {
    const zone = found?.zone ?? given ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
    return (found ??= { zone, format: localFormat(zone) });
  }
  const learned = new Map<SlotName, Learned>([...known].map(([name, history]) => [name, { ...NOTHING_LEARNED, history }]));
  /** The last requests that were learned from, in monotonic milliseconds. */
  const notedAt = new Map<SlotName, number>();
  /** Answers for a schedule, each from one Unix time to another: finding it takes a tenth of a millisecond. */
  const answers = new WeakMap<readonly string[], { from: number; until: number; because: Finding | undefined }>();

  function schedule(entries: readonly string[], wallNow: number) {
    const last = answers.get(entries);
    if (last !== undefined && wallNow >= last.from && wallNow < last.until) return last;
    const { zone } = place();
    const { entry, until } = scheduledAt(entries, zone, wallNow);
    const because = entry === undefined ? undefined : reuse(last?.because, scheduledBy(entry, zone));
    const answer = { from: wallNow, until, because };
    answers.set(entries, answer);
    return answer;
  }

  return {
    /**
     * Call it in each pass of a controller that leads. `requestAt`: when requests last needed each slot. `atRest`:
     * whether a slot rests unless something loads it ahead.
     */
    track(
      slots: ReadonlyMap<SlotName, DesiredSlot>,
      { requestAt, atRest }: { readonly requestAt: ReadonlyMap<SlotName, number>; readonly atRest: (slot: DesiredSlot) => boolean },
      { now, wallNow }: Times,
    ): void {
      for (const name of learned.keys()) {
        if (slots.get(name)?.spec.lifecycle.prewarm === 'learned') continue;
        learned.delete(name);
        histories?.write(name, undefined);
      }
      let local: LocalTime | undefined;
      for (const slot of slots.values()) {
        const { name } = slot;
        if (slot.spec.lifecycle.prewarm !== 'learned') continue;
        const { format } = place();
        local ??= localTime(format, wallNow);
        const before = learned.get(name) ?? NOTHING_LEARNED;
        const at = requestAt.get(name);
        const isNew = at !== undefined && at > (notedAt.get(name) ?? Number.NEGATIVE_INFINITY);
        if (isNew) notedAt.set(name, at);
        const neededAt = isNew ? localTime(format, wallNow - (now - at)) : undefined;
        const isAtRest = schedule(slot.spec.lifecycle.warm, wallNow).because === undefined && atRest(slot);
        const after = learn(before, { now, local, neededAt, isAtRest });
        learned.set(name, after);
        if (after.history !== before.history) histories?.write(name, after.history);
        if (after.ended !== undefined && after !== before) onEnded(name, { ...after.ended, outcomes: after.history.outcomes });
      }
    },
    facts(slots: ReadonlyMap<SlotName, DesiredSlot>, { now, wallNow }: Times): Pick<Observed, 'warm' | 'warmSoon' | 'warmChangesAt'> {
      const warmSoon = new Set<SlotName>();
      const warm = new Map<SlotName, Finding>();
      let changesAt = Number.POSITIVE_INFINITY;
      for (const { name, spec } of slots.values()) {
        const { warm: entries, prewarm } = spec.lifecycle;
        const scheduled = entries.length === 0 ? undefined : schedule(entries, wallNow);
        const forecast = prewarm === 'learned' ? learned.get(name)?.forecast : undefined;
        const because = scheduled?.because ?? (forecast?.loads === true ? forecast.because : undefined);
        if (because !== undefined) warm.set(name, because);
        const until = scheduled === undefined ? Number.POSITIVE_INFINITY : now + (scheduled.until - wallNow);
        const soonAt = scheduled === undefined || because !== undefined ? until : until - SOON_MS;
        if (soonAt <= now) warmSoon.add(name);
        changesAt = Math.min(changesAt, soonAt > now ? soonAt : until, forecast?.endsAt ?? Number.POSITIVE_INFINITY);
      }
      return { warm, warmSoon, warmChangesAt: Number.isFinite(changesAt) ? changesAt : undefined };
    },
  };
}

const scheduledBy = (entry: string, zone: string): Finding => ({
  reason: 'WarmScheduled',
  message: `The slot is loaded ahead of requests: "${entry}" in time zone "${zone}"`,
});
