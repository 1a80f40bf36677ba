/**
 * Which models slots start next, and whether their files may be read into the page cache until then. Nothing that runs
 * may become slower by it: the weights that running servers have mapped are in the same page cache. Pure.
 */
import type { Finding } from '../../../schema/words/failure.ts';
import type { NextModel } from '../../ports.ts';
import type { Decision, Observed } from '../facts/facts.ts';
import { HOST, type PoolBytes } from '../facts/memory-pools.ts';
import type { SlotView } from '../facts/view.ts';
import type { Roles } from '../rules/assign-roles.ts';
import type { Gate } from '../rules/gates.ts';

type NextStart = NonNullable<Decision['nextStart']>;

export interface StartQuestion {
  readonly roles: Roles;
  /** Why the slot does not run now, apart from memory. */
  readonly notWanted: Finding | undefined;
  readonly memoryGate: Gate | undefined;
  /** Nothing else prevents a start. */
  readonly startable: boolean;
  /** Others will release the memory. */
  readonly mayWait: boolean;
}

/** The lowest is read first. */
const RANK = { swap: 0, memory: 1, schedule: 2 } as const;

/** Undefined where the slot starts nothing soon, or where its server already reads its files. */
export function findNextStart(view: SlotView, question: StartQuestion): NextStart | undefined {
  const { model, slot, network, applying } = view;
  // The page cache of a node is not the one of this machine.
  if (network === 'pods' || !question.startable || applying !== undefined || model?.kind !== 'present') return undefined;
  const { facts } = model;
  const rank = rankOf(view, question);
  if (rank === undefined || facts.sizeBytes === undefined || facts.sizeBytes === 0) return undefined;
  return { slot: slot.name, model: { ...facts, sizeBytes: facts.sizeBytes }, rank };
}

function rankOf(view: SlotView, { roles, notWanted, memoryGate, mayWait }: StartQuestion): number | undefined {
  const runs = view.workloads.some(({ alive, standing }) => alive && standing === 'current');
  if (runs) return undefined;
  if (notWanted !== undefined) return view.warmSoon && view.spec.enabled ? RANK.schedule : undefined;
  if (memoryGate !== undefined) return mayWait && view.waiting > 0 ? RANK.memory : undefined;
  if (roles.start || roles.starting !== undefined || roles.unprobed !== undefined) return undefined;
  if (roles.waitsFor !== undefined) return RANK.swap;
  const leaves = roles.serving === undefined && (view.stopping || roles.draining.length > 0);
  return leaves && roles.draining.every(({ failure }) => failure === undefined) ? RANK.swap : undefined;
}

/** Memory of one slot: what is reserved for its servers, and what they have allocated of it, without mapped files. */
export interface SlotUse {
  readonly held: PoolBytes;
  readonly allocatedBytes: number;
}

/** Left for files and programs that nobody counts. */
const RESERVE_SHARE = 0.05;

/**
 * The models to read now, in this order. None while a server loads, which reads its own files. A file that does not fit
 * whole beside what running and starting servers may still use is not read: the end of it would displace its beginning.
 */
export function planReadAhead(
  decisions: Iterable<Pick<Decision, 'state' | 'nextStart'>>,
  uses: Iterable<SlotUse>,
  { host, leads }: Pick<Observed, 'host' | 'leads'>,
): readonly NextModel[] {
  const next: NextStart[] = [];
  let isLoading = false;
  for (const { state, nextStart } of decisions) {
    if (nextStart !== undefined) next.push(nextStart);
    else isLoading ||= state === 'starting' || state === 'warming';
  }
  const { memoryAvailableBytes: available, memoryTotalBytes: total } = host;
  if (next.length === 0 || isLoading || !leads || available === undefined || total === undefined) return NOTHING;
  let room = available - total * RESERVE_SHARE;
  for (const { held, allocatedBytes } of uses) room -= Math.max(0, (held[HOST] ?? 0) - allocatedBytes);
  next.sort((one, other) => one.rank - other.rank);
  return next.flatMap(({ slot, model }) => {
    if (model.sizeBytes > room) return [];
    room -= model.sizeBytes;
    return [{ slot, model }];
  });
}

const NOTHING: readonly NextModel[] = [];
