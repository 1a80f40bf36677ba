/**
 * Picks the slot for a request, or the reason why there is none, from the board alone. What happens at the slot is its
 * `admission` on the board:
 *
 *   open → hold and forward   park → the slot's queue (`gateway/traffic/parking.ts`)   refuse → the admission's error
 *
 * Where each error that a client sees as 503 or 429 is decided:
 *
 *   slot.disabled              reconciler/decide/rules/admission.ts: `enabled = false`, or no replicas wanted
 *   slot.insufficient_memory   reconciler/decide/rules/admission.ts: the model does not fit
 *   slot.stalled               reconciler/decide/rules/admission.ts: gave up. Here: its first document is invalid
 *   slot.loading               gateway/traffic/parking.ts: parked for too long, or the service is stopping
 *   slot.queue_full (429)      gateway/traffic/parking.ts: too many requests wait already
 *   server.overloaded          gateway/body/kept-body.ts: bodies; api/server/http-server.ts: connections
 *   server.starting, .stalled  api/manage/: health routes and routes of one slot, never an inference request
 *
 * While the runtime cannot be reached, the previous admission stays (reconciler/decide/hold-up.ts). A
 * replica that is not the leader takes over what the leader has given up (cluster/leadership/decide/follow-leader.ts).
 * Errors of an upstream keep their own status.
 */
import type { Admission, RoutedSlot, RoutedView } from '../../../reconciler/board.ts';
import type { ErrorCode } from '../../../schema/words/error-codes.ts';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';
import { DEFAULT_SLOT_OF_CAPABILITY } from './inference-paths.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';
import type { Endpoint, InferPlan, InferRequest, Provider } from '../../../providers/provider.ts';

export type RouteDecision =
  | { readonly kind: 'slot'; readonly slot: RoutedSlot }
  | Refusal
  /** No pass has finished yet, so nothing is known and nothing is refused. */
  | { readonly kind: 'unknown' };

export interface Refusal {
  readonly kind: 'refuse';
  readonly code: ErrorCode;
  readonly message: string;
}

export type ForwardPlan =
  | Exclude<InferPlan, { kind: 'refuse' }>
  | { readonly kind: 'refuse'; readonly code: ErrorCode; readonly message: string; readonly param: string | null };

/** A model name in a message is cut at this length, because it comes from the client and may be anything. */
const NAME_LENGTH_LIMIT = 200;
const LISTED_NAMES = 50;
const RANKS: Readonly<Record<Admission['kind'], number>> = { open: 0, park: 1, refuse: 2 };
const INCAPABLE = 10;

/** Prefers slots that serve the capability, then open ones, then those worth waiting for. */
export function route(capability: Capability, path: string, model: string | undefined, board: RoutedView): RouteDecision {
  if (board.version === 0) return { kind: 'unknown' };
  const name = model ?? DEFAULT_SLOT_OF_CAPABILITY[capability];
  const candidates = board.names.get(name);
  let best: RoutedSlot | undefined;
  let bestRank = Number.POSITIVE_INFINITY;
  for (const slotName of candidates ?? []) {
    const slot = board.slots.get(slotName);
    if (slot === undefined) continue;
    const rank = slot.capabilities.includes(capability) ? RANKS[slot.admission.kind] : INCAPABLE;
    if (rank >= bestRank) continue;
    best = slot;
    bestRank = rank;
  }
  if (best === undefined) return unknownName(path, model, name, board);
  if (bestRank >= INCAPABLE) return incapable(best, capability, path, board);
  return { kind: 'slot', slot: best };
}

function unknownName(path: string, model: string | undefined, name: string, board: RoutedView): RouteDecision {
  const [, problems] = board.refused.entries().find(([slot]) => slot === name) ?? [];
  if (problems !== undefined) {
    const reason = problems[0]?.message ?? 'it is invalid';
    return { kind: 'refuse', code: 'slot.stalled', message: `The document of slot "${name}" is invalid: ${reason}` };
  }
  const known = knownNames(board);
  const message =
    model === undefined
      ? `The default slot "${name}" of "${path}" does not exist: send "model"; ${known}`
      : `Model "${shorten(model, NAME_LENGTH_LIMIT)}" does not exist; ${known}`;
  return { kind: 'refuse', code: 'model.not_found', message };
}

function incapable(slot: RoutedSlot, capability: Capability, path: string, board: RoutedView): RouteDecision {
  const able = [...board.slots.values()].filter((other) => other.capabilities.includes(capability)).map((other) => `"${other.name}"`);
  const serves = slot.capabilities.length === 0 ? 'nothing yet' : slot.capabilities.join(', ');
  const instead = able.length === 0 ? 'no slot does' : `use ${able.slice(0, LISTED_NAMES).join(', ')}`;
  return {
    kind: 'refuse',
    code: 'model.unsupported',
    message: `Slot "${slot.name}" with model "${slot.spec.model.default}" serves ${serves}, not ${capability} ("${path}"): ${instead}`,
  };
}

function knownNames(board: RoutedView): string {
  const { names } = board;
  if (names.size === 0) return 'no slot is configured yet';
  const listed = names
    .keys()
    .take(LISTED_NAMES)
    .map((name) => `"${name}"`)
    .toArray()
    .join(', ');
  const more = names.size > LISTED_NAMES ? ` and ${names.size - LISTED_NAMES} more` : '';
  return `known models: ${listed}${more}`;
}

/** Asks the provider of the slot. A provider that throws fails only this request. */
export function planForward(
  provider: Pick<Provider, 'infer'> | undefined,
  request: InferRequest,
  { spec, capabilities, model }: Pick<RoutedSlot, 'spec' | 'capabilities' | 'model'>,
): ForwardPlan {
  const unsupported = { kind: 'refuse', code: 'model.unsupported', param: 'model' } as const;
  if (provider === undefined) return { ...unsupported, message: `This build cannot serve provider "${spec.provider}": use another model` };
  try {
    const plan = provider.infer(request, capabilities, { spec, model });
    return plan.kind === 'refuse' ? { ...unsupported, message: plan.message } : plan;
  } catch (error) {
    const message = `Provider "${spec.provider}" could not plan the request (${String(error)}): report this as a bug`;
    return { kind: 'refuse', code: 'server.internal', message, param: null };
  }
}

/** Value of `Host`. */
export function authorityOf({ host, port }: Endpoint): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
