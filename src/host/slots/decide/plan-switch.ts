/** Plans what a switch to a profile does to each slot, or why it is impossible. Pure. */
import { createHash } from 'node:crypto';
import type { SlotName } from '../../../schema/words/names.ts';
import type { Profile, ProfileSlot } from '../../../schema/slot/profile-store.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import type { TextEdit } from '../../../schema/slot/slot-editor.ts';
import type { SlotSpec, SpecProblem } from '../../../schema/slot/slot-spec.ts';
import { patchSlotText } from './edit-slot.ts';
import { parseSlotText, type ParsedSlotText } from './parse-slot-text.ts';

/** A slot file, with its path for messages. */
export type FoundText = { readonly path: string } & (
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'unreadable'; readonly message: string; readonly line: number; readonly column: number }
);

export type FoundTexts = ReadonlyMap<SlotName, FoundText>;

export interface PlannedSwitch extends Omit<Profile, 'name'> {
  /** Empty if nothing changes or there are problems. */
  readonly edits: readonly TextEdit[];
}

type Step = { readonly slot: ProfileSlot; readonly edit: TextEdit | undefined } | { readonly problems: readonly SpecProblem[] };

/**
 * Leaves slots alone whose text means the same, and disables slots that the profile does not have. `restarted_at`
 * belongs to the slot: any other value would restart its workload.
 */
export function planSwitch(profile: FoundTexts, present: FoundTexts): PlannedSwitch {
  const names = [...new Set([...profile.keys(), ...present.keys()])].toSorted();
  const steps = names.map((name) => stepOf(name, profile.get(name), present.get(name)));
  const problems = steps.flatMap((step) => ('problems' in step ? step.problems : []));
  return {
    slots: steps.flatMap((step) => ('slot' in step ? step.slot : [])),
    problems,
    edits: problems.length > 0 ? [] : steps.flatMap((step) => ('edit' in step && step.edit !== undefined ? step.edit : [])),
    resourceVersion: versionOf(profile, present),
  };
}

function stepOf(name: SlotName, wanted: FoundText | undefined, found: FoundText | undefined): Step {
  if (found?.kind === 'unreadable') return { problems: [problemOf(found)] };
  const before = found === undefined ? undefined : parseSlotText(name, found.text, found.path);
  if (wanted !== undefined) return takeOver(name, wanted, { text: found?.text, parsed: before });
  if (found === undefined || before === undefined) return { problems: [] };
  if (!before.ok) return { problems: before.problems };
  const { document } = before;
  if (!before.spec.enabled) return { slot: { name, change: 'unchanged', before: document, after: document }, edit: undefined };
  const edited = patchSlotText(found.text, { enabled: false });
  if (!edited.ok) return { problems: edited.problems.map((problem) => ({ ...problem, file: found.path })) };
  const after = { ...document, enabled: false };
  return { slot: { name, change: 'disabled', before: document, after }, edit: { name, before: found.text, text: edited.text } };
}

interface PresentSlot {
  readonly text: string | undefined;
  readonly parsed: ParsedSlotText | undefined;
}

function takeOver(name: SlotName, wanted: FoundText, present: PresentSlot): Step {
  if (wanted.kind === 'unreadable') return { problems: [problemOf(wanted)] };
  const parsed = parseSlotText(name, wanted.text, wanted.path);
  if (!parsed.ok) return { problems: parsed.problems };
  const before = present.parsed?.document;
  if (present.parsed?.ok === true && isSameValue(withoutRestart(present.parsed.spec), withoutRestart(parsed.spec))) {
    return { slot: { name, change: 'unchanged', before, after: present.parsed.document }, edit: undefined };
  }
  const restartedAt = present.parsed?.ok === true ? present.parsed.spec.restartedAt : undefined;
  const edited =
    restartedAt === parsed.spec.restartedAt
      ? { ok: true as const, text: wanted.text }
      : patchSlotText(wanted.text, { restartedAt: restartedAt ?? null });
  if (!edited.ok) return { problems: edited.problems.map((problem) => ({ ...problem, file: wanted.path })) };
  const { restartedAt: _ofProfile, ...rest } = parsed.document;
  const after = restartedAt === undefined ? rest : { ...rest, restartedAt };
  const change = present.text === undefined ? 'created' : 'updated';
  return { slot: { name, change, before, after }, edit: { name, before: present.text, text: edited.text } };
}

const withoutRestart = (spec: SlotSpec): SlotSpec => ({ ...spec, restartedAt: undefined });

function problemOf({ path, message, line, column }: Extract<FoundText, { kind: 'unreadable' }>): SpecProblem {
  return { path: [], file: path, line, column, message };
}

/** Hash of all inputs of the plan. */
function versionOf(...texts: readonly FoundTexts[]): string {
  const hash = createHash('sha256');
  for (const found of texts) {
    const facts = [...found]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, file]) => [name, file.kind === 'text' ? file.text : null]);
    hash.update(JSON.stringify(facts));
  }
  return hash.digest('hex').slice(0, 16);
}
