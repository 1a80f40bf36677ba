/** Lists the models that come with a program, by running it or a container of its image, again now and then. */
import { seenBackends } from '../providers/decide/rank-backends.ts';
import { execFile } from 'node:child_process';
import type { OwnModelSource } from '../models/store.ts';
import type { OwnModel, OwnModels, Provider, ProviderRegistry } from '../providers/provider.ts';
import type { ImageReference, ModelPresence, Runtime } from '../reconciler/ports.ts';
import type { Hardware } from '../schema/status/hardware.ts';
import type { ModelId } from '../schema/words/names.ts';
import type { ProviderKind } from '../schema/slot/provider-kinds.ts';
import type { OwnProgram } from './world.ts';

export interface OwnModelDeps {
  readonly providers: ProviderRegistry;
  readonly programs: readonly OwnProgram[] | undefined;
  readonly runtime: Pick<Runtime, 'observe' | 'print'>;
  readonly imagesOf: (provider: Provider) => readonly ImageReference[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly hardware: () => Promise<Hardware | undefined>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

type Listed = Readonly<{ provider: ProviderKind; model: OwnModel }>;

/** A program reads a file for it; a container takes a second. */
const PROGRAM_AGAIN_MS = 15_000;
const IMAGE_AGAIN_MS = 60_000;
const LIST_WITHIN_MS = 30_000;
const MAX_OUTPUT_BYTES = 4 * 2 ** 20;

export function createOwnModels(deps: OwnModelDeps): OwnModelSource {
  const owners = Object.values(deps.providers).flatMap((provider): readonly Owner[] =>
    provider.ownModels === undefined ? [] : [{ provider, own: provider.ownModels, remembered: undefined }],
  );
  const listOf = async (owner: Owner): Promise<readonly OwnModel[]> => {
    const { remembered } = owner;
    const again = deps.programs === undefined ? IMAGE_AGAIN_MS : PROGRAM_AGAIN_MS;
    if (remembered !== undefined && deps.now() - remembered.at < again) return remembered.models;
    const models = readList(deps, owner);
    owner.remembered = { at: deps.now(), models };
    return models;
  };
  const listAll = async (chosen: readonly Owner[]): Promise<readonly Listed[]> => {
    const lists = chosen.map(async (owner) => (await listOf(owner)).map((model) => ({ provider: owner.provider.kind, model })));
    return (await Promise.all(lists)).flat();
  };
  return {
    async find(id) {
      const found = (await listAll(owners)).find(({ model }) => model.id === id);
      return found === undefined ? undefined : presenceOf(found);
    },
    async list() {
      const hardware = await deps.hardware();
      const able = owners.filter(({ provider }) => seenBackends(provider, hardware).some(({ missing }) => missing === undefined));
      return (await listAll(able)).map((listed) => ({
        id: listed.model.id,
        entry: undefined,
        presence: presenceOf(listed),
        provider: listed.provider,
        ...(listed.model.family === undefined ? {} : { family: listed.model.family }),
      }));
    },
    names: async (): Promise<readonly ModelId[]> => (await listAll(owners)).map(({ model }) => model.id),
  };
}

interface Owner {
  readonly provider: Provider;
  readonly own: OwnModels;
  remembered: { readonly at: number; readonly models: Promise<readonly OwnModel[]> } | undefined;
}

function presenceOf({ provider, model: { id, sizeBytes, contents, family, missing } }: Listed): ModelPresence {
  if (missing !== undefined) return { kind: 'missing', message: missing };
  return { kind: 'present', facts: { id, hostPath: id, sizeBytes, provider, contents, ...(family === undefined ? {} : { family }) } };
}

/** Empty where there is no such program and no such image here, or if it does not answer. */
async function readList(deps: OwnModelDeps, { provider, own }: Owner): Promise<readonly OwnModel[]> {
  const signal = AbortSignal.timeout(LIST_WITHIN_MS);
  const output =
    deps.programs === undefined ? await printedByImage(deps, provider, own, signal) : await printedHere(deps, provider, own, signal);
  return (output === undefined ? undefined : own.parse(output)) ?? [];
}

async function printedHere({ programs, env }: OwnModelDeps, { kind }: Provider, { listArguments }: OwnModels, signal: AbortSignal) {
  const found = await programs?.find((each) => each.kind === kind)?.resolve(signal);
  if (found?.ok !== true) return undefined;
  const [program, ...first] = found.value;
  const options = { cwd: '/', env: { PATH: env['PATH'], HOME: env['HOME'] }, signal, maxBuffer: MAX_OUTPUT_BYTES };
  return await new Promise<string | undefined>((resolve) => {
    execFile(program, [...first, ...listArguments], options, (error, stdout) => resolve(error === null ? stdout : undefined));
  });
}

async function printedByImage({ runtime, imagesOf }: OwnModelDeps, provider: Provider, { listArguments }: OwnModels, signal: AbortSignal) {
  const [image] = await imagesHere(runtime, imagesOf(provider), signal);
  if (image === undefined || runtime.print === undefined) return undefined;
  const printed = await runtime.print(image, [provider.program, ...listArguments], signal);
  return printed.ok ? printed.value : undefined;
}

export async function imagesHere(
  runtime: Pick<Runtime, 'observe'>,
  images: readonly ImageReference[],
  signal: AbortSignal,
): Promise<readonly ImageReference[]> {
  if (images.length === 0) return [];
  const observed = await runtime.observe(images, signal);
  const present = new Set(observed.ok ? observed.value.images.flatMap((each) => (each.present ? [each.reference] : [])) : []);
  return images.filter(({ reference }) => present.has(reference));
}
