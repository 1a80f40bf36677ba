/** Lists providers, models and the pods of a cluster for the management API, and the progress of the installation. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Manage, ProviderListing } from '../api/ports.ts';
import { describeAvailability, type RunsIn } from '../providers/decide/describe-availability.ts';
import type { Provider } from '../providers/provider.ts';
import type { Board } from '../reconciler/board.ts';
import { fail } from '../schema/words/failure.ts';
import { PROVIDER_KIND_NAMES, PROVIDER_KINDS, type Backend, type ProviderKind } from '../schema/slot/provider-kinds.ts';
import { describeModel, listModel } from './describe-model.ts';
import { imagesHere } from './own-models.ts';
import type { ServiceOptions, World } from './world.ts';

const PROBE_TIMEOUT_MS = 5000;

type Inventory = Pick<Manage, 'providers' | 'models' | 'model' | 'cluster' | 'installState' | 'completeInstall'>;

export function createInventory({ settings, providers }: ServiceOptions, world: World, board: Pick<Board, 'current'>): Inventory {
  const stateDir = settings.SVC_STATE_DIR;
  const sentinel = path.join(stateDir, 'install-complete');
  const listModels = async () => (world.clusterModels ?? world.modelFiles).list(new AbortController().signal);
  return {
    providers: async () => Promise.all(PROVIDER_KIND_NAMES.map(async (kind) => listProvider(kind, providers[kind], world))),
    models: async () => (await listModels()).map((model) => listModel(model, world.modelFiles.formats)),
    model: async (id) => describeModel(world, id, new AbortController().signal),
    cluster: () => world.listCluster?.(),
    async installState() {
      const listed = await listModels();
      const slots = [...board.current().slots.values()];
      const steps = [
        {
          id: 'model',
          done: listed.some((model) => model.presence.kind === 'present'),
          hint: 'Put a model into the store, or set one from the catalogue in a slot',
        },
        { id: 'slot', done: slots.length > 0, hint: 'Create a slot file, or run "svcctl slot create primary --model ID"' },
        {
          id: 'ready',
          done: slots.some((slot) => slot.admission.kind === 'open'),
          hint: 'Wait until a slot is ready; "svcctl explain SLOT" shows its progress',
        },
      ];
      return { complete: existsSync(sentinel), steps };
    },
    async completeInstall() {
      await mkdir(stateDir, { recursive: true });
      await writeFile(sentinel, '');
    },
  };
}

async function listProvider(kind: ProviderKind, provider: Provider | undefined, world: World): Promise<ProviderListing> {
  const facts = PROVIDER_KINDS[kind];
  const listing = { kind, serves: facts.serves, backends: facts.backends, defaultBackend: facts.defaultBackend };
  if (provider === undefined) {
    return { ...listing, available: false, reason: 'This version does not include the provider yet', availability: [] };
  }
  const { hardware } = await world.host.read(AbortSignal.timeout(PROBE_TIMEOUT_MS));
  const { backends, ...verdict } = describeAvailability(provider, await runsIn(provider, facts.backends, world), hardware);
  return { ...listing, ...verdict, availability: backends };
}

async function runsIn({ kind, ownModels }: Provider, backends: readonly Backend[], world: World): Promise<RunsIn> {
  const { programs, toolboxes, runtime } = world;
  if (programs === undefined) {
    const named = backends.flatMap((backend) => {
      const image = toolboxes().find(kind, backend);
      return image === undefined ? [] : [{ backend, image }];
    });
    const references = named.map(({ image }) => image);
    // What a cluster has on its nodes is not known here.
    const isAnywhere = ownModels === undefined || runtime.traits.kind !== 'podman';
    const here = isAnywhere ? references : await imagesHere(runtime, references, AbortSignal.timeout(PROBE_TIMEOUT_MS));
    const [present, absent] = [true, false].map((wanted) =>
      named.flatMap(({ backend, image }) => (here.includes(image) === wanted ? [backend] : [])),
    );
    return { kind: 'images', backends: present ?? [], absent: absent ?? [] };
  }
  const program = programs.find((each) => each.kind === kind);
  const missing = fail('stalled', 'ProgramMissing', `This service cannot run the provider "${kind}" as a process`);
  return { kind: 'process', program: (await program?.describe()) ?? missing };
}
