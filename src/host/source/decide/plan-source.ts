/** Which files change so that the configuration is what a commit declares, and which differ. Pure. */
import type { SourceStatus } from '../../../schema/status/config-source.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import { patchSlotText } from '../../slots/decide/edit-slot.ts';
import { parseSlotText } from '../../slots/decide/parse-slot-text.ts';
import { slotOf } from './judge-tree.ts';

/** What the source has written. */
export interface OwnedFile {
  readonly text: string;
  /** The commit that brought this text. */
  readonly commit: string;
}

export type Owned = ReadonlyMap<string, OwnedFile>;

/** Undefined: to be removed, or absent. */
export interface FileEdit {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

export interface PlanInput {
  /** What the commit in force, or the one to apply, declares: path → text. */
  readonly declared: ReadonlyMap<string, string>;
  readonly owned: Owned;
  /** What is on disk at all these paths; null: an entry that cannot be read as a text. */
  readonly local: ReadonlyMap<string, string | null>;
  /** Local edits are put back, also where the commit changes nothing. */
  readonly heals: boolean;
}

export interface PlannedSource {
  readonly edits: readonly FileEdit[];
  /** Entries in the place of files. */
  readonly blocked: readonly string[];
}

/**
 * 1. A file that the commit changes gets its text, whatever is there. 2. A local edit of another one stays, unless
 * `heals`. 3. A file that the commit no longer has is removed if the source has written it. 4. All others stay.
 */
export function planSource({ declared, owned, local, heals }: PlanInput): PlannedSource {
  const edits: FileEdit[] = [];
  const blocked: string[] = [];
  for (const path of new Set([...declared.keys(), ...owned.keys()])) {
    const [wanted, known, present] = [declared.get(path), owned.get(path)?.text, local.get(path)];
    const isChanged = wanted !== known;
    if (wanted === present || (!isChanged && !heals) || (!isChanged && meansTheSame(path, wanted, present))) continue;
    if (present === null) blocked.push(path);
    else edits.push({ path, before: present, after: wanted === undefined ? undefined : keepRestart(path, wanted, present) });
  }
  return { edits, blocked };
}

type FileState = Pick<SourceStatus['files'][number], 'path' | 'state' | 'change' | 'slot' | 'revision'>;

/** `next`: what the newest commit declares, if it is known and not applied. */
export function describeFiles(owned: Owned, local: PlanInput['local'], next: PlanInput['declared'] | undefined): readonly FileState[] {
  const paths = new Set([...owned.keys(), ...(next?.keys() ?? [])]);
  return [...paths].toSorted().map((path) => {
    const known = owned.get(path);
    const present = local.get(path);
    const isPending = next !== undefined && next.get(path) !== known?.text;
    const isEdited = known !== undefined && present !== undefined && !meansTheSame(path, known.text, present);
    const change = isPending ? 'pending' : isEdited ? 'edited' : known !== undefined && present === undefined ? 'deleted' : null;
    return { path, slot: slotOf(path) ?? null, state: change === null ? 'Synced' : 'OutOfSync', change, revision: known?.commit ?? null };
  });
}

/** Comments, and a restart by `svcctl slot restart`, are no edits of a slot. */
function meansTheSame(path: string, left: string | null | undefined, right: string | null | undefined): boolean {
  if (left === right) return true;
  const [one, other] = [specOf(path, left), specOf(path, right)];
  return one !== undefined && other !== undefined && isSameValue({ ...one, restartedAt: undefined }, { ...other, restartedAt: undefined });
}

function specOf(path: string, text: string | null | undefined) {
  const slot = slotOf(path);
  const parsed = slot === undefined || typeof text !== 'string' ? undefined : parseSlotText(slot, text, path);
  return parsed?.ok === true ? parsed.spec : undefined;
}

/** Another value of `restarted_at`, or none, would restart the server once more. */
function keepRestart(path: string, wanted: string, present: string | undefined): string {
  const restartedAt = specOf(path, present)?.restartedAt;
  if (restartedAt === undefined || specOf(path, wanted)?.restartedAt === restartedAt) return wanted;
  const edited = patchSlotText(wanted, { restartedAt });
  return edited.ok ? edited.text : wanted;
}

/** What the source owns once the commit is in force. */
export const ownedAfter = (declared: PlanInput['declared'], owned: Owned, commit: string): Owned =>
  new Map(
    [...declared].map(([path, text]) => {
      const known = owned.get(path);
      return [path, known?.text === text ? known : { text, commit }];
    }),
  );
