/**
 * Inputs of a user's workflow that requests may set, and graphs of workflows. The author names them in titles of nodes,
 * which ComfyUI saves: `svc: prompt`, `svc: seed, steps`, or `svc: glow=strength_model` for another input. Pure.
 */
import { parseJson } from '../../../platform/decide/parse-json.ts';
import type { Readable } from '../../../schema/words/failure.ts';

export type WorkflowInput = { readonly node: string; readonly input: string };
export type WorkflowParameters = ReadonlyMap<string, readonly WorkflowInput[]>;

type TitledNodes = Readable<{ readonly parameters: WorkflowParameters; readonly output: string | undefined }>;

const MARK = /^\s*svc:(.*)$/s;
const PART = /^([a-z][a-z0-9_]{0,39})(?:\s*=\s*(\w{1,100}))?$/;
const OUTPUT = 'output';
/** `size` sets both. */
const SIDES = ['width', 'height'] as const;

/** Inputs that a parameter can mean; the first that the node has counts. */
const INPUTS_OF: ReadonlyMap<string, { readonly type: 'text' | 'number'; readonly inputs: readonly string[] }> = new Map([
  ['prompt', { type: 'text', inputs: ['text', 'prompt', 'value', 'string'] }],
  ['negative_prompt', { type: 'text', inputs: ['text', 'prompt', 'value', 'string'] }],
  ['seed', { type: 'number', inputs: ['seed', 'noise_seed', 'value'] }],
  ['steps', { type: 'number', inputs: ['steps', 'value'] }],
  ['cfg', { type: 'number', inputs: ['cfg', 'guidance', 'value'] }],
  ['n', { type: 'number', inputs: ['batch_size', 'amount', 'value'] }],
  ['width', { type: 'number', inputs: ['width', 'value'] }],
  ['height', { type: 'number', inputs: ['height', 'value'] }],
  ['strength', { type: 'number', inputs: ['denoise', 'strength', 'value'] }],
  ['image', { type: 'text', inputs: ['image'] }],
  ['mask', { type: 'text', inputs: ['image'] }],
]);

/** Fields of OpenAI's clients that no model here has a use for. */
const WITHOUT_EFFECT: readonly string[] =
  'quality style background moderation user safety_identifier input_fidelity complexity markup'.split(' ');
const TAKEN: ReadonlySet<string> = new Set([
  ...'size model response_format extra_body stream partial_images output_format output_compression'.split(' '),
  ...WITHOUT_EFFECT,
]);

export const isStandardParameter = (name: string): boolean => INPUTS_OF.has(name);
export const isWithoutEffect = (name: string): boolean => WITHOUT_EFFECT.includes(name);
export const isFieldOfApi = (name: string): boolean => TAKEN.has(name) && name !== 'size';

export function readTitles(workflow: Workflow, titles: ReadonlyMap<string, string>): TitledNodes {
  const parameters = new Map<string, WorkflowInput[]>();
  let output: string | undefined;
  for (const [node, title] of titles) {
    for (const part of partsOf(title)) {
      if (part === OUTPUT && output !== undefined) return { ok: false, problem: `has two nodes with the title "svc: ${OUTPUT}": keep one` };
      if (part === OUTPUT) {
        output = node;
        continue;
      }
      const found = part === 'size' ? SIDES.map((side) => inputOf(workflow, node, side)) : [inputOf(workflow, node, part)];
      for (const each of found) {
        if ('problem' in each) return { ok: false, problem: `has a node with the title "${title.slice(0, 100)}": ${each.problem}` };
        const { name, input } = each;
        parameters.set(name, [...(parameters.get(name) ?? []), { node, input }]);
      }
    }
  }
  const [side] = SIDES.filter((each) => !parameters.has(each));
  if (side !== undefined && SIDES.some((each) => parameters.has(each)))
    return { ok: false, problem: `lets requests set only one side of an image: give the title "svc: ${side}" to a node, too` };
  return { ok: true, parameters, output };
}

function partsOf(title: string): readonly string[] {
  const marked = MARK.exec(title)?.[1];
  return marked === undefined ? [] : marked.split(',').map((part) => part.trim());
}

