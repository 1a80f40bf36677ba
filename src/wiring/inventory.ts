/** Lists providers and models for the management API, and the progress of the installation. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Manage, ProviderListing } from '../api/ports.ts';
import { PROVIDERS } from '../providers/registry.ts';
import type { Board } from '../reconciler/board.ts';
import { PROVIDER_KIND_NAMES, PROVIDER_KINDS, type ProviderKind } from '../schema/provider-kinds.ts';
import { describeModel, listModel } from './describe-model.ts';
import type { World } from './world.ts';

type Inventory = Pick<Manage, 'providers' | 'models' | 'model' | 'installState' | 'completeInstall'>;

export function createInventory(world: World, board: Pick<Board, 'current'>, stateDir: string): Inventory {
  const sentinel = path.join(stateDir, 'install-complete');
  const listModels = async () => world.modelFiles.list(new AbortController().signal);
  return {
    providers: async () => PROVIDER_KIND_NAMES.map((kind) => listProvider(kind, world)),
    models: async () => (await listModels()).map(listModel),
    model: async (id) => describeModel(world.modelFiles, id, new AbortController().signal),
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

function listProvider(kind: ProviderKind, { runtime, toolboxes }: World): ProviderListing {
  const facts = PROVIDER_KINDS[kind];
  const listing = { kind, serves: facts.serves, backends: facts.backends, defaultBackend: facts.defaultBackend };
  if (!Object.hasOwn(PROVIDERS, kind)) return { ...listing, available: false, reason: 'This version does not include the provider yet' };
  if (!runtime.traits.images) return { ...listing, available: true, reason: 'Runs as a process on this machine' };
  const pinned = facts.backends.filter((backend) => toolboxes().find(kind, backend) !== undefined);
  return pinned.length === 0
    ? { ...listing, available: false, reason: 'Build a toolbox image and add it to "toolboxes.toml": none is configured' }
    : { ...listing, available: true, reason: `Toolbox images for ${pinned.map((backend) => `"${backend}"`).join(', ')}` };
}
