/** SlotSpec resources in a text of YAML or JSON, several documents and lists included. What else stands there is a problem, with its place. Pure. */
import { LineCounter, parseAllDocuments, type Document } from 'yaml';
import { isTable } from '../spec/key-case.ts';
import { fromResource } from '../spec/slot-resource.ts';
import { parseSlot } from '../spec/slot-spec.ts';
import type { SpecProblem } from '../spec/spec-problem.ts';
import type { Manifest, Manifests } from './manifest.ts';

type Path = readonly (string | number)[];
type Report = (message: string, path?: Path) => void;

export function readResources(text: string, file: string): Manifests {
  const lines = new LineCounter();
  const slots: Manifest[] = [];
  const problems: SpecProblem[] = [];
  const documents = parseAllDocuments(text, { lineCounter: lines, uniqueKeys: true });
  for (const document of Array.isArray(documents) ? documents : []) {
    for (const error of document.errors) {
      const { line, col } = lines.linePos(error.pos[0]);
      problems.push({ path: [], message: `Write YAML that can be read: ${error.message.split('\n')[0] ?? ''}`, file, line, column: col });
    }
    if (document.errors.length > 0) continue;
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    if (value === null) continue;
    for (const [index, item] of itemsOf(value).entries()) {
      const base: Path = isList(value) ? ['items', index] : [];
      const report: Report = (message, path = []) => {
        problems.push({ path, message, file, ...placeOf(document, lines, [...base, ...path]) });
      };
      const slot = readResource(item, file, report);
      if (slot !== undefined) slots.push(slot);
    }
  }
  return { slots, problems };
}

function readResource(value: unknown, file: string, report: Report): Manifest | undefined {
  const resource = fromResource(value);
  if (!resource.ok) {
    for (const { message, path } of resource.problems) report(message, path);
    return undefined;
  }
  const { name, document, dropped } = resource;
  const parsed = parseSlot(name, document, 'camelCase');
  if (!parsed.ok) for (const problem of parsed.problems) report(problem.message, ['spec', ...problem.path]);
  return isTable(document) ? { name, document, file, dropped } : undefined;
}

function isList(value: unknown): value is { readonly items: readonly unknown[] } {
  return isTable(value) && typeof value['kind'] === 'string' && value['kind'].endsWith('List') && Array.isArray(value['items']);
}

function itemsOf(value: unknown): readonly unknown[] {
  return isList(value) ? value.items : [value];
}

/** Of the value at the path, or of the nearest place above it that the text has. */
function placeOf(document: Document, lines: LineCounter, path: Path): { readonly line: number; readonly column: number } {
  for (let length = path.length; length >= 0; length--) {
    const node: unknown = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
    const range: unknown = isTable(node) ? node['range'] : undefined;
    const start: unknown = Array.isArray(range) ? range[0] : undefined;
    if (typeof start !== 'number') continue;
    const { line, col } = lines.linePos(start);
    return { line, column: col };
  }
  return { line: 1, column: 1 };
}
