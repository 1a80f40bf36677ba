/** What an upgrade of an engine does with each slot: which flags break, what is tried out, moved and undone. Pure. */
import { z } from 'zod';
import type { ProgramOptions, Provider } from '../../providers/provider.ts';
import { tableAt } from '../../schema/pod/kube-fields.ts';
import type { SlotSpec } from '../../schema/slot/slot-spec.ts';
import { SlotProgram } from '../../schema/slot/toolbox-images.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import { SlotName } from '../../schema/words/names.ts';
import type { SlotAnswer } from '../connect/api-answers.ts';

type Document = Readonly<Record<string, unknown>>;

export type Trial = { readonly kind: 'answered' } | { readonly kind: 'failed' | 'skipped'; readonly message: string };

export interface UpgradedSlot {
  readonly slot: SlotName;
  /** `refused`: the new build lacks a flag of the slot. `unknown`: its text has a mistake. */
  readonly flags: 'accepted' | 'refused' | 'unknown';
  readonly start: Trial['kind'];
  readonly result: 'can move' | 'breaks' | 'unchanged' | 'moved' | 'put back' | 'not moved';
  readonly message: string;
}

export interface CheckedSlot {
  readonly slot: SlotName;
  /** Why the slot cannot be asked about. */
  readonly problem?: string | undefined;
  /** Why the new build would refuse its arguments, with the successor of a flag. */
  readonly refused?: string | undefined;
  readonly trial: Trial;
  /** It runs the new build already. */
  readonly isThere?: boolean;
}

/** Why a build would refuse the arguments of a slot, and what replaces them; undefined if it takes all. */
export const refusedArguments = ({ keys, help }: Provider, spec: SlotSpec, options: ProgramOptions): string | undefined =>
  keys?.objection(spec, options) ?? help?.objection(spec.model.args, options);

/** A slot that could not be tried out may move: its own rollout puts it back if it fails. */
export function judgeUpgrade({ slot, problem, refused, trial, isThere }: CheckedSlot): UpgradedSlot {
  const start = trial.kind;
  const message = problem ?? refused ?? (trial.kind === 'answered' ? '' : trial.message);
  const flags = problem !== undefined ? 'unknown' : refused !== undefined ? 'refused' : 'accepted';
  if (flags !== 'accepted') return { slot, flags, start: 'skipped', result: flags === 'refused' ? 'breaks' : 'not moved', message };
  if (start === 'failed') return { slot, flags, start, result: 'breaks', message };
  return { slot, flags, start, result: isThere === true ? 'unchanged' : 'can move', message };
}

/** Tokens of context: the least with which every kind of model computes an answer. */
const TRIAL_CONTEXT = 512;

/**
 * The document of the smallest case of a slot (keys in camelCase): its model and arguments, with little context. It
 * unloads itself, in case nobody ends it.
 */
export function trialDocument(document: Document, spec: SlotSpec, program: SlotProgram): Document {
  const { backend, env, model } = document;
  const { memory: _memory, ...resources } = tableAt(document, 'resources');
  const { aliases: _aliases, presets: _presets, ...own } = tableAt({ model }, 'model');
  const { startTimeout } = tableAt(document, 'lifecycle');
  return {
    provider: spec.provider,
    ...(backend === undefined ? {} : { backend }),
    ...(env === undefined ? {} : { env }),
    program,
    model: { ...own, context: Math.min(spec.model.context ?? TRIAL_CONTEXT, TRIAL_CONTEXT) },
    ...(Object.keys(resources).length === 0 ? {} : { resources }),
    lifecycle: { idleTimeout: '1m', keepPrompts: false, ...(startTimeout === undefined ? {} : { startTimeout }) },
  };
}

/** Nothing was tried: the machine lacks memory or a device, or the model is not here. */
const NOT_TRIED: ReadonlySet<string> = new Set([
  'InsufficientMemory',
  'MemoryNotFree',
  'ModelMissing',
  'ModelNotPresent',
  'LicenseNotAccepted',
  'DeviceMissing',
  'DeviceTooSmall',
]);
/** One attempt says enough. */
const ENDED: ReadonlySet<string> = new Set(['Crashed', 'OutOfMemory', 'StartTimeout', 'StartFailed', 'Vanished', 'ProbeFailing']);

/** What became of a slot that is tried out; undefined while it is under way. */
export function judgeTrial({ status }: SlotAnswer): Trial | undefined {
  const conditionOf = (wanted: string) => status.conditions.find(({ type }) => type === wanted);
  const ready = conditionOf('Ready');
  if (ready?.status === 'True') return { kind: 'answered' };
  const stalled = conditionOf('Stalled');
  const found = stalled?.status === 'True' ? stalled : ready;
  if (found === undefined) return undefined;
  if (NOT_TRIED.has(found.reason)) return { kind: 'skipped', message: found.message };
  return found === stalled || ENDED.has(found.reason) ? { kind: 'failed', message: found.message } : undefined;
}

/** `<state>/upgrade-PROVIDER.json`: what the last upgrade has moved. */
export const UpgradeRecord = z.object({
  program: SlotProgram,
  moved: z.array(z.object({ slot: SlotName, before: SlotProgram.exactOptional(), after: SlotProgram })),
});
export type UpgradeRecord = z.output<typeof UpgradeRecord>;
type Moved = UpgradeRecord['moved'][number];

/** An upgrade to the same build goes on with the last one, as after a correction of the slot that it refused. */
export function recordMove(record: UpgradeRecord | undefined, program: SlotProgram, move: Moved): UpgradeRecord {
  const earlier = record !== undefined && isSameValue(record.program, program) ? record.moved : [];
  return { program, moved: [...earlier.filter(({ slot }) => slot !== move.slot), move] };
}

export const withoutMove = ({ program, moved }: UpgradeRecord, slot: SlotName): UpgradeRecord => ({
  program,
  moved: moved.filter((each) => each.slot !== slot),
});

/** `there`: what the slot names now. A slot that somebody else has edited since is left as it is. */
export function judgeUndo(move: Moved, there: Document | undefined): 'put back' | 'unchanged' | 'edited' | 'gone' {
  if (there === undefined) return 'gone';
  const present = there['program'];
  if (isSameValue(present, move.after)) return 'put back';
  return isSameValue(present, move.before) ? 'unchanged' : 'edited';
}

/** A merge patch that makes `program` of a slot this one, or removes it. */
export const programPatch = (program: SlotProgram | undefined): Document => ({
  program: program === undefined ? null : { image: program.image ?? null, path: program.path ?? null },
});
