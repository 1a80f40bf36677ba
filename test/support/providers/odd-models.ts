/** Slots and models for the contract of providers: ordinary ones, and such as no provider would expect. */
import fc from 'fast-check';
import type { ModelContents, ModelFacts, Provider, Sized, SlotContext } from '../../../src/providers/provider.ts';
import { ModelId, SlotName } from '../../../src/schema/words/names.ts';
import { PROVIDER_KIND_NAMES, kindFacts, type ProviderKind } from '../../../src/schema/slot/provider-kinds.ts';
import { withEngine } from '../../../src/wiring/engines.ts';
import { parseSlot, type SlotDocument, type SlotSpec } from '../../../src/schema/slot/slot-spec.ts';

type Kind = ProviderKind | Pick<Provider, 'kind' | 'engine'>;

/** What the kind says, or the definition of an engine. */
export function factsOf({ kind, engine }: Pick<Provider, 'kind' | 'engine'>): ReturnType<typeof kindFacts> {
  return engine === undefined ? kindFacts(kind) : { ...engine, defaultBackend: engine.backends[0] ?? 'cpu' };
}

export function specOf(of: Kind, document: Partial<SlotDocument> = {}): SlotSpec {
  const { kind, engine }: Pick<Provider, 'kind' | 'engine'> = typeof of === 'string' ? { kind: of } : of;
  const parsed = parseSlot(SlotName.parse('mine'), { provider: kind, ...document, model: { default: 'm', ...document.model } });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return withEngine(parsed.spec, engine);
}

const oddValue = fc.oneof(
  fc.constantFrom(-1, 0, 0.5, 2 ** 31, 2 ** 53, 1e308, Number.NaN, Number.POSITIVE_INFINITY, '', '../../etc/passwd', true, null),
  fc.integer(),
  fc.string(),
  fc.array(fc.integer(), { maxLength: 3 }),
  fc.dictionary(fc.string(), fc.integer(), { maxKeys: 3 }),
);

/** Contents with the keys of an ordinary model, of which some have another value. */
function oddContents(ordinary: ModelContents): fc.Arbitrary<ModelContents> {
  const keys = Object.keys(ordinary);
  const key = keys.length === 0 ? fc.string() : fc.oneof(fc.constantFrom(...keys), fc.string());
  return fc.dictionary(key, oddValue, { maxKeys: 6 }).map((odd) => ({ ...ordinary, ...odd }));
}

export function oddModels(kind: ProviderKind, ordinary: readonly Sized[]): fc.Arbitrary<Sized> {
  const contents = fc.constantFrom(...ordinary.map((model) => model.contents ?? {})).chain(oddContents);
  return fc.record({
    id: fc.constant(ModelId.parse('m')),
    hostPath: fc.constantFrom('/models/m', '/models/a dir/$(m);`x`.bin', ''),
    sizeBytes: fc.constantFrom(0, 1, 2 ** 30, 2 ** 45),
    provider: fc.option(fc.constantFrom<ProviderKind>(kind, kind, kind, ...PROVIDER_KIND_NAMES), { nil: undefined }),
    contents: fc.option(contents, { nil: undefined }),
  });
}

export function specs(provider: Pick<Provider, 'kind' | 'engine'>): fc.Arbitrary<SlotSpec> {
  const { backends } = factsOf(provider);
  return fc
    .record({
      backend: fc.constantFrom(...backends),
      gpus: fc.constantFrom(undefined, 0, 1, 3),
      context: fc.constantFrom(undefined, 256, 8192, 1_000_000),
      args: fc.constantFrom<readonly string[]>([], ['--x', 'a b'], ['; rm -rf /', '$(id)', '\'"`']),
    })
    .map(({ backend, gpus, context, args }) =>
      specOf(provider, {
        backend,
        resources: gpus === undefined ? {} : { gpus },
        model: { default: 'm', ...(context === undefined ? {} : { context }), args: [...args] },
      }),
    );
}

export function contextOf(spec: SlotSpec, model: ModelFacts, port = 18_080): SlotContext {
  return { name: SlotName.parse('mine'), spec, model, modelPath: model.hostPath, listen: { host: '127.0.0.1', port } };
}

/** A value that cannot be changed, however deep. */
export function frozen<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const each of Object.values(value)) frozen(each);
  }
  return value;
}
