/**
 * Rules about combinations of keys that the schema of a slot cannot express. The program checks files and requests with
 * `holds`; an API server checks SlotSpecs with the equivalent `cel`. Rules that need the slot's name or provider are
 * where those are resolved.
 */
import { z } from 'zod';
import { isTable } from '../words/key-case.ts';
import { optional } from '../pod/kube-fields.ts';
import { presetNames, type Preset } from './presets.ts';
import { REMOTE_RULES } from './remote-document.ts';
import { bytesOf, KEYED_LISTS, POD_AND_SLOT_RULES, POD_RULES, has, oneOf, textsFit, type SlotRule } from '../pod/pod-rules.ts';

/** A Deployment fits into the 1.5 MiB of etcd with them. Each argument may have its longest length in ASCII. */
const MOST_ARGUMENT_BYTES = 409_600;

export const SLOT_RULES: readonly SlotRule[] = [
  {
    at: ['autoscale'],
    key: 'min',
    message: '"{min}" is above "{max}": swap them',
    holds: ({ min, max }) => typeof min !== 'number' || typeof max !== 'number' || min <= max,
    cel: 'self.min <= self.max',
  },
  {
    at: [],
    key: 'autoscale',
    message: 'Without pods, requests wait only for a slot that loads on demand: set "{load}" to "on-demand", or "{autoscale}.{min}" to 1',
    holds: ({ autoscale, load }) => !isTable(autoscale) || autoscale['min'] !== 0 || load === 'on-demand',
    cel: "!has(self.autoscale) || self.autoscale.min > 0 || self.load == 'on-demand'",
  },
  {
    at: [],
    key: 'lifecycle',
    message:
      'A slot that is always loaded cannot be loaded ahead of requests: set "{load}" to "on-demand", or "{lifecycle}.{idleTimeout}" to a time, or remove "{warm}" and "{prewarm}"',
    holds({ lifecycle, load }) {
      if (load === 'on-demand' || !isTable(lifecycle)) return true;
      const { warm, prewarm, idleTimeout } = lifecycle;
      return idleTimeout !== 'never' || (prewarm === 'never' && Array.isArray(warm) && warm.length === 0);
    },
    cel: "self.load == 'on-demand' || self.lifecycle.idleTimeout != 'never' || (self.lifecycle.warm.size() == 0 && self.lifecycle.prewarm == 'never')",
  },
  {
    at: ['fallback'],
    message: 'Write the names of other slots in "{to}" or "{split}"',
    holds: ({ to, split }) => (Array.isArray(to) && to.length > 0) || (isTable(split) && Object.keys(split).length > 0),
    cel: 'self.to.size() > 0 || self.split.size() > 0',
  },
  {
    at: ['fallback'],
    key: 'split',
    message: 'More than 100 per cent go to other slots: lower the shares',
    holds: ({ split }) => !isTable(split) || Object.values(split).reduce<number>((sum, each) => sum + Number(each), 0) <= 100,
    cel: 'self.split.map(each, self.split[each]).sum() <= 100',
  },
  {
    at: ['rollout'],
    key: 'cases',
    message: 'A file in "{check}" and a list in "{cases}" are two sets of cases: remove one of them',
    holds: (rollout) => !has(rollout, 'check') || !has(rollout, 'cases'),
    cel: '!has(self.check) || !has(self.cases)',
  },
  {
    at: ['rollout'],
    message: 'Without cases there is nothing to judge: set "{check}" or "{cases}"',
    holds: (rollout) => has(rollout, 'check', 'cases') || !has(rollout, 'pass', 'compare', 'tolerance', 'limits', 'onFailure'),
    cel: '!(has(self.pass) || has(self.compare) || has(self.tolerance) || has(self.limits) || has(self.onFailure)) || has(self.check) || has(self.cases)',
  },
  {
    at: ['rollout'],
    key: 'tolerance',
    message: '"{tolerance}" is for a comparison: set "{compare}" to true',
    holds: (rollout) => !has(rollout, 'tolerance') || rollout['compare'] === true,
    cel: '!has(self.tolerance) || (has(self.compare) && self.compare)',
  },
  {
    at: ['model'],
    key: 'args',
    message: `All arguments together have at most ${MOST_ARGUMENT_BYTES} bytes: shorten them`,
    holds: ({ args }) => !Array.isArray(args) || bytesOf(args) <= MOST_ARGUMENT_BYTES,
    cel: `!has(self.args) || self.args.map(each, bytes(each).size()).sum() <= ${MOST_ARGUMENT_BYTES}`,
  },
  oneOf(['model', 'draft'], ['model', 'mtp', 'ngram']),
  {
    at: ['model', 'draft'],
    key: 'min',
    message: '"{min}" is above "{max}": swap them',
    holds: ({ min, max }) => typeof min !== 'number' || typeof max !== 'number' || min <= max,
    cel: '!has(self.min) || !has(self.max) || self.min <= self.max',
  },
  {
    at: ['model'],
    key: 'adapters',
    message: 'An adapter and a preset have the same name: rename one of them',
    holds: ({ adapters, presets }) =>
      !Array.isArray(adapters) || !isTable(presets) || adapters.every(({ name }) => !Object.hasOwn(presets, name)),
    cel: '!has(self.adapters) || !has(self.presets) || self.adapters.all(each, !(each.name in self.presets))',
  },
  textsFit(['env'], 'environment variables', 1_000_000),
  {
    at: ['resources'],
    key: 'devices',
    message: '"{devices}" names GPUs and "{gpus}" counts them: remove one of them',
    holds: (resources) => !has(resources, 'devices') || !has(resources, 'gpus'),
    cel: '!has(self.devices) || !has(self.gpus)',
  },
  {
    at: ['resources'],
    key: 'gpuResource',
    message: '"{gpuResource}" names what a device plugin offers: remove it, or set "{deviceAccess}" to "plugin"',
    holds: (resources) => !has(resources, 'gpuResource') || resources['deviceAccess'] !== 'hostDevices',
    cel: "!has(self.gpuResource) || !has(self.deviceAccess) || self.deviceAccess != 'hostDevices'",
  },
  {
    at: ['storage'],
    key: 'claimName',
    message: '"{hostPath}", "{size}" and "{className}" cannot be combined with an existing claim: use "{claimName}" alone',
    holds: (storage) => !has(storage, 'claimName') || !has(storage, 'hostPath', 'size', 'className'),
    cel: '!has(self.claimName) || !(has(self.hostPath) || has(self.size) || has(self.className))',
  },
  {
    at: ['storage'],
    key: 'hostPath',
    message: '"{size}" and "{className}" apply only to a claim that is created for the slot: use "{hostPath}" alone',
    holds: (storage) => !has(storage, 'hostPath') || !has(storage, 'size', 'className'),
    cel: '!has(self.hostPath) || !(has(self.size) || has(self.className))',
  },
  {
    at: ['storage'],
    key: 'accessModes',
    message: '"{accessModes}" applies only to a claim that is created for the slot: set "{size}" or "{className}", or remove it',
    holds: (storage) => !has(storage, 'accessModes') || has(storage, 'size', 'className'),
    cel: '!has(self.accessModes) || has(self.size) || has(self.className)',
  },
  {
    at: ['storage'],
    key: 'accessModes',
    message: 'A claim with "ReadWriteOncePod" cannot have another access mode: use it alone',
    holds: ({ accessModes }) => !Array.isArray(accessModes) || accessModes.length < 2 || !accessModes.includes('ReadWriteOncePod'),
    cel: "!has(self.accessModes) || self.accessModes.size() < 2 || !('ReadWriteOncePod' in self.accessModes)",
  },
  {
    at: ['tolerations', '*'],
    key: 'value',
    message: '"Exists" does not compare values: remove "{value}", or set "{operator}" to "Equal"',
    holds: (toleration) => toleration['operator'] !== 'Exists' || !has(toleration, 'value'),
    cel: "!has(self.operator) || self.operator != 'Exists' || !has(self.value)",
  },
  {
    at: ['tolerations', '*'],
    key: 'operator',
    message: '"Equal" needs a key: set "{key}" to the key of a taint, or "{operator}" to "Exists"',
    holds: (toleration) => has(toleration, 'key') || toleration['operator'] === 'Exists',
    cel: "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
  },
  {
    at: ['tolerations', '*'],
    key: 'tolerationSeconds',
    message: '"{tolerationSeconds}" applies only to the effect "NoExecute": set "{effect}" to it',
    holds: (toleration) => !has(toleration, 'tolerationSeconds') || toleration['effect'] === 'NoExecute',
    cel: "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
  },
  ...REMOTE_RULES,
  ...POD_RULES,
  ...POD_AND_SLOT_RULES,
];

