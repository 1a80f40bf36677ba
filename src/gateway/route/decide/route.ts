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
 *   slot.loading               reconciler/decide/rules/admission.ts: model, image or engine cannot be fetched now
 *                              gateway/traffic/parking.ts: parked for too long, or the service is stopping
 *   slot.queue_full (429)      gateway/traffic/parking.ts: too many requests wait already, or did all the time
 *   limit.* (429)              gateway/traffic/decide/caller-account.ts: the caller has used what it may use
 *   server.overloaded          gateway/body/kept-body.ts and other readers of bodies; api/server/http-server.ts
 *   server.starting            auth/check-token.ts: tokens are not read yet; api/manage/: before the first pass
 *   server.stalled             api/manage/: health routes and routes of one slot, never an inference request
 *
 * While the runtime cannot be reached, the previous admission stays (reconciler/decide/hold-up.ts). A
 * replica that is not the leader takes over what the leader has given up (cluster/leadership/decide/follow-leader.ts).
 * Errors of an upstream keep their own status.
 */
import type { Admission, RoutedBoard, RoutedSlot, RoutedView } from '../../../reconciler/board.ts';
import type { ErrorCode } from '../../../schema/words/error-codes.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import type { Capability, ChatAbilities } from '../../../schema/slot/provider-kinds.ts';
import { DEFAULT_SLOT_OF_CAPABILITY, type InferencePath } from './inference-paths.ts';
import type { FoundPreset } from '../../../schema/slot/presets.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';
import type { Endpoint, InferPlan, InferRequest, Provider, ProviderRegistry } from '../../../providers/provider.ts';
import type { BodyScan } from '../../body/body-scan.ts';

export type RouteDecision =
  | { readonly kind: 'slot'; readonly slot: RoutedSlot }
  | Refusal
  /** No pass has finished yet, so nothing is known and nothing is refused. */
  | { readonly kind: 'unknown' };

