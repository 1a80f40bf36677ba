/** Answers whether a model would fit here, for the management API. */
import type { FitListing, FitRequest, Manage } from '../api/ports.ts';
import { parseHubName } from '../models/decide/parse-model-name.ts';
import type { Provider, ProviderRegistry, Sized } from '../providers/provider.ts';
import { PROVIDERS } from '../providers/registry.ts';
import type { Board } from '../reconciler/board.ts';
import { budgetOf } from '../reconciler/remember/desire.ts';
import { findPools, largestDeviceBytes, sumBytes } from '../reconciler/decide/facts/memory-pools.ts';
import { findFit, explainFit, type FitQuestion } from '../reconciler/decide/fit.ts';
import { backendMissing, judge, withBackends } from '../reconciler/decide/facts/choose-backend.ts';
import { tooSmallFor } from '../reconciler/decide/rules/gates.ts';
import type { DesiredSlot } from '../reconciler/ports.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import { ModelId, SlotName } from '../schema/words/names.ts';
import { kindFacts, type ProviderKind } from '../schema/slot/provider-kinds.ts';
import type { Settings } from '../schema/settings/settings.ts';
import { parseSlot } from '../schema/slot/slot-spec.ts';
import type { World } from './world.ts';

const LOOK_TIMEOUT_MS = 30_000;
const REGISTRY: ProviderRegistry = PROVIDERS;
/** Not the name of any kind of slot, so that the model alone decides what the server does. */
const ANY_SLOT = SlotName.parse('fit');
const ANY_MODEL = ModelId.parse('any.gguf');

type FitWorld = Pick<World, 'host' | 'runtime'> & { readonly modelFiles: Pick<World['modelFiles'], 'observe' | 'sources'> };

export function createFit(
  world: FitWorld,
  board: Pick<Board, 'current'>,
  settings: Pick<Settings, 'SVC_MEMORY_BUDGET'>,
): Pick<Manage, 'fit'> & { readonly fitSizes: FitSizes } {
  async function ask(request: FitRequest, { facts, provider }: Subject, signal: AbortSignal): Promise<Result<Asked>> {
    const slot = slotOf(request, provider.kind);
    if (!slot.ok) return slot;
    const host = await world.host.read(signal);
    const chosen = withBackends(new Map([[ANY_SLOT, slot.value]]), { providers: { [provider.kind]: provider } }, host.hardware);
    const { spec } = chosen.get(ANY_SLOT) ?? slot.value;
    const missing = backendMissing(spec, judge(provider, host.hardware));
    if (missing !== undefined) return fail('stalled', 'DeviceMissing', missing.message);
    const least = provider.leastDeviceBytes?.(ANY_SLOT, spec, facts);
    const small = tooSmallFor(request.model, least, largestDeviceBytes(host.hardware, spec.backend));
    if (small !== undefined) return fail('stalled', 'DeviceTooSmall', small.message);
    const admitted = [...board.current().slots.values()].flatMap(({ memory, spec: { load } }) =>
      memory?.admitted === true ? [{ placement: memory.placement, load }] : [],
    );
    const promised = sumBytes(admitted.map(({ placement }) => placement));
    const firm = sumBytes(admitted.flatMap(({ placement, load }) => (load === 'always' ? [placement] : [])));
    const budget = budgetOf(settings, host.memoryTotalBytes);
    const pools = findPools({ ...host, hostBudgetBytes: budget, hardware: host.hardware, used: promised });
    const common = { spec, hardware: host.hardware, pools, promised, firm };
    const questionOf = (asked: Sized): FitQuestion => ({
      ...common,
      estimate: (each) => provider.estimateMemory(ANY_SLOT, each, asked),
      splits: (each) => provider.splits?.(ANY_SLOT, each, asked) ?? [],
    });
    return ok({ question: questionOf(facts), ofSize: (sizeBytes) => questionOf(factsOfSize(request.model, sizeBytes)) });
  }

  async function findSubject(id: ModelId, signal: AbortSignal): Promise<Result<Subject>> {
    const { observe, sources } = world.modelFiles;
    const [presence, entry] = await Promise.all([observe([id], signal).then((seen) => seen.get(id)), sources.known(id)]);
    if (presence === undefined || presence.kind === 'missing')
      return fail('stalled', 'ModelMissing', presence?.message ?? `The model "${id}" is not known`);
    const kind = (presence.kind === 'present' ? presence.facts.provider : undefined) ?? entry?.provider ?? 'gguf';
    const provider = REGISTRY[kind];
    if (provider === undefined)
      return fail('stalled', 'ProviderMissing', `The provider "${kind}" is not part of this installation: use another model`);
    if (presence.kind === 'present' && presence.facts.sizeBytes !== undefined) {
      const facts = { ...presence.facts, sizeBytes: presence.facts.sizeBytes };
      return ok({ provider, facts, exact: true, offers: [] });
    }
    if (presence.kind === 'pullable' && presence.sizeBytes !== undefined)
      return ok({ provider, facts: factsOfSize(id, presence.sizeBytes), exact: false, offers: [] });
    const offers = await listOffers(id, world, signal);
    if (!offers.ok) return offers;
    const [largest] = offers.value;
    return largest === undefined
      ? fail('stalled', 'ModelMissing', `The size of "${id}" is not known yet: pull the model first ("svcctl model pull ${id}")`)
      : ok({ provider, facts: factsOfSize(id, largest.sizeBytes), exact: false, offers: offers.value });
  }

  return {
    async fit(request): Promise<Result<FitListing>> {
      const elsewhere = 'In a cluster, Kubernetes decides which node has the memory for a model: ask a service on one machine';
      if (world.runtime.traits.network === 'pods') return fail('stalled', 'PulledByPods', elsewhere);
      const signal = AbortSignal.timeout(LOOK_TIMEOUT_MS);
      const subject = await findSubject(request.model, signal);
      if (!subject.ok) return subject;
      const asked = await ask(request, subject.value, signal);
      return asked.ok ? ok(listFit(request, subject.value, asked.value)) : asked;
    },
    async fitSizes() {
      const provider = REGISTRY.gguf;
      if (world.runtime.traits.network === 'pods' || provider === undefined) return undefined;
      const facts = factsOfSize(ANY_MODEL, 1);
      const request = { model: ANY_MODEL, context: undefined, backend: undefined };
      const asked = await ask(request, { facts, provider, exact: false, offers: [] }, AbortSignal.timeout(LOOK_TIMEOUT_MS));
      return asked.ok ? (sizeBytes) => fitOfSize(asked.value, sizeBytes) : undefined;
    },
  };
}

