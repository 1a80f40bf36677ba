/**
 * What prevents a workload from being started. All gates must be open; where several are shut, the most serious one
 * comes first:
 *
 *     stalled   somebody must act: a missing provider, device, image or model, a final failure, a crash loop
 *     memory    as above: the slot does not fit into memory
 *     waiting   time or the loop resolves it: back-off, an unanswered lookup
 *     pulling   a pull resolves it: the image or the model is not here yet
 *
 * Pure.
 */
import { quoteOutput, type Finding } from '../../../schema/words/failure.ts';
import type { Reason } from '../../../schema/status/reasons.ts';
import { nearestWord } from '../../../schema/words/nearest-word.ts';
import { formatSize } from '../../../schema/words/quantities.ts';
import { isBuiltInKind, PROVIDER_KIND_NAMES } from '../../../schema/slot/provider-kinds.ts';
import { HOST, type MemoryPool, type MemoryVerdict, type PoolBytes, type PoolId } from '../facts/memory-pools.ts';
import type { SlotView } from '../facts/view.ts';
import { CRASH_LIMIT, CRASH_WINDOW_MS, delayAfter, finalFailure, isCrashLoop, nextAttemptAt } from './backoff.ts';

const BUILT_IN = PROVIDER_KIND_NAMES.map((kind) => `"${kind}"`).join(', ');

export type Gate = Finding &
  (
    | { readonly kind: 'stalled' | 'memory' }
    | { readonly kind: 'waiting'; /** Monotonic milliseconds. */ readonly until?: number }
    | { readonly kind: 'pulling'; readonly what: 'image' | 'model' }
  );

/** Undefined without a message. */
function stalled(reason: Reason, message: string | undefined): Gate | undefined {
  return message === undefined ? undefined : { kind: 'stalled', reason, message };
}

const stalledBy = (finding: Finding | undefined): Gate | undefined => finding && stalled(finding.reason, finding.message);

function providerMissing({ providerKnown, spec, circumstances }: SlotView): Gate | undefined {
  if (providerKnown) return undefined;
  const meant = nearestWord(spec.provider, [...PROVIDER_KIND_NAMES, ...Object.keys(circumstances.providers)]);
  const hint = meant === undefined ? '' : `; did you mean "${meant}"?`;
  const fix = `declare it in "engines/${spec.provider}.toml" beside the slots, or use one of ${BUILT_IN}${hint}`;
  const message = isBuiltInKind(spec.provider)
    ? `Provider "${spec.provider}" is not part of this installation; use another one`
    : `There is no engine named "${spec.provider}"; ${fix}`;
  return stalled('ProviderMissing', message);
}

/** Pods of a cluster have no files of this machine, and follow what the cluster itself says. */
const notInCluster = ({ network, spec }: SlotView): Gate | undefined =>
  stalled(
    'RemoteInCluster',
    network === 'pods' && spec.remote !== undefined
      ? 'A cluster has no slots on other machines: declare it on a service that runs on a host, or remove the slot'
      : undefined,
  );

const deviceMissing = ({ backendMissing, devicesMissing }: SlotView): Gate | undefined => stalledBy(backendMissing ?? devicesMissing);

function imageUnknown({ imagesUsed, image, spec, network }: SlotView): Gate | undefined {
  if (!imagesUsed || image !== undefined) return undefined;
  const { provider, backend } = spec;
  if (spec.engine !== undefined)
    return stalled(
      'ImageUnknown',
      `The engine "${provider}" names no image for backend "${backend}"; set "image.${backend}" in "engines/${provider}.toml"`,
    );
  const fix =
    network === 'pods'
      ? `build it from "toolboxes" of the sources, push it to a registry of the nodes ("podman push --digestfile digest IMAGE"), and set "toolboxes.${provider}.${backend}" of the chart to this image and digest`
      : `build it with "svcctl toolbox build ${provider} ${backend}", or name one in "toolboxes.toml"`;
  return stalled('ImageUnknown', `No toolbox image is published for provider "${provider}" with backend "${backend}"; ${fix}`);
}

function modelMissing({ model }: SlotView): Gate | undefined {
  return stalled('ModelMissing', model?.kind === 'missing' ? model.message : undefined);
}

function licenseNotAccepted({ model }: SlotView): Gate | undefined {
  return stalled('LicenseNotAccepted', model?.kind === 'pullable' ? model.refusal : undefined);
}

/** Its server could not load the model. */
function modelOfAnother({ model, spec, circumstances }: SlotView): Gate | undefined {
  if (model?.kind !== 'present') return undefined;
  const { provider: owner } = model.facts;
  const isAccepted = circumstances.providers[spec.provider]?.accepts?.(model.facts) ?? (owner === undefined || owner === spec.provider);
  if (isAccepted) return undefined;
  const format = spec.engine === undefined ? '' : `, which loads "${spec.engine.models.format}"`;
  const fix =
    owner !== undefined && isBuiltInKind(owner) ? `set "provider" to "${owner}", or choose another model` : 'choose another model';
  const message = `"${spec.model.default}" is no model of provider "${spec.provider}"${format}; ${fix}`;
  return stalled('ModelUnusable', message);
}

