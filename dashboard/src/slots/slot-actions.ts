/** The changes that cards offer: the plan of each, and the request that applies it. */
import type { Change } from '../app-context.ts';
import { applyPatch, type Table } from '../decide/patch.ts';
import type { Place } from '../decide/route.ts';
import type { actionsOf } from '../decide/slot-facts.ts';
import type { Plan, Revision, Slot } from '../types.ts';
import { T } from '../texts.ts';

interface SlotChange {
  readonly slot: string;
  readonly verb: 'load' | 'unload' | 'restart';
  /** Effect of the verb on the document, for the plan. */
  readonly patch: Table;
  readonly title: string;
  /** Request body. Default: empty. */
  readonly body?: Table;
}

function slotChange({ slot: name, verb, patch, title, body = {} }: SlotChange): Change {
  const path = `/api/slots/${encodeURIComponent(name)}`;
  return {
    title,
    conflict: T.slotChanged,
    watch: watchOf(name),
    async plan(client, signal) {
      const slot = await client.fetchJson<Slot>(path, { signal });
      const spec = applyPatch(slot.spec, patch);
      const load = verb === 'load' ? [name] : [];
      const plan = await client.fetchJson<Plan>('/api/plan', { method: 'POST', body: { slots: [{ name, spec }], load }, signal });
      return { plan, version: slot.resource_version };
    },
    apply: (client, version) => client.fetchJson(`${path}/${verb}`, { method: 'POST', body, ifMatch: version }),
  };
}

/** The timeline shows each step as it happens. */
export const watchOf = (slot: string): Place => ({ page: 'slots', slot, tab: 'timeline' });

export function loadChange(slot: string, model?: string): Change {
  const chosen = model === undefined ? {} : { model: { default: model } };
  const title = model === undefined ? `${T.planTitle.load} "${slot}"` : T.loadModelTitle(model, slot);
  return slotChange({ slot, verb: 'load', patch: { enabled: true, ...chosen }, body: model === undefined ? {} : { model }, title });
}

/** Declares a slot that does not exist yet. */
export function createChange(name: string, model: string, provider: string): Change {
  const spec = { provider, model: { default: model } };
  return {
    title: T.newSlotTitle(name),
    conflict: T.slotExists,
    watch: watchOf(name),
    async plan(client, signal) {
      const body = { slots: [{ name, spec }], load: [name] };
      return { plan: await client.fetchJson<Plan>('/api/plan', { method: 'POST', body, signal }), version: null };
    },
    apply: (client) => client.fetchJson(`/api/slots/${encodeURIComponent(name)}`, { method: 'PUT', body: { spec }, ifNoneMatch: '*' }),
  };
}

/** Disabling a resting slot is the verb `unload`, too. */
function changeOf(slot: string, what: 'load' | 'unload' | 'disable'): Change {
  if (what === 'load') return loadChange(slot);
  return slotChange({ slot, verb: 'unload', patch: { enabled: false }, title: `${T.planTitle[what]} "${slot}"` });
}

export function restartChange(slot: string): Change {
  const patch = { restarted_at: new Date().toISOString() };
  return slotChange({ slot, verb: 'restart', patch, title: `${T.planTitle.restart} "${slot}"` });
}

/** The buttons of a slot with their changes; undefined where there is nothing to restart. */
export const offersOf = (slot: string, { change, other }: ReturnType<typeof actionsOf>) => [
  { label: T[change], make: () => changeOf(slot, change) },
  other === 'disable'
    ? { label: T.disable, make: () => changeOf(slot, other) }
    : { label: T.restart, make: other && (() => restartChange(slot)) },
];

/** The undo itself is the service's; here only its plan is asked for. What belongs to no revision stays as it is. */
export function undoChange(name: string, { revision, spec }: Revision): Change {
  const path = `/api/slots/${encodeURIComponent(name)}`;
  return {
    title: T.undoTitle(revision, name),
    conflict: T.slotChanged,
    async plan(client, signal) {
      const slot = await client.fetchJson<Slot>(path, { signal });
      const own = { restarted_at: slot.spec?.['restarted_at'] ?? null, rollout: slot.spec?.['rollout'] ?? null };
      const body = { slots: [{ name, spec: applyPatch(spec, own) }] };
      return { plan: await client.fetchJson<Plan>('/api/plan', { method: 'POST', body, signal }), version: slot.resource_version };
    },
    apply: (client, version) => client.fetchJson(`${path}/undo`, { method: 'POST', body: { to_revision: revision }, ifMatch: version }),
  };
}