/** Returns a refinement for the value at a path (`*`: list entries) that reports every violated rule. */
export function rulesAt(path: string): (value: unknown, context: z.RefinementCtx) => void {
  const rules = SLOT_RULES.filter(({ at }) => at.join('.') === path);
  const keys = KEYED_LISTS.find(({ at }) => at.join('.') === path)?.keys ?? [];
  return (value, { issues, addIssue }) => {
    if (issues.length > 0) return;
    if (isTable(value)) {
      for (const { key, message, holds } of rules) {
        if (!holds(value)) addIssue({ code: 'custom', path: key === undefined ? [] : [key], message });
      }
    }
    for (const index of repeatedEntries(value, keys)) {
      const names = keys.map((key) => `"{${key}}"`).join(' and ');
      addIssue({ code: 'custom', path: [index], message: `An earlier entry has the same ${names}: remove or change this one` });
    }
  };
}

/** A list that may be left out, of at most `most` entries, with the rules of its path. */
export const list = <Type extends z.ZodType>(meaning: string, type: Type, most: number, path: string) =>
  optional(meaning, z.array(type).max(most).superRefine(rulesAt(path)));

/** Returns the indexes of the entries that have the same keys as an earlier one. */
function repeatedEntries(value: unknown, keys: readonly string[]): readonly number[] {
  if (!Array.isArray(value) || keys.length === 0) return [];
  const names = value.map((entry) => JSON.stringify(keys.map((key) => (isTable(entry) ? entry[key] : undefined))));
  return names.flatMap((name, index) => (names.indexOf(name) < index ? [index] : []));
}

