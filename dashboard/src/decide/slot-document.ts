/** The document of a slot: the keys that the form offers, and the line of a key in TOML text. Pure. */
import { applyPatch, isTable, type Table } from './patch.ts';

interface FieldFacts {
  /** Dotted: `model.default`. */
  readonly key: string;
  readonly label: string;
  readonly hint: string;
}

export type FormField =
  | (FieldFacts & { readonly kind: 'text' | 'number' | 'list' })
  | (FieldFacts & { readonly kind: 'switch'; readonly otherwise: boolean })
  | (FieldFacts & { readonly kind: 'choice'; readonly options: readonly string[] });

export const FORM_FIELDS: readonly FormField[] = [
  { key: 'enabled', label: 'Enabled', hint: 'Off unloads the model', kind: 'switch', otherwise: true },
  { key: 'model.default', label: 'Model', hint: 'Catalogue ID, file in the model store, or "hf:owner/repo"', kind: 'text' },
  { key: 'model.aliases', label: 'Aliases', hint: 'Other model names that clients may send, separated by commas', kind: 'list' },
  { key: 'model.context', label: 'Context length', hint: 'Tokens. Default: set by the model', kind: 'number' },
  {
    key: 'backend',
    label: 'Backend',
    hint: 'Default: best available',
    kind: 'choice',
    options: ['vulkan', 'rocm', 'cuda', 'cpu', 'npu'],
  },
  { key: 'load', label: 'Load', hint: 'Default: always', kind: 'choice', options: ['always', 'on-demand'] },
  { key: 'priority', label: 'Priority', hint: 'Slots with lower priority are unloaded first. Default: 0', kind: 'number' },
  {
    key: 'lifecycle.idle_timeout',
    label: 'Idle timeout',
    hint: 'Time without requests before unloading, e.g. "15m". Default: never',
    kind: 'text',
  },
  { key: 'resources.memory', label: 'Memory reservation', hint: 'Size, e.g. "4Gi". Default: estimated', kind: 'text' },
  { key: 'replicas', label: 'Replicas', hint: 'Clusters only. Default: 1', kind: 'number' },
];

/** Empty if the document does not set the key. */
export function readField({ key, kind, ...field }: FormField, document: Table): string {
  const value = key.split('.').reduce<unknown>((table, part) => (isTable(table) ? table[part] : undefined), document);
  if (kind === 'switch') return (typeof value === 'boolean' ? value : 'otherwise' in field && field.otherwise) ? 'true' : 'false';
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** An empty field removes its key. Invalid input stays a string, so that the service explains the error. */
export function writeField({ key, kind }: FormField, entered: string, document: Table): Table {
  const value = valueOf(kind, entered.trim());
  const patch = key.split('.').reduceRight<unknown>((inner, part) => ({ [part]: inner }), value);
  return isTable(patch) ? withoutEmpty(applyPatch(document, patch), key) : document;
}

function valueOf(kind: FormField['kind'], entered: string): unknown {
  if (kind === 'switch') return entered === 'true';
  if (entered === '') return null;
  if (kind === 'number') return /^-?\d+$/.test(entered) ? Number(entered) : entered;
  if (kind !== 'list') return entered;
  return entered
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** Removes the table of `key` if it has become empty. */
function withoutEmpty(document: Table, key: string): Table {
  const [first = ''] = key.split('.');
  const table = document[first];
  return isTable(table) && Object.keys(table).length === 0 ? applyPatch(document, { [first]: null }) : document;
}

/** Lines count from 1. Falls back to the line of the innermost enclosing table, or to 1. */
export function lineOfKey(text: string, key: string): number {
  const wanted = key.split('.');
  let table: readonly string[] = [];
  let best = { depth: 0, line: 1 };
  for (const [index, line] of text.split('\n').entries()) {
    const header = /^\s*\[\[?\s*([^\]#]+?)\s*\]\]?/.exec(line)?.[1];
    if (header !== undefined) table = parts(header);
    const own = header === undefined ? parts(/^\s*([A-Za-z0-9_\-."' ]+?)\s*=/.exec(line)?.[1] ?? '') : [];
    if (header === undefined && own.length === 0) continue;
    const depth = sharedDepth([...table, ...own], wanted);
    if (depth > best.depth) best = { depth, line: index + 1 };
  }
  return best.line;
}

/** The length of `path` if it is a prefix of `wanted`; otherwise 0. */
function sharedDepth(path: readonly string[], wanted: readonly string[]): number {
  return path.length <= wanted.length && path.every((part, index) => part === wanted[index]) ? path.length : 0;
}

function parts(dotted: string): readonly string[] {
  return dotted === '' ? [] : dotted.split('.').map((part) => part.trim().replace(/^(["'])(.*)\1$/, '$2'));
}
