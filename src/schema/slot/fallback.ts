/**
 * Fallback of a slot: other slots that get its requests while it cannot answer them, or a share of them always. Slots
 * may be written in any order, so a target that does not exist is reported in the status and is no mistake in the text.
 */
import { z } from 'zod';
import { boundedRecord } from '../pod/kube-fields.ts';
import { SlotName } from '../words/names.ts';
import { parseDurationMs } from '../words/quantities.ts';
import type { Capability } from './provider-kinds.ts';
import { rulesAt } from './slot-rules.ts';
import { quoted } from './spec-problem.ts';

const CONDITION_RULE = 'Write "stalled", "upstream.failed", "loading > 20s" (any duration) or "queue > 8" (any number from 1 to 99999)';
const CONDITION = /^(stalled|upstream\.failed|loading > [0-9]+(\.[0-9]+)?(ms|[smhd])|queue > [1-9][0-9]{0,4})$/;

const Document = z
  .strictObject({
    to: z.array(SlotName).max(16).default([]).describe('Slots that get the requests, in order: the first one that is ready and can answer'),
    when: z
      .array(z.string().max(40).regex(CONDITION, CONDITION_RULE))
      .min(1)
      .max(4)
      .default(['stalled', 'upstream.failed'])
      .describe(
        'When they do. "stalled": the slot refuses requests; "upstream.failed": its server died, or answered 5xx or 429, before the first byte; "loading > 20s": a request has waited for so long; "queue > 8": more requests are in flight or wait, for each server',
      ),
    split: boundedRecord(z.int().min(1).max(100), 16, SlotName)
      .default({})
      .describe('Per cent of the requests that always go to other slots, by name, as in "canary = 5". A conversation stays where it is'),
  })
  .superRefine(rulesAt('fallback'));

export const Fallback = Document.transform(resolveFallback);

/** `loadingMs`, `queue`: `Infinity` if no condition has one. */
export type FallbackSpec = Readonly<ReturnType<typeof resolveFallback>>;

function resolveFallback({ to, when, split }: z.output<typeof Document>) {
  const least = (kind: string, parse: (text: string) => number): number =>
    Math.min(...when.filter((each) => each.startsWith(`${kind} > `)).map((each) => parse(each.slice(kind.length + 3))));
  return {
    to,
    split: Object.entries(split).map(([name, percent]) => [SlotName.parse(name), percent] as const),
    stalled: when.includes('stalled'),
    upstreamFailed: when.includes('upstream.failed'),
    loadingMs: least('loading', parseDurationMs),
    queue: least('queue', Number),
    when,
  };
}

/** `to "b", "c" when stalled, loading > 20s; 5 % to "canary"`. */
export function describeFallback({ to, when, split }: FallbackSpec): string {
  const share = split.map(([name, percent]) => `${percent} % to "${name}"`);
  return [...(to.length === 0 ? [] : [`to ${quoted(to)} when ${when.join(', ')}`]), ...share].join('; ');
}

interface FallingSlot {
  readonly name: SlotName;
  readonly fallback?: FallbackSpec | undefined;
  readonly capabilities: readonly Capability[];
}

/** One sentence for each target of a slot that can never answer its requests, by slot. Pure. */
export function findFallbackProblems(slots: readonly FallingSlot[]): ReadonlyMap<SlotName, readonly string[]> {
  const falling = slots.filter(({ fallback }) => fallback !== undefined);
  if (falling.length === 0) return new Map();
  const byName = new Map(slots.map((slot) => [slot.name, slot]));
  const found = falling.map(({ name, fallback, capabilities }) => {
    const targets = new Set([...(fallback?.to ?? []), ...(fallback?.split ?? []).map(([to]) => to)]);
    const problems = [...targets].flatMap((to) => {
      if (to === name) return [`Fallback to "${to}" has no effect, because it is the slot itself: remove it`];
      const target = byName.get(to);
      if (target === undefined) return [`Fallback to "${to}" has no effect, because no such slot exists: create it, or remove it`];
      const lacking = capabilities.filter((each) => !target.capabilities.includes(each));
      return lacking.length === 0
        ? []
        : [`Fallback to "${to}" has no effect on requests for ${lacking.join(', ')}, which it does not serve`];
    });
    return [name, problems] as const;
  });
  return new Map(found.filter(([, problems]) => problems.length > 0));
}
