/** The keys of a slot that the form offers, and how what a person enters becomes a document. The text has all of them. Pure. */
import { applyPatch, isTable, type Table } from './patch.ts';

interface FieldFacts {
  /** With dots. */
  readonly key: string;
  readonly label: string;
  readonly hint: string;
}

export type FormField =
  | (FieldFacts & { readonly kind: 'text' | 'number' | 'list' })
  | (FieldFacts & { readonly kind: 'switch'; readonly otherwise: boolean })
  | (FieldFacts & { readonly kind: 'choice'; readonly options: readonly string[] });

export const FORM_FIELDS: readonly FormField[] = [
  { key: 'enabled', label: 'Enabled', hint: 'Off: the model is unloaded', kind: 'switch', otherwise: true },
  { key: 'model.default', label: 'Model', hint: 'An id of the catalogue, a file in the model store, or "hf:owner/repo"', kind: 'text' },
  { key: 'model.aliases', label: 'Other names', hint: 'What clients may also send as "model", with commas between', kind: 'list' },
  { key: 'model.context', label: 'Context', hint: 'In tokens. Default: that of the model', kind: 'number' },
  {
    key: 'backend',
    label: 'Backend',
    hint: 'Default: what this machine runs best',
    kind: 'choice',
    options: ['vulkan', 'rocm', 'cuda', 'cpu', 'npu'],
  },
  { key: 'load', label: 'Load', hint: 'Default: always', kind: 'choice', options: ['always', 'on-demand'] },
  { key: 'priority', label: 'Priority', hint: 'Slots with a lower one give way first. Default: 0', kind: 'number' },
  { key: 'lifecycle.idle_timeout', label: 'Unload when idle for', hint: 'Such as "15m". Default: never', kind: 'text' },
  { key: 'resources.memory', label: 'Memory to reserve', hint: 'Such as "4Gi". Default: as estimated', kind: 'text' },
  { key: 'replicas', label: 'Replicas', hint: 'In clusters. Default: 1', kind: 'number' },
];

/** What the field shows of a document: empty where the document does not say it. */
export function readField({ key, kind, ...field }: FormField, document: Table): string {
  const value = key.split('.').reduce<unknown>((table, part) => (isTable(table) ? table[part] : undefined), document);
  if (kind === 'switch') return (typeof value === 'boolean' ? value : 'otherwise' in field && field.otherwise) ? 'true' : 'false';
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** The document with what a person entered; an empty field removes its key. What cannot be read stays text, so that the service says what is wrong with it. */
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

/** A table that has lost its last key goes with it. */
function withoutEmpty(document: Table, key: string): Table {
  const [first = ''] = key.split('.');
  const table = document[first];
  return isTable(table) && Object.keys(table).length === 0 ? applyPatch(document, { [first]: null }) : document;
}
