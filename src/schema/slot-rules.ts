/**
 * Rules about combinations of keys that the schema of a slot cannot express. The program checks files and requests with `holds`; an API
 * server checks SlotSpecs with the equivalent `cel`. Rules that need the slot's name or provider are where those are resolved.
 */
import type { z } from 'zod';

type Table = Readonly<Record<string, unknown>>;

export interface SlotRule {
  /** Path of the table that the rule applies to; `*` stands for each entry of a list. */
  readonly at: readonly string[];
  /** Key of that table that the problem is reported for. */
  readonly key: string;
  /** Keys are written as `writeKeys` expects them. */
  readonly message: string;
  readonly holds: (table: Table) => boolean;
  /** The same check as a CEL expression about `self`, the table. */
  readonly cel: string;
}

const has = (table: Table, ...keys: readonly string[]): boolean => keys.some((key) => table[key] !== undefined);

export const SLOT_RULES: readonly SlotRule[] = [
  {
    at: ['storage'],
    key: 'claimName',
    message: 'Use "{claimName}" alone: "{hostPath}", "{size}" and "{className}" cannot be combined with an existing claim',
    holds: (storage) => !has(storage, 'claimName') || !has(storage, 'hostPath', 'size', 'className'),
    cel: '!has(self.claimName) || !(has(self.hostPath) || has(self.size) || has(self.className))',
  },
  {
    at: ['storage'],
    key: 'hostPath',
    message: 'Use "{hostPath}" alone: "{size}" and "{className}" apply only to a claim that is created for the slot',
    holds: (storage) => !has(storage, 'hostPath') || !has(storage, 'size', 'className'),
    cel: '!has(self.hostPath) || !(has(self.size) || has(self.className))',
  },
  {
    at: ['tolerations', '*'],
    key: 'value',
    message: 'Remove "{value}" or set "{operator}" to "Equal": "Exists" does not compare values',
    holds: (toleration) => toleration['operator'] !== 'Exists' || !has(toleration, 'value'),
    cel: "!has(self.operator) || self.operator != 'Exists' || !has(self.value)",
  },
  {
    at: ['tolerations', '*'],
    key: 'operator',
    message: 'Set "{operator}" to "Exists", or "{key}" to the key of a taint: "Equal" needs a key',
    holds: (toleration) => has(toleration, 'key') || toleration['operator'] === 'Exists',
    cel: "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
  },
  {
    at: ['tolerations', '*'],
    key: 'tolerationSeconds',
    message: 'Set "{effect}" to "NoExecute": "{tolerationSeconds}" applies only to that effect',
    holds: (toleration) => !has(toleration, 'tolerationSeconds') || toleration['effect'] === 'NoExecute',
    cel: "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
  },
];

/** Returns a refinement of the table under this key of a slot, or of each entry of the list there. It reports all rules that a valid table breaks. */
export function rulesOf(slotKey: string): (table: Table, context: z.RefinementCtx) => void {
  const rules = SLOT_RULES.filter(({ at }) => at[0] === slotKey);
  return (table, { issues, addIssue }) => {
    if (issues.length > 0) return;
    for (const { key, message, holds } of rules) if (!holds(table)) addIssue({ code: 'custom', path: [key], message });
  };
}
