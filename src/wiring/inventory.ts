/** Lists providers and models for the management API, and the progress of the installation. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Manage, ModelListing, ProviderListing } from '../api/ports.ts';
import type { ListedModel } from '../models/store.ts';
import { PROVIDERS } from '../providers/registry.ts';
import type { Board } from '../reconciler/board.ts';
import { PROVIDER_KIND_NAMES, PROVIDER_KINDS, type ProviderKind } from '../schema/provider-kinds.ts';
import type { World } from './world.ts';

type Inventory = Pick<Manage, 'providers' | 'models' | 'installState' | 'completeInstall'>;

export function createInventory(world: World, board: Pick<Board, 'current'>, stateDir: string): Inventory {
  const sentinel = path.join(stateDir, 'install-complete');
  const listModels = async () => world.modelFiles.list(new AbortController().signal);
  return {
    providers: async () => PROVIDER_KIND_NAMES.map((kind) => listProvider(kind, world)),
    models: async () => (await listModels()).map(listModel),
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

function listModel({ id, entry, presence }: ListedModel): ModelListing {
  const present = presence.kind === 'present';
  return {
    id,
    provider: entry?.provider ?? (present ? presence.facts.provider : undefined) ?? 'gguf',
    family: entry?.family ?? (present ? (presence.facts.family ?? 'unknown') : 'unknown'),
    present,
    sizeBytes: present ? presence.facts.sizeBytes : presence.kind === 'pullable' ? presence.sizeBytes : undefined,
    memoryBytes: undefined,
    minVramBytes: entry?.minVramBytes,
    license: entry?.license,
    licenseUrl: entry?.licenseUrl,
    selectable: (entry?.selectable ?? true) && presence.kind !== 'missing',
    reason: presence.kind === 'missing' ? presence.message : undefined,
  };
}