/** A server would start, and answer with nonsense. */
const modelUnsuitable = ({ template }: SlotView): Gate | undefined => stalled('ModelUnsuitable', template?.objection);

const flagsRefused = ({ template }: SlotView): Gate | undefined => stalled('ArgumentsRefused', template?.refusedArguments);

/** What runs has been accepted by its program. */
function flagsNotKnown({ options, workloads, spec }: SlotView): Gate | undefined {
  if (options !== 'asking' || workloads.some(({ alive, standing }) => alive && standing === 'current')) return undefined;
  return { kind: 'waiting', reason: 'ProgramNotAsked', message: `The program of provider "${spec.provider}" has not listed its flags yet` };
}

/** With less, its server would fail at the first request. */
function deviceTooSmall({ template, largestDeviceBytes, spec }: SlotView): Gate | undefined {
  return stalledBy(tooSmallFor(spec.model.default, template?.leastDeviceBytes, largestDeviceBytes));
}

function templateBroken({ templateProblem, spec }: SlotView): Gate | undefined {
  if (templateProblem === undefined) return undefined;
  return stalled('InternalError', `Provider "${spec.provider}" cannot say how to run the slot: ${templateProblem}; report this as a bug`);
}

/** An attempt failed in a way that trying again does not change. */
export function failedFinally({ failures, imagePresent, model }: SlotView): Gate | undefined {
  return stalledBy(finalFailure(failures, { image: imagePresent, model: model?.kind === 'present' }));
}

/** A second start rules out a fluke. More would load the model again and again for the same answer. */
const NONSENSE_LIMIT = 2;

function answersNonsense({ failures, slot, leads }: SlotView): Gate | undefined {
  const answers = failures.filter(({ failure }) => failure.reason === 'ModelAnswersNonsense');
  const last = answers.at(-1);
  if (!leads || last === undefined || answers.length < NONSENSE_LIMIT) return undefined;
  const message = `${last.failure.message}; pull the model again or choose another model or backend, then run "svcctl slot restart ${slot.name}"`;
  return stalled('ModelAnswersNonsense', message);
}

/** How much of a log line a message quotes. */
const QUOTED_CHARACTERS = 200;
/** As programs write it that know none of their arguments, or no longer. */
const REFUSED_ARGUMENT = /\b(?:invalid|unknown|unrecogni[sz]ed|unexpected) (?:argument|option|flag)|^(?:error: )?remove the argument\b/i;

/** Starting it again would not change its answer. */
function argumentsRefused({ failures, leads }: SlotView): Gate | undefined {
  const last = failures.at(-1);
  const line = last?.kind === 'crash' ? last.logTail?.findLast(({ text }) => REFUSED_ARGUMENT.test(text)) : undefined;
  if (line === undefined || !leads) return undefined;
  const quoted = quoteOutput('last log line', line.text.slice(0, QUOTED_CHARACTERS));
  return stalled('StartFailed', `The server refuses its arguments; correct "model.args" of the slot; ${quoted}`);
}

/** A follower counts crashes only to have the count when it becomes the leader. */
export function crashLooping({ failures, slot, leads, network }: SlotView): Gate | undefined {
  if (!leads || !isCrashLoop(failures)) return undefined;
  const last = failures.at(-1);
  const line = last?.logTail?.findLast(({ text }) => text.trim() !== '')?.text.slice(0, QUOTED_CHARACTERS);
  const logged = line === undefined ? '' : `; ${quoteOutput('last log line', line)}`;
  const often = `${CRASH_LIMIT} times within ${CRASH_WINDOW_MS / 60_000} minutes`;
  const edit = network === 'pods' ? 'edit more of the slot than "replicas"' : 'edit the slot';
  const message = `Failed ${often}: ${last?.failure.message ?? ''}${logged}; ${edit} or run "svcctl slot restart ${slot.name}"`;
  return stalled('CrashLoop', message);
}

function backingOff({ failures, workloads, now }: SlotView): Gate | undefined {
  const until = nextAttemptAt(failures);
  const last = failures.at(-1);
  if (until === undefined || last === undefined || now >= until) return undefined;
  // A runtime that restarts workloads automatically has a back-off of its own.
  if (last.restartedInPlace === true && workloads.some(({ fact, alive }) => alive && fact.id === last.workload)) return undefined;
  return { kind: 'waiting', reason: last.failure.reason, message: last.failure.message, until };
}

/** Only a request is a new reason to start a slot that was unloaded; whatever else repeats, backs off. */
function startingAgain({ template, startLog, spec, lastAskedAt = 0, now, workloads, applying }: SlotView): Gate | undefined {
  if (applying !== undefined || workloads.some(({ fact }) => fact.revision === template?.revision)) return undefined;
  const starts = startLog.filter(({ revision }) => revision === template?.revision);
  const last = starts.at(-1);
  const mayUnload = spec.load === 'on-demand' || Number.isFinite(spec.lifecycle.idleTimeoutMs);
  if (last === undefined || (mayUnload && lastAskedAt >= last.at)) return undefined;
  const until = last.at + delayAfter(starts.length);
  if (now >= until) return undefined;
  const times = starts.length === 1 ? 'once' : `${starts.length} times`;
  const message = `The slot was started ${times} without an edit since, so the next start waits`;
  return { kind: 'waiting', reason: 'StartedBefore', message, until };
}

