/** Parameters of a request, at top level or in `extra_body`, checked against API and family. Pure. */
import { z } from 'zod';
import type { TranslatableBody } from '../../translation.ts';
import { SIDES, type ImageFamily } from './image-families.ts';
import type { ErrorCode } from '../../../schema/words/error-codes.ts';
import { parseExactJson } from './workflow-parameters.ts';

const OUTPUT_FORMATS = ['png', 'jpeg', 'webp'] as const;

export type ImageSize = { readonly width: number; readonly height: number };

export type Checked<Value> = (Value & { readonly ok: true }) | { readonly ok: false; readonly problem: ParameterProblem };
type ReadParameters = Checked<{ readonly parameters: ImageParameters & FamilyParameters; readonly ignored: readonly string[] }>;

const MOST_IMAGES = 10;
const MOST_PARTIAL_IMAGES = 3;
const MOST_CFG = 30;
/** UTF-8; far beyond what the text encoders read. */
const MOST_PROMPT_BYTES = 32 * 1024;
const MOST_SEED = 2n ** 64n - 1n;
const DEFAULT_QUALITY = 95;

export type RequestRules = Pick<ImageFamily, 'title' | 'side' | 'multiple' | 'steps' | 'mostSteps' | 'cfg'>;

export interface Lora {
  readonly file: string;
  readonly strength: number;
}

/** What else a request may set where a family's own workflow draws. */
export interface FamilyParameters {
  readonly sampler: string | undefined;
  readonly scheduler: string | undefined;
  readonly loras: readonly Lora[] | undefined;
}

export function readParameters(body: TranslatableBody, use: FamilyUse): ReadParameters {
  const { field, names } = requestFields(body);
  try {
    const parameters = { ...parametersOf(field, use.family, use.task), ...familyParameters(field, use) };
    return { ok: true, parameters, ignored: names.filter((name) => !hasEffect(name, parameters, use)) };
  } catch (error) {
    return { ok: false, problem: problemOfField(error) };
  }
}

export type ImageTask = 'generation' | 'edit' | 'variation';

export interface FamilyUse {
  readonly family: ImageFamily;
  readonly task: ImageTask;
  /** File names that requests may name, without their ending. */
  readonly loras: readonly string[];
}

const ALWAYS =
  'prompt model n size seed steps cfg response_format output_format output_compression stream partial_images sampler scheduler loras';
const WITH_EFFECT: ReadonlySet<string> = new Set(ALWAYS.split(' '));

function hasEffect(name: string, { cfg }: Pick<ImageParameters, 'cfg'>, { family, task }: FamilyUse): boolean {
  if (name === 'negative_prompt') return family.encoding !== 'prompt' && cfg !== 1;
  if (name === 'strength') return task !== 'generation' && family.references === undefined;
  return WITH_EFFECT.has(name);
}

/** The server knows which samplers and schedules it has. */
const METHOD = /^[a-z0-9_]{1,50}$/;

function methodOf(field: Field, name: 'sampler' | 'scheduler'): string | undefined {
  const value = field(name);
  if (value === undefined || (typeof value === 'string' && METHOD.test(value))) return value;
  throw invalid(name, `Set "${name}" to the name of one in ComfyUI, such as "${name === 'sampler' ? 'euler' : 'simple'}"`);
}

function familyParameters(field: Field, { family, loras }: FamilyUse): FamilyParameters {
  const scheduler = methodOf(field, 'scheduler');
  if (scheduler !== undefined && family.scheduler === undefined)
    throw invalid('scheduler', `Models of ${family.title} have a noise schedule of their own; leave out "scheduler"`);
  return { sampler: methodOf(field, 'sampler'), scheduler, loras: lorasOf(field('loras'), loras) };
}

const MOST_LORAS = 8;
const LoraName = z.string().transform((name) => ({ name, strength: 1 }));
const Loras = z
  .array(z.union([LoraName, z.object({ name: z.string(), strength: z.number().min(-10).max(10).default(1) })]))
  .max(MOST_LORAS);

