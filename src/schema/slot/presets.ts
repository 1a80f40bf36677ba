/**
 * Presets of a slot: parameters that requests get which ask for the model `<slot>:<preset>`. They say how to answer,
 * and never what: a key is forbidden if it holds content, decides who answers, or changes the form of the answer, which
 * only the client can know. A key is forbidden as well if the gateway has read it before it knows the preset.
 */
import { z } from 'zod';
import { boundedRecord } from '../pod/kube-fields.ts';
import { isTable } from '../words/key-case.ts';

const FORBIDDEN: ReadonlyMap<string, string> = new Map(
  (
    [
      ['the name of the model has led to the preset', 'model'],
      ['clients read a stream in another way than one answer', 'stream stream_options stream_format'],
      ['requests bring their content themselves', 'messages system instructions input prompt suffix query documents context'],
      ['only the client can run tools', 'tools functions'],
      ['it says who asks, which the gateway needs before', 'user metadata prompt_cache_key previous_response_id'],
      ['the gateway checks it before', 'dimensions ref_audio ref_text image images'],
    ] as const
  ).flatMap(([why, keys]) => keys.split(' ').map((key) => [key, why] as const)),
);

/** Bytes of the parameters of one table as JSON: a grammar, or a schema of answers. */
const MOST_BYTES = 16_384;
const MOST_LEVELS = 8;

function checkParameters(table: unknown, { addIssue }: z.RefinementCtx): void {
  if (!isTable(table)) return;
  const problems = Object.entries(table).flatMap(([key, value]) => {
    const why = FORBIDDEN.get(key);
    const message = why === undefined ? problemWith(value, 1) : `A preset cannot set "${key}", because ${why}: remove it`;
    return message === undefined ? [] : [{ path: [key], message }];
  });
  for (const problem of problems) addIssue({ code: 'custom', ...problem });
  if (problems.length === 0 && Buffer.byteLength(JSON.stringify(table)) > MOST_BYTES)
    addIssue({ code: 'custom', path: [], message: `The parameters have more than ${MOST_BYTES} bytes as JSON: shorten them` });
}

function problemWith(value: unknown, level: number): string | undefined {
  if (typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))) return undefined;
  if (!Array.isArray(value) && !isTable(value)) return 'Write a string, a number, true, false, a list or a table of these';
  if (level === MOST_LEVELS) return `Use at most ${MOST_LEVELS} levels of lists and tables`;
  return Object.values(value)
    .map((each) => problemWith(each, level + 1))
    .find((problem) => problem !== undefined);
}

/** Only escapes as `\uXXXX` could write such a key in another way, which makes it quick to find. */
const Key = z
  .string()
  .max(100)
  .regex(/^[\w.-]+$/, 'Write the name of a parameter: letters, digits, "_", "-" and "."');
const Parameters = boundedRecord(z.unknown(), 50, Key).superRefine(checkParameters).default({});
const PRESET_NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

const Preset = z.strictObject({
  set: Parameters.describe('Parameters, such as "temperature", of requests that do not have them'),
  force: Parameters.describe('Parameters of all requests, in place of their own'),
  aliases: z.array(z.string().min(1).max(200)).max(50).default([]).describe('Additional names that clients may send as "model"'),
});
/** `isAdapter`: made of an adapter of the slot; only some paths of a server can choose it. */
export type Preset = Readonly<z.output<typeof Preset>> & { readonly isAdapter?: true };

export const PresetName = z.string().max(63).regex(PRESET_NAME, 'Write a name of lower-case letters, digits and "-"');

export const Presets = boundedRecord(Preset, 32, PresetName);

interface Presetting {
  readonly name: string;
  readonly aliases: readonly string[];
  /** Default: none. */
  readonly presets?: Readonly<Record<string, Preset>>;
}

/** Every name of each preset, with the preset: `<slot>:<preset>`, the same for each alias, and its own aliases. */
export function presetNames({ name, aliases, presets = {} }: Presetting): readonly (readonly [name: string, preset: string])[] {
  return Object.entries(presets).flatMap(([preset, own]) =>
    [...[name, ...aliases].map((base) => `${base}:${preset}`), ...own.aliases].map((each) => [each, preset] as const),
  );
}

export type FoundPreset = { readonly name: string; readonly preset: Preset };

/** The preset that a request for a slot means. Names of the slot itself mean none. */
export function presetOf(
  { name, spec: { model } }: { readonly name: string; readonly spec: { readonly model: Omit<Presetting, 'name'> } },
  asked: string | undefined,
): FoundPreset | undefined {
  const { aliases, presets = {} } = model;
  if (asked === undefined || asked === name || aliases.includes(asked)) return undefined;
  for (const [found, preset] of Object.entries(presets)) {
    const isOfSlot = asked.endsWith(`:${found}`) && [name, ...aliases].includes(asked.slice(0, -found.length - 1));
    if (isOfSlot || preset.aliases.includes(asked)) return { name: found, preset };
  }
  return undefined;
}
