/** The cases that judge new models: in the text of a slot, or in a ConfigMap with a label, whose key `check` names. */
import type { readChecks, ReadChecks } from '../../evaluation/decide/parse-cases.ts';
import { LABELS, valueAt } from '../../schema/pod/kube-fields.ts';
import { hasChecks, type RolloutSpec } from '../../schema/slot/scaling.ts';
import { CONFIG_MAPS } from '../client/decide/resource-path.ts';
import type { KubeObject, Reflector } from '../client/ports.ts';
import { createReflector, wasListed, type RefreshableReflector, type ReflectorOptions } from '../client/reflector.ts';

type Parser = { readonly readChecks: typeof readChecks };

/** Only the leader needs them. */
export const createCheckReflector = (options: Omit<ReflectorOptions, 'type' | 'labelSelector'>): RefreshableReflector =>
  createReflector({ ...options, type: CONFIG_MAPS, labelSelector: LABELS.checks });

export type CheckMaps = ReturnType<typeof createCheckMaps>;

export function createCheckMaps(copy: Pick<Reflector, 'items' | 'health' | 'changes'>) {
  /** What judges patterns and JSON Schemas is large, and few slots have cases. */
  let parser: Parser | undefined;
  const known = new WeakMap<RolloutSpec, { readonly object: KubeObject | undefined; readonly read: ReadChecks }>();

  return {
    /** Call it before `of`, with the specs of all slots. */
    async prepare(specs: Iterable<unknown>): Promise<void> {
      for (const spec of specs)
        if (parser === undefined && ['check', 'cases'].some((key) => valueAt(spec, 'rollout', key) !== undefined))
          parser = await import('../../evaluation/decide/parse-cases.ts');
    },
    /**
     * Returns the same object until something changes; undefined for a slot without cases, and while it is not known
     * which ConfigMaps there are.
     */
    of(rollout: RolloutSpec | undefined): ReadChecks | undefined {
      if (rollout === undefined || !hasChecks(rollout) || parser === undefined) return undefined;
      if (rollout.check !== undefined && !wasListed(copy)) return undefined;
      const [name = '', ...key] = rollout.check?.split('/') ?? [];
      const object = copy.items().get(name);
      const last = known.get(rollout);
      if (last !== undefined && last.object === object) return last.read;
      const read = parser.readChecks(rollout, textAt(object, name, key.join('/')));
      known.set(rollout, { object, read });
      return read;
    },
    changes: copy.changes,
  };
}

function textAt(object: KubeObject | undefined, name: string, key: string): { readonly text: string } | { readonly mistake: string } {
  if (key === '') return { mistake: 'names no key: write the name of a ConfigMap and its key, such as "golden/cases.jsonl"' };
  if (object === undefined)
    return { mistake: `leads to no ConfigMap: create "${name}" with the label "${LABELS.checks}", or correct "check"` };
  const text = valueAt(object, 'data', key);
  if (typeof text === 'string') return { text };
  return { mistake: `leads to no key: add "${key}" to "data" of the ConfigMap "${name}", or correct "check"` };
}