/** Requests choose among the files beside the model, never a path. */
function lorasOf(value: unknown, files: readonly string[]): readonly Lora[] | undefined {
  if (value === undefined) return undefined;
  const list = typeof value === 'string' && value.trimStart().startsWith('[') ? parseExactJson(value) : value;
  const asked = Loras.safeParse(Array.isArray(list) ? list : [list]).data;
  if (asked === undefined)
    throw invalid('loras', `Set "loras" to at most ${MOST_LORAS} names, or objects with "name" and a "strength" from -10 to 10`);
  return asked.map(({ name, strength }) => {
    const file = files.find((each) => each === name || nameOfLora(each) === name);
    if (file !== undefined) return { file, strength };
    const known = files.length === 0 ? 'no LoRA is beside the model' : `use ${files.map((each) => `"${nameOfLora(each)}"`).join(', ')}`;
    throw invalid('loras', `LoRA "${name.slice(0, 100)}" does not exist: ${known}`);
  });
}

const nameOfLora = (file: string): string => file.replace(/\.safetensors$/i, '');

export type ImageParameters = Readonly<ReturnType<typeof parametersOf>>;

/** A variation needs no prompt. */
export function parametersOf(field: Field, rules: RequestRules, task: ImageTask = 'generation') {
  const { steps, mostSteps, cfg, title } = rules;
  const stream = flagOf(field, 'stream');
  if (stream && field('response_format') === 'url')
    throw invalid('response_format', 'Streamed images have no URL; leave out "response_format", or set it to "b64_json"');
  return {
    prompt: task === 'variation' ? textOf(field, 'prompt', '') : textOf(field, 'prompt'),
    negativePrompt: textOf(field, 'negative_prompt', ''),
    n: wholeOf(field, 'n', { least: 1, most: MOST_IMAGES, otherwise: 1 }),
    size: sizeOf(field('size'), rules),
    seed: seedOf(field('seed')),
    steps: wholeOf(field, 'steps', { least: 1, most: mostSteps, otherwise: steps, because: ` for models of ${title}` }),
    cfg: numberOf(field, 'cfg', { least: 0, most: MOST_CFG, otherwise: cfg }),
    responseFormat: choiceOf(field, 'response_format', ['url', 'b64_json']),
    /** Format of `b64_json`. */
    outputFormat: choiceOf(field, 'output_format', OUTPUT_FORMATS),
    /** Responds with events. Images are in base64. */
    stream,
    partialImages: wholeOf(field, 'partial_images', { least: 0, most: MOST_PARTIAL_IMAGES, otherwise: 0 }),
    /** Denoising strength. */
    strength: field('strength') === undefined ? undefined : numberOf(field, 'strength', { least: 0.05, most: 1, otherwise: 1 }),
    quality: Math.max(1, wholeOf(field, 'output_compression', { least: 0, most: 100, otherwise: DEFAULT_QUALITY })),
  };
}

export function textOf(field: Field, name: string, otherwise?: string): string {
  const value = field(name) ?? otherwise;
  if (typeof value !== 'string' || (otherwise === undefined && value.trim() === ''))
    throw invalid(name, `Set "${name}" to a text that ${otherwise === undefined ? 'describes the image' : 'says what not to draw'}`);
  const bytes = new TextEncoder().encode(value).length;
  if (bytes > MOST_PROMPT_BYTES) throw invalid(name, `Field "${name}" has ${bytes} bytes; send at most ${MOST_PROMPT_BYTES}`);
  return value;
}

export function flagOf(field: Field, name: string): boolean {
  const value = field(name) ?? false;
  if (value === true || value === 'true') return true;
  if (value === false || value === 'false') return false;
  throw invalid(name, `Set "${name}" to true or false`);
}

type Range = { readonly least: number; readonly most: number; readonly otherwise: number; readonly because?: string };

function wholeOf(field: Field, name: string, { least, most, otherwise, because = '' }: Range): number {
  const value = plainNumber(field(name) ?? otherwise);
  if (value === undefined || !Number.isInteger(value) || value < least || value > most)
    throw invalid(name, `Set "${name}" to a whole number from ${least} to ${most}${because}`);
  return value;
}

