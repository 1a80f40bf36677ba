/**
 * Parses SlotSpec resources in YAML or JSON, in several documents or in lists. Other kinds are skipped, because files
 * for `kubectl apply` often contain both. YAML is read as kubectl and the API server read it: version 1.1, with the
 * octal numbers of 1.2 and without dates and base-60 numbers. Pure.
 */
import path from 'node:path';
import { LineCounter, parseAllDocuments, stringify, type Document, type ScalarTag, type Tags } from 'yaml';
import { z } from 'zod';
import { tableAt, valueAt } from '../../schema/pod/kube-fields.ts';
import { isTable } from '../../schema/words/key-case.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { fromResource, SLOT_RESOURCE } from '../../schema/slot/slot-resource.ts';
import { parseSlot, SlotDocument } from '../../schema/slot/slot-spec.ts';
import type { SpecProblem } from '../../schema/slot/spec-problem.ts';

export interface Manifest {
  readonly name: SlotName;
  /** Keys in camelCase. Possibly invalid. */
  readonly document: Readonly<Record<string, unknown>>;
  /** Shown in messages. */
  readonly file: string;
  /** Metadata that users write, without the name. */
  readonly metadata: ManifestMetadata;
  /** Keys of the resource that a conversion loses, except fields of the API server. */
  readonly dropped: readonly string[];
}

export interface ManifestMetadata {
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, unknown>>;
}

export interface Manifests {
  readonly slots: readonly Manifest[];
  /** Each has a file and, if known, line and column. */
  readonly problems: readonly SpecProblem[];
  /** One line for each object of another kind. */
  readonly skipped: readonly string[];
}

type Report = (message: string, path?: Path) => void;

/** Most pipelines use no strict validation. */
const PRUNED = '; Kubernetes may drop it silently';

export function parseResources(text: string, file: string): Manifests {
  const lines = new LineCounter();
  const slots: Manifest[] = [];
  const problems: SpecProblem[] = [];
  const skipped: string[] = [];
  for (const document of parseYaml(text, lines)) {
    for (const error of document.errors) {
      const { line, col } = lines.linePos(error.pos[0]);
      problems.push({ path: [], message: `Invalid YAML: ${error.message.split('\n')[0] ?? ''}`, file, line, column: col });
    }
    if (document.errors.length > 0) continue;
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    if (value === null) continue;
    for (const [index, item] of (isList(value) ? value.items : [value]).entries()) {
      const base: Path = isList(value) ? ['items', index] : [];
      const foreign = foreignName(item, file);
      if (foreign !== undefined) {
        skipped.push(`Skipped ${foreign} in "${file}": it is not a SlotSpec`);
        continue;
      }
      const report: Report = (message, place = []) => {
        problems.push({ path: place, message, file, style: 'camelCase', ...positionOf(document, lines, [...base, ...place]) });
      };
      const slot = parseResource(item, file, report);
      if (slot !== undefined) slots.push(slot);
    }
  }
  return { slots, problems, skipped };
}

function parseResource(value: unknown, file: string, report: Report): Manifest | undefined {
  const resource = fromResource(value);
  if (!resource.ok) {
    for (const { message, path: place } of resource.problems) report(message, place);
    return undefined;
  }
  const { name, document } = resource;
  for (const key of unknownKeys(ResourceKeys, value)) report(`Unknown key "${key.at(-1) ?? ''}"${PRUNED}`, key);
  const parsed = parseSlot(name, document, 'camelCase');
  if (!parsed.ok) {
    const unknown = new Set(unknownKeys(SlotDocument, document).map((key) => JSON.stringify(key)));
    for (const problem of parsed.problems)
      report(problem.message + (unknown.has(JSON.stringify(problem.path)) ? PRUNED : ''), ['spec', ...problem.path]);
  }
  return isTable(document) ? { name, document, file, ...metadataOf(value) } : undefined;
}

