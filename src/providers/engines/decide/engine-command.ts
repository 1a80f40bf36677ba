/** Command, environment, memory and paths of a declared engine's server for a slot. Pure. */
import { basename, dirname } from 'node:path';
import { ENGINE_PATHS, type EngineDefinition } from '../../../schema/slot/engine-document.ts';
import { computeBytes, fillWord, fillWords, type PlaceholderValues } from '../../../schema/slot/engine-template.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import { usesGpu } from '../../gguf/decide/server-layout.ts';
import type { MemoryDemand, SlotContext } from '../../provider.ts';

/** The arguments of the slot come last, as they stand. */
export function engineCommand(engine: EngineDefinition, slot: SlotContext): readonly [string, ...string[]] {
  const [program = '', ...words] = engine.command;
  const sleepArguments = canSleep(engine, slot.spec) ? (engine.sleep?.args ?? []) : [];
  const filled = fillWords(words, valuesOf(engine, slot));
  return [program, ...filled, ...fractionArguments(engine, slot.spec), ...sleepArguments, ...slot.spec.model.args];
}

/** A variable with a placeholder that is not set is left out. */
export function engineEnvironment(engine: EngineDefinition, slot: SlotContext): Readonly<Record<string, string>> {
  const values = valuesOf(engine, slot);
  const filled = Object.entries(engine.env).flatMap(([name, word]) =>
    fillWords([word], values)
      .slice(0, 1)
      .map(() => [name, fillWord(word, values)] as const),
  );
  return Object.fromEntries(filled);
}

function valuesOf({ models: { format } }: EngineDefinition, { name, spec, modelPath, listen }: SlotContext): PlaceholderValues {
  const { model, resources } = spec;
  return {
    model: format === 'name' ? model.default : modelPath,
    model_parent: dirname(modelPath),
    model_base: basename(modelPath).replace(/^-/, './-'),
    model_id: model.default,
    slot: name,
    // Callers of the API may set aliases: none of them may become a flag.
    names: [...new Set([name, model.default, ...model.aliases.filter((alias) => !alias.startsWith('-'))])],
    host: listen.host,
    port: String(listen.port),
    context: model.context?.toString(),
    gpus: resources.gpus?.toString(),
  };
}

/** The name under which the server knows the model; undefined where clients' requests stay as they are. */
export const requestedName = ({ modelName }: EngineDefinition, { model }: SlotSpec): string | undefined =>
  modelName?.replaceAll('{model_id}', () => model.default);

/** The path of the server for a path of the gateway; undefined where the engine does not serve it. */
export function serverPath({ paths, serves }: EngineDefinition, path: string): string | undefined {
  const own = Object.entries(paths).find(([known]) => known === path)?.[1];
  if (own !== undefined) return own;
  const isServed = serves.some((capability) => ENGINE_PATHS[capability][0] === path);
  // Servers have the path that other projects use.
  return isServed ? (path === '/v1/rerankings' ? '/v1/rerank' : path) : undefined;
}

const MOST_SHARE = 0.99;

/** The share of the device that the slot reserves. Where its memory is not known, the engine takes what it takes. */
function fractionArguments({ memory: { fractionFlag } }: EngineDefinition, spec: SlotSpec): readonly string[] {
  const { deviceBytes, resources } = spec;
  if (fractionFlag === undefined || deviceBytes === undefined || resources.memoryBytes === undefined || !usesGpu(spec)) return [];
  return [fractionFlag, String(Math.min(MOST_SHARE, Math.ceil((resources.memoryBytes / deviceBytes) * 100) / 100))];
}

/** Never less than the files of the model. Throws where a formula gives no size. */
export function engineMemory({ memory: { estimate, fractionFlag } }: EngineDefinition, spec: SlotSpec, sizeBytes: number): MemoryDemand {
  const estimated = estimate === undefined ? sizeBytes : computeBytes(estimate, formulaValues(spec, sizeBytes));
  const reserved = fractionFlag === undefined ? 0 : (spec.resources.memoryBytes ?? 0);
  const bytes = Math.max(estimated, sizeBytes, reserved);
  return usesGpu(spec) ? { hostBytes: 0, deviceBytes: bytes } : { hostBytes: bytes, deviceBytes: 0 };
}

const formulaValues = ({ model, resources }: SlotSpec, sizeBytes: number) => ({
  weights: sizeBytes,
  context: model.context ?? 0,
  gpus: Math.max(1, resources.gpus ?? 1),
});

export const canSleep = ({ sleep }: EngineDefinition, spec: SlotSpec): boolean =>
  sleep !== undefined && (sleep.backends === undefined || sleep.backends.includes(spec.backend));

/** Throws where the formula gives no size. */
export const asleepBytes = (formula: string, spec: SlotSpec, sizeBytes: number): number =>
  computeBytes(formula, formulaValues(spec, sizeBytes));

/** Why a slot must not be served with its settings, and the fix. */
export function engineObjection({ name, backends, memory: { fractionFlag } }: EngineDefinition, spec: SlotSpec): string | undefined {
  const { backend, resources } = spec;
  if (!backends.includes(backend)) {
    const known = backends.map((each) => `"${each}"`).join(' or ');
    return `The engine "${name}" does not compute with "${backend}"; set "backend" to ${known}`;
  }
  if (fractionFlag === undefined || resources.memoryBytes !== undefined || !usesGpu(spec)) return undefined;
  return `The engine "${name}" takes a share of the device for itself; set "resources.memory" to what this slot may take`;
}
