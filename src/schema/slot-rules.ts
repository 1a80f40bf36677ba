/**
 * What keys of a slot may not be combined, beyond what each may be alone. One table for both worlds: the program checks files and requests with
 * `holds`, an API server checks SlotSpecs with `cel`. Rules that need the slot's name or provider stand where those are resolved.
 */
import { isTable, renameKey } from './key-case.ts';
import type { KeyStyle, SpecProblem } from './spec-problem.ts';

type Table = Readonly<Record<string, unknown>>;

export interface SlotRule {
  /** Where the table stands that the rule is about; `*` is each entry of a list. */
  readonly at: readonly string[];
  /** The key of that table to blame. */
  readonly key: string;
  /** With keys in camelCase between `{` and `}`. */
  readonly message: string;
  readonly holds: (table: Table) => boolean;
  /** `self` is that table. */
  readonly cel: string;
}

const has = (table: Table, ...keys: readonly string[]): boolean => keys.some((key) => table[key] !== undefined);

export const SLOT_RULES: readonly SlotRule[] = [
  {
    at: ['storage'],
    key: 'claimName',
    message:
      'Use "{claimName}" alone: "{hostPath}", "{size}" and "{className}" are for models that lie elsewhere or in a claim of the slot’s own',
    holds: (storage) => !has(storage, 'claimName') || !has(storage, 'hostPath', 'size', 'className'),
    cel: '!has(self.claimName) || !(has(self.hostPath) || has(self.size) || has(self.className))',
  },
  {
    at: ['storage'],
    key: 'hostPath',
    message: 'Use "{hostPath}" alone: "{size}" and "{className}" are for a claim of the slot’s own',
    holds: (storage) => !has(storage, 'hostPath') || !has(storage, 'size', 'className'),
    cel: '!has(self.hostPath) || !(has(self.size) || has(self.className))',
  },
  {
    at: ['tolerations', '*'],
    key: 'value',
    message: 'Leave "{value}" out, or set "{operator}" to "Equal": "Exists" compares no value',
    holds: (toleration) => toleration['operator'] !== 'Exists' || !has(toleration, 'value'),
    cel: "!has(self.operator) || self.operator != 'Exists' || !has(self.value)",
  },
  {
    at: ['tolerations', '*'],
    key: 'operator',
    message: 'Set "{operator}" to "Exists", or "{key}" to the key of a taint: without a key there is nothing to compare',
    holds: (toleration) => has(toleration, 'key') || toleration['operator'] === 'Exists',
    cel: "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
  },
  {
    at: ['tolerations', '*'],
    key: 'tolerationSeconds',
    message: 'Set "{effect}" to "NoExecute": only that is tolerated for a time',
    holds: (toleration) => !has(toleration, 'tolerationSeconds') || toleration['effect'] === 'NoExecute',
    cel: "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
  },
];

/** Every rule that a document with keys in camelCase breaks. Pure. */
export function brokenRules(document: unknown, style: KeyStyle): readonly SpecProblem[] {
  return SLOT_RULES.flatMap((rule) =>
    tablesAt(document, rule.at, [])
      .filter(({ table }) => !rule.holds(table))
      .map(({ path }) => ({ path: [...path, rule.key], message: ruleMessage(rule, style) })),
  );
}

/** Pure. */
export function ruleMessage(rule: SlotRule, style: KeyStyle): string {
  return rule.message.replace(/\{([A-Za-z]+)\}/g, (_match, key: string) => (style === 'snake_case' ? renameKey(key) : key));
}

interface Place {
  readonly path: SpecProblem['path'];
  readonly table: Table;
}

function tablesAt(value: unknown, at: readonly string[], path: SpecProblem['path']): readonly Place[] {
  const [head, ...rest] = at;
  if (head === '*') return Array.isArray(value) ? value.flatMap((entry, index) => tablesAt(entry, rest, [...path, index])) : [];
  if (!isTable(value)) return [];
  return head === undefined ? [{ path, table: value }] : tablesAt(value[head], rest, [...path, head]);
}