function numberOf(field: Field, name: string, { least, most, otherwise }: Range): number {
  const value = plainNumber(field(name) ?? otherwise);
  if (value === undefined || value < least || value > most) throw invalid(name, `Set "${name}" to a number from ${least} to ${most}`);
  return value;
}

function plainNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^-?\d{1,15}(\.\d{1,15})?$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

function seedOf(value: unknown): bigint | undefined {
  if (value === undefined) return undefined;
  const number = typeof value === 'string' && /^\d{1,20}$/.test(value) ? BigInt(value) : value;
  const seed = typeof number === 'number' && Number.isSafeInteger(number) ? BigInt(number) : number;
  if (typeof seed !== 'bigint' || seed < 0n || seed > MOST_SEED)
    throw invalid('seed', `Set "seed" to a whole number from 0 to ${MOST_SEED}, or leave it out for another image each time`);
  return seed;
}

function choiceOf<const Choice extends string>(field: Field, name: string, choices: readonly [Choice, ...Choice[]]): Choice {
  const value = field(name);
  if (value === undefined) return choices[0];
  const chosen = choices.find((choice) => choice === value);
  if (chosen === undefined) throw invalid(name, `Set "${name}" to ${choices.map((choice) => `"${choice}"`).join(' or ')}`);
  return chosen;
}

function sizeOf(value: unknown, { multiple, side, title }: RequestRules): ImageSize | undefined {
  if (value === undefined || value === 'auto') return undefined;
  const match = typeof value === 'string' ? /^(\d{1,9})x(\d{1,9})$/.exec(value) : null;
  if (match === null) throw invalid('size', `Set "size" to a width and a height in pixels, such as "${side}x${side}"`);
  const [width, height] = [Number(match[1]), Number(match[2])];
  const fits = (pixels: number): boolean => pixels >= SIDES.least && pixels <= SIDES.most && pixels % multiple === 0;
  if (fits(width) && fits(height)) return { width, height };
  const rule = `multiples of ${multiple} from ${SIDES.least} to ${SIDES.most}`;
  const message = `Models of ${title} cannot draw ${width}x${height}; use a "size" whose width and height are ${rule}, such as "${side}x${side}"`;
  throw new BadField({ code: 'image.size_unsupported', message, param: 'size' });
}

export type ParameterProblem = { readonly code: ErrorCode; readonly message: string; readonly param: string };

class BadField extends Error {
  readonly problem: ParameterProblem;

  constructor(problem: ParameterProblem) {
    super(problem.message);
    this.problem = problem;
  }
}

export const badField = (param: string, message: string): ParameterProblem => ({ code: 'request.invalid', message, param });
export const invalid = (param: string, message: string): BadField => new BadField(badField(param, message));

export function problemOfField(error: unknown): ParameterProblem {
  if (error instanceof BadField) return error.problem;
  throw error;
}

/** Undefined: not set. Integers beyond 2^53 are `bigint`. */
export type Field = (name: string) => unknown;

const AnyObject = z.record(z.string(), z.unknown());

/** Top-level fields win. An empty string in a form counts as not set, like `null` in JSON. */
export function requestFields(body: TranslatableBody): { readonly field: Field; readonly names: readonly string[] } {
  const isForm = body.kind === 'form';
  const own = isForm ? Object.fromEntries(body.fields.map(({ name, value }) => [name, value])) : objectOf(parseExactJson(body.text));
  const extra = own['extra_body'];
  const more = objectOf(typeof extra === 'string' ? parseExactJson(extra) : extra);
  const isSet = (value: unknown): boolean => value !== undefined && value !== null && !(isForm && value === '');
  const field: Field = (name) => [own, more].map((fields) => (Object.hasOwn(fields, name) ? fields[name] : undefined)).find(isSet);
  const all = new Set([...Object.keys(own).filter((name) => name !== 'extra_body'), ...Object.keys(more)]);
  return { field, names: [...all].filter((name) => field(name) !== undefined) };
}

const objectOf = (value: unknown): Readonly<Record<string, unknown>> => AnyObject.safeParse(value).data ?? {};