/** Resolves to undefined in a cluster, and where this machine cannot run GGUF models. */
export type FitSizes = () => Promise<((sizeBytes: number) => { readonly fits: boolean; readonly neededBytes: number }) | undefined>;

type Subject = Readonly<{ provider: Provider; facts: Sized; exact: boolean; offers: readonly Offer[] }>;

type Offer = Pick<FitListing['quantisations'][number], 'name' | 'sizeBytes'>;

type Asked = Readonly<{ question: FitQuestion; ofSize: (sizeBytes: number) => FitQuestion }>;

function fitOfSize({ ofSize }: Pick<Asked, 'ofSize'>, sizeBytes: number): { readonly fits: boolean; readonly neededBytes: number } {
  const { fits, placement } = findFit(ofSize(sizeBytes));
  return { fits, neededBytes: Object.values(placement).reduce((sum, bytes) => sum + bytes, 0) };
}

function listFit({ model, context }: FitRequest, { exact, offers }: Subject, { question, ofSize }: Asked): FitListing {
  const quantisations = offers.map(({ name, sizeBytes }) => ({ name, sizeBytes, ...fitOfSize({ ofSize }, sizeBytes) }));
  // The largest that fits loses the least; where none does, the smallest shows what is missing.
  const best = quantisations.find(({ fits }) => fits) ?? quantisations.at(-1);
  const fit = findFit(best === undefined ? question : ofSize(best.sizeBytes));
  const { backend } = question.spec;
  return {
    message: explainFit({ model: best?.name ?? model, context, backend }, fit),
    backend,
    fits: fit.fits,
    fitsNow: fit.fitsNow,
    placement: fit.placement,
    onHost: fit.split?.onHost,
    roomBytes: fit.decisive.roomBytes,
    largestContext: fit.largestContext,
    exact,
    quantisations,
  };
}

function slotOf({ model, context, backend }: FitRequest, provider: ProviderKind): Result<DesiredSlot> {
  const document = {
    provider,
    model: { default: model, ...(context === undefined ? {} : { context }) },
    ...(backend === undefined ? {} : { backend }),
  };
  const parsed = parseSlot(ANY_SLOT, document);
  if (parsed.ok) return ok({ name: ANY_SLOT, spec: parsed.spec, generation: 1, problems: [] });
  const { backends } = kindFacts(provider);
  const known = backends.map((each) => `"${each}"`).join(' or ');
  const problem = parsed.problems[0]?.message ?? `The provider "${provider}" does not have this backend: choose ${known}`;
  return fail('stalled', 'SpecInvalid', problem);
}

const factsOfSize = (id: ModelId, sizeBytes: number): Sized => ({ id, hostPath: '', sizeBytes });

/** One quantisation if the name says which, otherwise all. */
async function listOffers(id: ModelId, { modelFiles }: FitWorld, signal: AbortSignal): Promise<Result<readonly Offer[]>> {
  const parsed = parseHubName(id);
  if (parsed.kind !== 'hub') return ok([]);
  // Imported when it is needed, because undici is large.
  const { readQuantisations } = await import('../models/hub/hub-client.ts');
  const { repo, quantisation, file } = parsed.name;
  const found = await readQuantisations(modelFiles.sources.hub, parsed.name, signal);
  if (!found.ok) return found;
  const wanted = found.value.filter((each) => {
    if (quantisation !== undefined) return each.quantisation.toLowerCase() === quantisation.toLowerCase();
    return file === undefined || file.includes(each.quantisation);
  });
  const offers = wanted.map((each) => ({ name: `hf:${repo}:${each.quantisation}`, sizeBytes: each.sizeBytes }));
  if (offers.length > 0) return ok(offers);
  const names = found.value.map((each) => `"${each.quantisation}"`).join(', ');
  const advice = names === '' ? 'it has no GGUF files' : `choose ${names}`;
  return fail('stalled', 'ModelMissing', `"${repo}" has no such quantisation: ${advice}`);
}
