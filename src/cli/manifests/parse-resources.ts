/**
 * Parses SlotSpec resources in YAML or JSON, in several documents or in lists. Objects of other kinds are skipped, since files for `kubectl apply` often hold
 * both. YAML is read as Kubernetes reads it, as version 1.1. Pure.
 */
import path from 'node:path';
import { LineCounter, type Document } from 'yaml';
import { isTable } from '../../schema/words/key-case.ts';
import { fromResource, SLOT_RESOURCE } from '../../schema/slot/slot-resource.ts';
import { parseSlot, SlotDocument } from '../../schema/slot/slot-spec.ts';
import type { SpecProblem } from '../../schema/slot/spec-problem.ts';
import { parseYaml } from './kubernetes-yaml.ts';
import type { Manifest, Manifests } from './manifest.ts';
import { metadataOf, ResourceKeys, unknownKeys, type Path } from './resource-keys.ts';

type Report = (message: string, path?: Path) => void;

/** Without strict validation, which most pipelines do not use, nobody would notice. */
const PRUNED = '; Kubernetes may drop it silently';

export function parseResources(text: string, file: string): Manifests {
  const lines = new LineCounter();
  const slots: Manifest[] = [];
  const problems: SpecProblem[] = [];
  const skipped: string[] = [];
  for (const document of parseYaml(text, lines)) {
    for (const error of document.errors) {
      const { line, col } = lines.linePos(error.pos[0]);
      problems.push({ path: [], message: `Fix the YAML: ${error.message.split('\n')[0] ?? ''}`, file, line, column: col });
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
    for (const problem of parsed.problems) {
      report(problem.message + (unknown.has(JSON.stringify(problem.path)) ? PRUNED : ''), ['spec', ...problem.path]);
    }
  }
  return isTable(document) ? { name, document, file, ...metadataOf(value) } : undefined;
}

/** Describes an object of another kind. Undefined if the object must be parsed as a slot, valid or not. */
function foreignName(value: unknown, file: string): string | undefined {
  if (!isTable(value)) return undefined;
  const { apiVersion, kind, metadata } = value;
  if (kind === undefined && /^kustomization\.ya?ml$/.test(path.basename(file))) return 'the kustomization';
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return undefined;
  if (kind === SLOT_RESOURCE.kind || apiVersion.startsWith(`${SLOT_RESOURCE.group}/`)) return undefined;
  const name = isTable(metadata) && typeof metadata['name'] === 'string' ? ` "${metadata['name']}"` : '';
  return `${kind}${name}`;
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