function modelNotLookedUp({ model }: SlotView): Gate | undefined {
  if (model !== undefined) return undefined;
  return { kind: 'waiting', reason: 'ModelNotLookedUp', message: 'The model store has not answered yet' };
}

function imageNotPresent({ image, imagePresent }: SlotView): Gate | undefined {
  if (image === undefined || imagePresent) return undefined;
  return { kind: 'pulling', what: 'image', reason: 'ImageNotPresent', message: `Image "${image.reference}" is not present` };
}

function modelNotPresent({ model, spec }: SlotView): Gate | undefined {
  if (model?.kind !== 'pullable') return undefined;
  const size = model.sizeBytes === undefined ? '' : ` (${formatSize(model.sizeBytes)})`;
  return {
    kind: 'pulling',
    what: 'model',
    reason: 'ModelNotPresent',
    message: `Model "${model.companion ?? spec.model.default}"${size} is not present`,
  };
}

const GATES: readonly ((view: SlotView) => Gate | undefined)[] = [
  providerMissing,
  notInCluster,
  deviceMissing,
  imageUnknown,
  modelMissing,
  licenseNotAccepted,
  modelOfAnother,
  modelUnsuitable,
  flagsRefused,
  deviceTooSmall,
  templateBroken,
  failedFinally,
  answersNonsense,
  argumentsRefused,
  crashLooping,
  backingOff,
  startingAgain,
  modelNotLookedUp,
  flagsNotKnown,
  imageNotPresent,
  modelNotPresent,
];

/** The most serious one first. */
export const findGates = (view: SlotView): readonly Gate[] => GATES.flatMap((find) => find(view) ?? []);

/** Undefined where the slot may have its memory. */
export function insufficientMemory(verdict: MemoryVerdict | undefined): Gate | undefined {
  if (verdict === undefined || verdict.admitted || verdict.budgetBytes === undefined) return undefined;
  return {
    kind: verdict.mayWait ? 'waiting' : 'memory',
    reason: 'InsufficientMemory',
    message: describeShortage(verdict, verdict.budgetBytes),
  };
}

function describeShortage(verdict: MemoryVerdict, budgetBytes: number): string {
  const { pool, neededBytes, othersBytes, aheadBytes, ahead, keptFor } = verdict;
  const where = pool === HOST ? '' : ` of the memory of device "${pool}"`;
  if (neededBytes > budgetBytes) return describeTooLarge(pool, neededBytes, budgetBytes);
  const names = ahead.map((name) => `"${name}"`).join(', ');
  const promised = ahead.length === 0 ? '' : `, and ${formatSize(aheadBytes)} are reserved for ${names}`;
  const others = othersBytes === 0 ? '' : `, of which other programs use ${formatSize(othersBytes)}`;
  const kept = keptFor === undefined ? '' : `; the rest is kept for "${keptFor}", whose turn comes first`;
  return `The slot needs ${formatSize(neededBytes)}${where} of a budget of ${formatSize(budgetBytes)}${others}${promised}${kept}`;
}

function describeTooLarge(pool: PoolId, neededBytes: number, budgetBytes: number): string {
  const where = pool === HOST ? '' : ` of the memory of device "${pool}"`;
  return `The slot can never fit: it needs ${formatSize(neededBytes)}${where}, and the whole budget is ${formatSize(budgetBytes)}; choose a smaller model, quantisation or context`;
}

/** For a slot that rests, and so claims no memory: a request could not load it. */
export function findTooLarge(needed: PoolBytes, pools: readonly MemoryPool[]): Gate | undefined {
  for (const { id, budgetBytes = Number.POSITIVE_INFINITY } of pools) {
    const bytes = needed[id] ?? 0;
    if (bytes > budgetBytes) return { kind: 'memory', reason: 'InsufficientMemory', message: describeTooLarge(id, bytes, budgetBytes) };
  }
  return undefined;
}

/** `leastBytes`: total required by the model. `largestBytes`: of the largest device. Undefined if unknown or enough. */
export function tooSmallFor(model: string, leastBytes: number | undefined, largestBytes: number | undefined): Finding | undefined {
  if (leastBytes === undefined || largestBytes === undefined || largestBytes >= leastBytes) return undefined;
  const message = `"${model}" needs a GPU with at least ${formatGigabytes(leastBytes)}, and the largest here has ${formatGigabytes(largestBytes)}; choose a smaller model or a larger GPU`;
  return { reason: 'DeviceTooSmall', message };
}

/** As GPUs are sold. */
const formatGigabytes = (bytes: number): string => `${Math.round(bytes / 1e8) / 10} GB`;