export interface Refusal {
  readonly kind: 'refuse';
  readonly code: ErrorCode;
  readonly message: string;
  readonly param?: string;
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
export function route(capability: Capability, path: string, asked: string | undefined, board: RoutedView): RouteDecision {
  if (board.version === 0) return { kind: 'unknown' };
  const model = nameMeant(capability, asked, board);
  const candidates = board.names.get(model ?? DEFAULT_SLOT_OF_CAPABILITY[capability]);
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
  if (best === undefined) return unknownName(capability, path, model, board);
  if (bestRank >= INCAPABLE) return incapable(best, capability, path, board);
  return { kind: 'slot', slot: best };
}

/**
 * The same for a path of the server itself, whatever else the slot serves. `models`: those to which the caller is
 * limited; `board` has no others. Default: it is not.
 */
export function routeRequest(path: InferencePath, asked: string | undefined, board: RoutedView, models?: readonly string[]): RouteDecision {
  const decision = findSlot(path, asked, board);
  if (decision.kind !== 'refuse' || decision.code !== 'model.not_found' || models === undefined) return decision;
  const name = shorten(asked ?? DEFAULT_SLOT_OF_CAPABILITY[path.capability], NAME_LENGTH_LIMIT);
  const message = `The caller may not use "${name}", because its limits name others ("models"); ${knownNames(path.capability, board)}`;
  return { ...decision, code: 'limit.model', message };
}

function findSlot({ capability, path, native }: InferencePath, asked: string | undefined, board: RoutedView): RouteDecision {
  if (native !== true) return route(capability, path, asked, board);
  const name = asked ?? DEFAULT_SLOT_OF_CAPABILITY[capability];
  const [slot] = slotsOfName(name, board);
  if (slot !== undefined) return { kind: 'slot', slot };
  return board.version === 0 ? { kind: 'unknown' } : unknownName(capability, path, name, board);
}

/**
 * The specification pins images to `img`: a name that is not one of another image slot means it, such as "dall-e-3" or
 * that of a chat model (ADR 0136). Undefined: the default slot.
 */
function nameMeant(capability: Capability, model: string | undefined, { names, slots, refused }: RoutedView): string | undefined {
  if (capability !== 'image' || model === undefined) return model;
  const pinned = DEFAULT_SLOT_OF_CAPABILITY.image;
  const isImageSlot = (name: SlotName): boolean => {
    const slot = slots.get(name);
    return slot !== undefined && (slot.capabilities.includes('image') || slot.spec.provider === 'image');
  };
  if (names.get(model)?.some((name) => isImageSlot(name)) === true) return model;
  const isRefused = refused.keys().some((name) => name === model || name === pinned);
  return names.has(pinned) || isRefused ? undefined : model;
}

/** The slots of a name, in the order in which requests prefer them. Disabled ones only if there is no other. */
export function slotsOfName<Slot extends RoutedSlot>(name: string, { names, slots }: NamedSlots<Slot>): readonly Slot[] {
  const all = (names.get(name) ?? []).flatMap((each) => slots.get(each) ?? []);
  const enabled = all.filter(isEnabled);
  return (enabled.length > 0 ? enabled : all).toSorted((a, b) => RANKS[a.admission.kind] - RANKS[b.admission.kind]);
}

export const isEnabled = ({ admission }: RoutedSlot): boolean => admission.kind !== 'refuse' || admission.code !== 'slot.disabled';

type NamedSlots<Slot> = Pick<RoutedView, 'names'> & { readonly slots: ReadonlyMap<SlotName, Slot> };

function unknownName(capability: Capability, path: string, model: string | undefined, board: RoutedView): RouteDecision {
  const name = model ?? DEFAULT_SLOT_OF_CAPABILITY[capability];
  const [, problems] = board.refused.entries().find(([slot]) => slot === name) ?? [];
  if (problems !== undefined) {
    const reason = problems[0]?.message ?? 'it is invalid';
    return { kind: 'refuse', code: 'slot.stalled', message: `The document of slot "${name}" is invalid: ${reason}` };
  }
  const known = knownNames(capability, board);
  const message =
    model === undefined
      ? `The default slot "${name}" of "${path}" does not exist: send "model"; ${known}`
      : `Model "${shorten(model, NAME_LENGTH_LIMIT)}" does not exist; ${known}`;
  return { kind: 'refuse', code: 'model.not_found', message };
}

function incapable(slot: RoutedSlot, capability: Capability, path: string, board: RoutedView): RouteDecision {
  const serves = slot.capabilities.length === 0 ? 'nothing yet' : slot.capabilities.join(', ');
  const instead = useOneOf(board, (other) => other.capabilities.includes(capability)) ?? 'no slot does';
  const message = `${describe(slot)} serves ${serves}, not ${capability} ("${path}"): ${instead}`;
  return { kind: 'refuse', code: 'model.unsupported', message };
}

const MEDIA = { vision: ['model.no_vision', 'images'], audio: ['model.no_audio', 'audio'] } as const;

interface AskedSlot {
  readonly path: Pick<InferencePath, 'path' | 'capability'>;
  readonly slot: RoutedSlot;
  /** The preset that the request names. Default: none. */
  readonly found?: FoundPreset | undefined;
}

/** Refuses what the model is known not to do, before the request waits for it or is sent. */
export function refuseUse(
  { media, dimensions }: Pick<BodyScan, 'media' | 'dimensions'>,
  { path: { path, capability }, slot, found }: AskedSlot,
  board: RoutedView,
  providers: ProviderRegistry,
): Refusal | undefined {
  const unable = found && refuseAdapter(found, path, providers[slot.spec.provider]);
  if (unable !== undefined) return unable;
  for (const [ability, param] of media ?? []) {
    if (chatAbilities(providers, slot)[ability] !== false) continue;
    const [code, what] = MEDIA[ability];
    const instead = useOneOf(board, (other) => chatAbilities(providers, other)[ability] === true) ?? 'send text only';
    return { kind: 'refuse', code, message: `${describe(slot)} takes no ${what}: ${instead}`, param };
  }
  if (dimensions === undefined || capability !== 'embedding' || slot.model === undefined) return undefined;
  const own = providers[slot.spec.provider]?.models.describe?.(slot.model.contents ?? {}).dimensions;
  if (dimensions === own) return undefined;
  const length = own === undefined ? '' : `, which have ${own}`;
  const message = `${describe(slot)} cannot change the length of its embeddings${length}: leave out "dimensions"`;
  return { kind: 'refuse', code: 'model.unsupported', message, param: 'dimensions' };
}

/** A server that knows no adapters on this path would answer without it. */
function refuseAdapter({ name, preset }: FoundPreset, path: string, provider: Pick<Provider, 'keys'> | undefined): Refusal | undefined {
  const paths = [...(provider?.keys?.adapterPaths ?? [])];
  if (preset.isAdapter !== true || paths.includes(path)) return undefined;
  const able = paths.map((each) => `"${each}"`).join(', ');
  const message = `The adapter "${name}" answers ${able}, not "${path}": send the request there, or the name of the slot`;
  return { kind: 'refuse', code: 'model.unsupported', message, param: 'model' };
}

const describe = ({ name, spec }: RoutedSlot): string => `Slot "${name}" with model "${spec.model.default}"`;

function useOneOf({ slots }: RoutedView, isAble: (slot: RoutedSlot) => boolean): string | undefined {
  const able = [...slots.values()].filter(isAble).map(({ name }) => `"${name}"`);
  return able.length === 0 ? undefined : `use ${able.slice(0, LISTED_NAMES).join(', ')}`;
}

/** Unknown for a provider that throws, and while the model is not known. */
export function chatAbilities(providers: ProviderRegistry, { name, spec, model, capabilities }: RoutedSlot): ChatAbilities {
  if (model === undefined || !capabilities.includes('chat')) return {};
  try {
    return providers[spec.provider]?.abilities?.(name, spec, model) ?? {};
  } catch {
    return {};
  }
}

function knownNames(capability: Capability, { names, slots }: RoutedView): string {
  const able = names
    .entries()
    .filter(([, serving]) => serving.some((name) => slots.get(name)?.capabilities.includes(capability)))
    .map(([name]) => `"${name}"`)
    .toArray();
  if (able.length === 0) return names.size === 0 ? 'no slot is configured yet' : `no slot serves ${capability}`;
  const more = able.length > LISTED_NAMES ? ` and ${able.length - LISTED_NAMES} more` : '';
  return `models for ${capability}: ${able.slice(0, LISTED_NAMES).join(', ')}${more}`;
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

/** What the server gets instead of the method and path of the request, and of the model in its body. */
export interface DirectRequest {
  readonly method: string;
  readonly model: string | undefined;
  /** Body and answer are passed on unchanged then. Default: as the provider says. */
  readonly target?: string;
}

export const askedOf = ({ path, canonical = path, capability }: InferencePath): InferRequest => ({
  method: 'POST',
  path: canonical,
  capability,
});

/** Plans a request for a slot, also one that its provider does not know. */
export function planRequest(
  { path, direct }: { readonly path: InferencePath; readonly direct?: DirectRequest | undefined },
  slot: RoutedSlot,
  { providers, board }: { readonly providers: ProviderRegistry; readonly board: RoutedBoard },
): ForwardPlan {
  if (direct?.target !== undefined) return { kind: 'forward', path: direct.target };
  if (path.native !== true) return planForward(providers[slot.spec.provider], askedOf(path), slot);
  const pathAt = ({ spec }: RoutedSlot): string | undefined => providers[spec.provider]?.nativePaths?.[path.path];
  const own = pathAt(slot);
  if (own !== undefined) return { kind: 'forward', path: own };
  const instead = useOneOf(board.current(), (other) => pathAt(other) !== undefined) ?? 'no slot has it';
  const message = `${describe(slot)} has a server without "${path.path}": ${instead}`;
  return { kind: 'refuse', code: 'model.unsupported', message, param: 'model' };
}

/** Value of `Host`. */
export const authorityOf = ({ host, port }: Endpoint): string => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`);