/** Describes an object of another kind. Undefined for an object to parse as a slot, valid or not. */
function foreignName(value: unknown, file: string): string | undefined {
  if (!isTable(value)) return undefined;
  const { apiVersion, kind, metadata } = value;
  if (kind === undefined && /^kustomization\.ya?ml$/.test(path.basename(file))) return 'the kustomization';
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return undefined;
  if (kind === SLOT_RESOURCE.kind || apiVersion.startsWith(`${SLOT_RESOURCE.group}/`)) return undefined;
  const name = valueAt(metadata, 'name');
  return typeof name === 'string' ? `${kind} "${name}"` : kind;
}

function isList(value: unknown): value is { readonly items: readonly unknown[] } {
  return isTable(value) && typeof value['kind'] === 'string' && value['kind'].endsWith('List') && Array.isArray(value['items']);
}

/** Returns the position of the value at the path, or of its nearest parent that is in the text. */
function positionOf(document: Document, lines: LineCounter, place: Path): { readonly line: number; readonly column: number } {
  for (let length = place.length; length >= 0; length--) {
    const node: unknown = length === 0 ? document.contents : document.getIn(place.slice(0, length), true);
    const range: unknown = isTable(node) ? node['range'] : undefined;
    const start: unknown = Array.isArray(range) ? range[0] : undefined;
    if (typeof start !== 'number') continue;
    const { line, col } = lines.linePos(start);
    return { line, column: col };
  }
  return { line: 1, column: 1 };
}

/** Kept by conversions. */
const KEPT = ['namespace', 'labels', 'annotations'] as const;
/** https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/ */
const SERVER_KEYS =
  'uid resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds managedFields selfLink'.split(' ');
/** Lost by conversions. */
const DROPPED = ['generateName', 'finalizers', 'ownerReferences'];
const METADATA = ['name', ...KEPT, ...SERVER_KEYS, ...DROPPED];
/** `kubectl apply` stores the whole text here. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

export type Path = readonly (string | number)[];

const any = z.unknown();

/** All keys outside the spec that Kubernetes knows. */
export const ResourceKeys = z.strictObject({
  apiVersion: any,
  kind: any,
  metadata: z.strictObject(Object.fromEntries(METADATA.map((key) => [key, any.optional()]))),
  spec: any,
  status: any.optional(),
});

/** Returns the paths of keys that are not in the schema. */
export function unknownKeys(schema: z.ZodType, value: unknown): readonly Path[] {
  const issues = schema.safeParse(value).error?.issues ?? [];
  return issues.flatMap((issue) => {
    const path = issue.path.filter((part) => typeof part !== 'symbol');
    return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [];
  });
}

export function metadataOf(resource: unknown): Pick<Manifest, 'metadata' | 'dropped'> {
  const found = tableAt(resource, 'metadata');
  const { [LAST_APPLIED]: _applied, ...annotations } = tableAt(found, 'annotations');
  const { namespace } = found;
  const tables = Object.entries({ labels: tableAt(found, 'labels'), annotations }).filter(([, table]) => Object.keys(table).length > 0);
  const metadata: ManifestMetadata = { ...(typeof namespace === 'string' ? { namespace } : {}), ...Object.fromEntries(tables) };
  return { metadata, dropped: DROPPED.filter((key) => key in found).map((key) => `metadata.${key}`) };
}

const OCTAL: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  identify: () => false,
  test: /^[-+]?0o[0-7]+$/,
  resolve: (text) => Number(text.replace(/^[-+]/, '')) * (text.startsWith('-') ? -1 : 1),
};

export function parseYaml(text: string, lineCounter: LineCounter): readonly Document[] {
  const customTags = (tags: Tags): Tags => [...tags.filter((tag) => !isUnknownToKubernetes(tag)), OCTAL];
  const documents = parseAllDocuments(text, { version: '1.1', uniqueKeys: true, customTags, lineCounter });
  return Array.isArray(documents) ? documents : [];
}

/** Quotes every string that YAML 1.1 or 1.2 could read as another type: "on", "12:30", "0o17". */
export const writeYaml = (value: unknown): string => stringify(value, { version: '1.1', customTags: (tags) => [...tags, OCTAL] });

function isUnknownToKubernetes(tag: Tags[number]): boolean {
  return typeof tag !== 'string' && (tag.tag === 'tag:yaml.org,2002:timestamp' || ('format' in tag && tag.format === 'TIME'));
}