export interface NamedSlot {
  readonly name: string;
  readonly enabled: boolean;
  readonly model: string;
  readonly aliases: readonly string[];
  readonly presets?: Readonly<Record<string, Preset>>;
}

/**
 * One sentence for each conflict of a slot, by slot, about a name that more than one slot claims. Requests still go
 * somewhere: to the slot of that name, or to any of those that are ready. Two slots with the same model are no
 * conflict, and a slot that is not enabled takes part in none. Pure.
 */
export function findAliasConflicts(slots: readonly NamedSlot[]): ReadonlyMap<string, readonly string[]> {
  const conflicts = new Map<string, readonly string[]>();
  const enabled = slots.filter((slot) => slot.enabled);
  if (enabled.every(({ aliases, presets = {} }) => aliases.length === 0 && Object.keys(presets).length === 0)) return conflicts;
  const claimsOf = new Map(enabled.map((slot) => [slot.name, new Set([...slot.aliases, ...presetNames(slot).map(([name]) => name)])]));
  const names = new Set(enabled.map(({ name }) => name));
  const ofModel = Map.groupBy(enabled, ({ model }) => model);
  const pairs = enabled.flatMap((slot) => [...(claimsOf.get(slot.name) ?? [])].map((alias) => ({ alias, slot })));
  const ofAlias = Map.groupBy(pairs, ({ alias }) => alias);
  for (const slot of enabled) {
    const sentences = [...(claimsOf.get(slot.name) ?? [])].flatMap((alias) => {
      if (alias === slot.name || alias === slot.model) return [];
      if (names.has(alias)) return [`Requests for "${alias}" go to the slot of that name: use another alias`];
      const others = [...(ofModel.get(alias) ?? []), ...(ofAlias.get(alias) ?? []).map((pair) => pair.slot)];
      const rivals = [...new Set(others.map(({ name }) => name))].filter((name) => name !== slot.name).toSorted();
      if (rivals.length === 0) return [];
      return [`Requests for "${alias}" go to this slot or to ${rivals.map((name) => `"${name}"`).join(', ')}: use another alias`];
    });
    const all = [...findPresetConflicts(slot), ...sentences];
    if (all.length > 0) conflicts.set(slot.name, all);
  }
  return conflicts;
}

/** Conflicts of a slot with itself. */
function findPresetConflicts(slot: NamedSlot): readonly string[] {
  const own = new Set([slot.name, slot.model, ...slot.aliases]);
  const first = new Map<string, string>();
  return presetNames(slot).flatMap(([name, preset]) => {
    if (own.has(name)) return [`Requests for "${name}" get the slot without its preset "${preset}": use another alias`];
    const meant = first.get(name) ?? preset;
    first.set(name, meant);
    return meant === preset ? [] : [`Requests for "${name}" get the preset "${meant}", not "${preset}": use another alias`];
  });
}
