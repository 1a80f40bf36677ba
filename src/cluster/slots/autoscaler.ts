/**
 * Scales slots with `autoscale` by what all gateways report of their requests. It edits `replicas`, as an HPA does, and
 * nothing else: the loop does the rest. Only the leader does so.
 */
import { sleep } from '../../platform/clock.ts';
import type { SourceLog } from '../../platform/log.ts';
import type { DesiredSlot, Traffic } from '../../reconciler/ports.ts';
import { LABELS } from '../../schema/pod/kube-fields.ts';
import type { SlotEditor } from '../../schema/slot/slot-editor.ts';
import { WorkloadId, type SlotName } from '../../schema/words/names.ts';
import type { Reflector } from '../client/ports.ts';
import { decideReplicas, type Need } from './decide/decide-replicas.ts';
import type { SlotResources } from './slot-resources.ts';

interface AutoscalerDeps {
  readonly source: Pick<SlotResources, 'read'>;
  readonly editor: Pick<SlotEditor, 'patch'>;
  readonly deployments: Pick<Reflector, 'items'>;
  /** The traffic of all gateways. */
  readonly traffic: Pick<Traffic, 'read'>;
  readonly leads: () => boolean;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly log: Pick<SourceLog, 'info' | 'warn'>;
  readonly everyMs?: number;
}

interface Scaled {
  readonly needs: readonly Need[];
  /** The number that was written last. */
  readonly replicas: number;
  readonly warnedAt: number | undefined;
}

/** Gateways report requests that begin to wait within a second, others every ten. */
const EVERY_MS = 1000;
/** Another autoscaler writes every few seconds. */
const WARN_EVERY_MS = 60_000;

export function createAutoscaler(deps: AutoscalerDeps) {
  const { source, editor, deployments, traffic, leads, now, log, everyMs = EVERY_MS } = deps;
  let scaled: ReadonlyMap<SlotName, Scaled> = new Map();

  async function scale({ name, spec }: DesiredSlot, requests: number): Promise<Scaled | undefined> {
    const { autoscale, replicas } = spec.cluster;
    if (autoscale === undefined) return undefined;
    const before = scaled.get(name);
    const decided = decideReplicas(autoscale, { now: now(), replicas, requests }, before?.needs);
    let warnedAt = before?.warnedAt;
    if (before !== undefined && before.replicas !== replicas && now() - (warnedAt ?? Number.NEGATIVE_INFINITY) >= WARN_EVERY_MS) {
      warnedAt = now();
      const fix = 'remove the HorizontalPodAutoscaler or ScaledObject of this slot, or its "autoscale"';
      log.warn({ slot: name }, `Something else set "replicas" of the slot "${name}" to ${replicas}, not ${before.replicas}: ${fix}`);
    }
    const after = { ...decided, warnedAt };
    if (decided.replicas === replicas) return after;
    const edited = await editor.patch(name, { replicas: decided.replicas });
    // Tried again at the next look.
    if (edited.kind !== 'done') return { ...after, replicas };
    log.info({ slot: name }, `Scaled from ${replicas} to ${decided.replicas} replicas for ${requests} requests`);
    return after;
  }

  async function look(signal: AbortSignal): Promise<void> {
    const read = leads() ? await source.read(signal) : undefined;
    const slots = read?.ok === true ? [...read.value.slots.values()].filter(({ spec }) => spec.cluster.autoscale !== undefined) : [];
    const next = new Map<SlotName, Scaled>();
    if (slots.length > 0) {
      const { workloads, demand } = traffic.read();
      for (const slot of slots) {
        const present = [...deployments.items().values()].filter(({ metadata }) => metadata.labels?.[LABELS.slot] === slot.name);
        const ids = present.flatMap(({ metadata }) => WorkloadId.safeParse(metadata.uid).data ?? []);
        const inFlight = ids.reduce((sum, id) => sum + (workloads.get(id)?.inFlight ?? 0), 0);
        const done = await scale(slot, inFlight + (demand.get(slot.name)?.waiting ?? 0));
        if (done !== undefined) next.set(slot.name, done);
      }
    }
    scaled = next;
  }

  return {
    /** Resolves when the signal has aborted. */
    async start(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        await look(signal);
        await sleep(everyMs, signal);
      }
    },
  };
}
