/**
 * Which inputs of a user's workflow requests may set. The author says it in the titles of nodes, which ComfyUI's editor saves with them: `svc: prompt`, `svc: seed, steps`, or
 * `svc: glow=strength_model` for an input of another name. Pure.
 */
import { isScalar, type Workflow } from './workflow-graph.ts';

/** An input of a node. */
export interface WorkflowInput {
  readonly node: string;
  readonly input: string;
}

/** By the name of the parameter: each has at least one input. */
export type WorkflowParameters = ReadonlyMap<string, readonly WorkflowInput[]>;

export type TitledNodes =
  | { readonly ok: true; readonly parameters: WorkflowParameters; readonly output: string | undefined }
  /** `problem`: continues `The workflow …`. */
  | { readonly ok: false; readonly problem: string };

const MARK = /^\s*svc:(.*)$/s;
const PART = /^([a-z][a-z0-9_]{0,39})(?:\s*=\s*(\w{1,100}))?$/;
/** The title of the node that saves what is answered. */
const OUTPUT = 'output';
/** `size` means both. */
const SIDES = ['width', 'height'] as const;

/** The inputs that a parameter of OpenAI's API or of the service can mean; the first one that the node has. */
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

/** Fields of requests that mean something else. */
const TAKEN: ReadonlySet<string> = new Set(
  (
    'size model response_format extra_body stream partial_images output_format output_compression quality style background moderation user ' +
    'safety_identifier input_fidelity complexity markup'
  ).split(' '),
);

/** Parameters of the service itself; any other one is the author's own. */
export function isStandardParameter(name: string): boolean {
  return INPUTS_OF.has(name);
}

/** Fields that every request may have, whatever the workflow is. */
export function isFieldOfApi(name: string): boolean {
  return TAKEN.has(name) && name !== 'size';
}

/** `titles`: of the nodes, by their ids. */
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

/** A title without the mark has none. */
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

/** Whether an input names a file of a model. */
export function isFileInput(input: string, value: unknown): value is string {
  return /(?:^|_)name\d?$/.test(input) && typeof value === 'string' && /\.(?:safetensors|sft|ckpt|pt|pth|bin|gguf)$/i.test(value);
}
