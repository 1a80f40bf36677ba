/** The metrics that the reconciler reports. Every method is cheap and never throws; each names its labels, because callers may pass objects with more fields. */
import type { SlotName } from '../../schema/words/names.ts';
import type { StateMove, TimelineEntry } from '../../schema/status/slot-status.ts';
import type { MetricFactory } from './metric-factory.ts';

type Transition = Omit<StateMove, 'slot'>;

export function createReconcileSeries({ counter, histogram }: MetricFactory) {
  const transitions = counter('svc_slot_transitions_total');
  const passes = counter('svc_reconcile_passes_total');
  const passSeconds = histogram('svc_reconcile_pass_seconds');
  const actions = counter('svc_actions_total');
  const drift = counter('svc_drift_total');
  const pulled = counter('svc_pull_bytes_total');
  /** The slots that have series, and the transitions of each by "from to". */
  const seen = new Map<SlotName, Map<string, Transition>>();

  /** Begins the series of a slot. A counter that began with its first event would hide that event from `increase()`. */
  function begin(slot: SlotName): Map<string, Transition> {
    const ofSlot = new Map<string, Transition>();
    seen.set(slot, ofSlot);
    drift.inc({ slot }, 0);
    return ofSlot;
  }

  return {
    passFinished({ seconds, result }: { readonly seconds: number; readonly result: string }) {
      passes.inc({ result });
      passSeconds.observe(seconds);
    },
    actionFinished: ({ action, result }: { readonly action: string; readonly result: string }) => actions.inc({ action, result }),
    /** `bytes`: received since the last call, of a model or an image. */
    bytesPulled({ what, bytes }: { readonly what: 'model' | 'image'; readonly bytes: number }) {
      if (bytes > 0) pulled.inc({ what }, bytes);
    },
    /** Counts state transitions and drift. A `StatusSink` of the reconciler. */
    write({ entries, moves = [] }: { readonly entries: readonly TimelineEntry[]; readonly moves?: readonly StateMove[] }) {
      for (const { kind, slot } of entries) {
        if (!seen.has(slot)) begin(slot);
        if (kind === 'drift') drift.inc({ slot });
      }
      for (const { slot, from, to } of moves) {
        const ofSlot = seen.get(slot) ?? begin(slot);
        transitions.inc({ slot, from, to });
        ofSlot.set(`${from} ${to}`, { from, to });
      }
    },
    /** Begins the series of new slots, and removes those of slots that are gone. */
    keepOnly(slots: ReadonlyMap<SlotName, unknown>) {
      for (const slot of slots.keys()) if (!seen.has(slot)) begin(slot);
      if (seen.size === slots.size) return;
      for (const [slot, ofSlot] of seen) {
        if (slots.has(slot)) continue;
        drift.remove({ slot });
        for (const { from, to } of ofSlot.values()) transitions.remove({ slot, from, to });
        seen.delete(slot);
      }
    },
  };
}
