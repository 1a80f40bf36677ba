/** Parses a SlotSpec resource into a desired slot, or into everything that is wrong with it. Pure. */
import type { KubeObject } from '../../client/ports.ts';
import type { DesiredSlot } from '../../../reconciler/ports.ts';
import type { SlotName } from '../../../schema/names.ts';
import { isSameValue } from '../../../schema/same-value.ts';
import { parseSlot, type SlotSpec, type SpecProblem } from '../../../schema/slot-spec.ts';

/** What is kept of a resource for the next time. */
export interface ParsedResource {
  readonly name: SlotName;
  readonly uid: string | undefined;
  readonly generation: number;
  readonly document: unknown;
  /** Problems of the present document. */
  readonly problems: readonly SpecProblem[];
  /** With the last valid spec of this object; undefined if it never had one. */
  readonly slot: DesiredSlot | undefined;
}

/** Further problems are counted, since nobody reads that many. */
const MOST_PROBLEMS = 50;

/** Whether the desired state may have changed: another object of this name, an edited spec, or a deletion. A published status changes neither. */
export function isDesiredChange(before: KubeObject | undefined, { metadata }: KubeObject): boolean {
  const { uid, generation, deletionTimestamp } = before?.metadata ?? {};
  // The server increments the generation with each change of the spec, and only then.
  const isSameSpec = generation !== undefined && generation === metadata.generation;
  return !isSameSpec || uid !== metadata.uid || deletionTimestamp !== metadata.deletionTimestamp;
}

/** Returns `before` itself if the desired state is unchanged. */
export function parseSlotResource(name: SlotName, object: KubeObject, before: ParsedResource | undefined): ParsedResource {
  const { uid, generation = 1 } = object.metadata;
  const known = before?.uid === uid ? before : undefined;
  if (known?.generation === generation && object.metadata.generation !== undefined) return known;
  const document = object['spec'];
  const isSameDocument = known !== undefined && isSameValue(known.document, document);
  if (isSameDocument && known.generation === generation) return known;
  const parsed = isSameDocument ? undefined : parseSlot(name, document, 'camelCase');
  const spec: SlotSpec | undefined = parsed?.ok === true ? parsed.spec : known?.slot?.spec;
  const problems = parsed === undefined ? (known?.problems ?? []) : parsed.ok ? [] : limitProblems(parsed.problems);
  return { name, uid, generation, document, problems, slot: spec === undefined ? undefined : { name, spec, generation, problems } };
}

/** Names keys as the resource does. */
function limitProblems(problems: readonly SpecProblem[]): readonly SpecProblem[] {
  const listed = problems.slice(0, MOST_PROBLEMS);
  const more = problems.length - listed.length;
  const all = more === 0 ? listed : [...listed, { path: [], message: `There are ${more} more problems` }];
  return all.map((problem) => ({ ...problem, style: 'camelCase' }));
}
