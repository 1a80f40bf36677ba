/** What is pulled for slots, and which pulls are cancelled. Pure. */
import type { Finding } from '../../../schema/words/failure.ts';
import { pullImageKey, pullModelKey, type Action } from '../facts/actions.ts';
import type { Observed } from '../facts/facts.ts';
import type { SlotView } from '../facts/view.ts';
import type { Gate } from '../rules/gates.ts';

type Pull = Extract<Action, { name: 'pullImage' | 'pullModel' }>;

export interface Pulls {
  readonly actions: readonly Action[];
  /** A pull for the slot is running, or starts now. */
  readonly pulling: boolean;
  /** Keys of all pulls that the slot needs: running, starting or delayed. */
  readonly waitsFor: readonly string[];
}

/** Pulls start only where nothing else prevents the slot from starting. */
export function planPulls(view: SlotView, gates: readonly Gate[]): Pulls {
  const needed = gates.flatMap((gate) => pullFor(gate, view) ?? []);
  const waitsFor = needed.map(pullKey);
  const due = gates.every(({ kind }) => kind === 'pulling');
  return {
    actions: due ? needed.filter((pull) => view.pulls?.has(pullKey(pull)) !== true) : [],
    pulling: waitsFor.some((key) => due || view.pulls?.has(key) === true),
    waitsFor,
  };
}

export const NO_PULLS: Pulls = { actions: [], pulling: false, waitsFor: [] };

/** Cancels running pulls that no slot waits for. */
export function cancelPulls({ running }: Observed, wanted: ReadonlySet<string>): readonly Action[] {
  return [...running].flatMap(([key, { action, cancelled }]): Action[] => {
    if (!isPull(action) || cancelled === true || wanted.has(key)) return [];
    const because: Finding = { reason: 'PullNotWanted', message: 'No slot needs it any more' };
    return [{ name: 'cancelPull', slot: action.slot, because, args: { key } }];
  });
}

/** Slots that need the same image or model share its pull. */
export function sharePulls(actions: readonly Action[]): readonly Action[] {
  const seen = new Set<string>();
  return actions.filter((action) => {
    if (!isPull(action)) return true;
    const key = pullKey(action);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

function pullFor(gate: Gate, { image, spec, slot }: SlotView): Pull | undefined {
  if (gate.kind !== 'pulling') return undefined;
  if (gate.what === 'model') return { name: 'pullModel', slot: slot.name, because: gate, args: { model: spec.model.default } };
  return image === undefined ? undefined : { name: 'pullImage', slot: slot.name, because: gate, args: { image } };
}

function isPull(action: Action): action is Pull {
  return action.name === 'pullImage' || action.name === 'pullModel';
}

function pullKey(pull: Pull): string {
  return pull.name === 'pullImage' ? pullImageKey(pull.args.image) : pullModelKey(pull.args.model);
}