function inputOf(
  workflow: Workflow,
  node: string,
  part: string,
): { readonly name: string; readonly input: string } | { readonly problem: string } {
  const [, name, named] = PART.exec(part) ?? [];
  if (name === undefined)
    return { problem: `write the names of parameters after "svc:", such as "svc: prompt", and not "${part.slice(0, 50)}"` };
  if (TAKEN.has(name)) return { problem: `choose another name for the parameter "${name}", which means something else in requests` };
  const known = INPUTS_OF.get(name);
  const inputs = workflow[node]?.inputs ?? {};
  const candidates = named === undefined ? (known?.inputs ?? [name]) : [named];
  const input = candidates.find((each) => Object.hasOwn(inputs, each));
  if (input === undefined) {
    const own =
      known === undefined ? `; "${name}" is no parameter of the service, which are ${[...INPUTS_OF.keys()].join(', ')} and size` : '';
    return { problem: `the node has no input "${candidates.join('" or "')}"; write "svc: ${name}=INPUT" with one that it has${own}` };
  }
  const value = inputs[input];
  if (!isScalar(value)) return { problem: `take away what is connected to "${input}", so that requests can set it` };
  if (isFileInput(input, value) || input === 'filename_prefix')
    return { problem: `name another input: requests must not choose files, as they would with "${input}"` };
  const isRight = known === undefined || (known.type === 'text') === (typeof value === 'string');
  return isRight
    ? { name, input }
    : { problem: `name another input for "${name}": "${input}" has the value ${JSON.stringify(String(value).slice(0, 50))}` };
}

export function isFileInput(input: string, value: unknown): value is string {
  return /(?:^|_)name\d?$/.test(input) && typeof value === 'string' && /\.(?:safetensors|sft|ckpt|pt|pth|bin|gguf)$/i.test(value);
}

/** Output of another node: its id, and the number of the output. */
export type Link = readonly [node: string, output: number];
/** `bigint` for seeds: exact up to 2^64 in JSON, but not in a number. */
export type Scalar = string | number | bigint | boolean;
type NodeInput = Scalar | Link;
export type WorkflowNode = { readonly class_type: string; readonly inputs: Readonly<Record<string, unknown>> };
export type Workflow = Readonly<Record<string, WorkflowNode>>;

export const node = (className: string, inputs: Readonly<Record<string, NodeInput>>): WorkflowNode => ({ class_type: className, inputs });
export const isScalar = (value: unknown): value is Scalar => ['string', 'number', 'bigint', 'boolean'].includes(typeof value);

export function isLink(value: unknown): value is Link {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string' && Number.isInteger(value[1]);
}

/** Links to missing nodes are ignored. */
export function nodeInCycle(workflow: Workflow): string | undefined {
  const users = new Map<string, string[]>();
  const missing = new Map<string, number>();
  for (const [id, { inputs }] of Object.entries(workflow)) {
    const sources = Object.values(inputs).flatMap((value) => (isLink(value) && Object.hasOwn(workflow, value[0]) ? [value[0]] : []));
    missing.set(id, sources.length);
    for (const source of sources) {
      const known = users.get(source);
      if (known === undefined) users.set(source, [id]);
      else known.push(id);
    }
  }
  // Nodes without inputs come first, then those that need only them.
  const ready = [...missing].flatMap(([id, count]) => (count === 0 ? [id] : []));
  for (let id = ready.pop(); id !== undefined; id = ready.pop()) {
    missing.delete(id);
    for (const user of users.get(id) ?? []) {
      const left = (missing.get(user) ?? 0) - 1;
      missing.set(user, left);
      if (left === 0) ready.push(user);
    }
  }
  // Nodes that depend on a cycle are left, too: go back until a node repeats.
  const seen = new Set<string>();
  let at = missing.keys().next().value;
  while (at !== undefined && !seen.has(at)) {
    seen.add(at);
    const sources = Object.values(workflow[at]?.inputs ?? {}).flatMap((value) => (isLink(value) ? [value[0]] : []));
    at = sources.find((source) => missing.has(source));
  }
  return at;
}

/** Integers beyond 2^53 become `bigint`. */
export function parseExactJson(text: string): unknown {
  const exact = (_key: string, value: unknown, { source }: { readonly source?: string } = {}): unknown =>
    typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined && /^-?\d{1,40}$/.test(source)
      ? BigInt(source)
      : value;
  try {
    return JSON.parse(text, exact);
  } catch {
    return parseJson(text);
  }
}

export function exactJson(value: unknown): string {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map((each: unknown) => exactJson(each)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  return `{${Object.entries(value)
    .map(([key, each]) => `${JSON.stringify(key)}:${exactJson(each)}`)
    .join(',')}}`;
}
