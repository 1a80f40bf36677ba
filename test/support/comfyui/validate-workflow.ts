/** Checks a workflow as ComfyUI does before it queues it, with the same shapes of errors. Integers are `bigint` where a number could not hold them. */
import { z } from 'zod';
import { nodesOf, type ComfyVersion, type InputInfo, type NodeInfo, type Nodes } from './object-info.ts';

export interface CheckedNode {
  readonly className: string;
  readonly inputs: Readonly<Record<string, unknown>>;
}

export type Checked =
  | { readonly ok: true; readonly nodes: ReadonlyMap<string, CheckedNode>; readonly outputs: readonly string[] }
  | { readonly ok: false; readonly body: object };

interface InputError {
  readonly type: string;
  readonly message: string;
  readonly details: string;
  readonly extra_info: object;
}

const Node = z.object({ class_type: z.string(), inputs: z.record(z.string(), z.unknown()) });
const Link = z.tuple([z.string(), z.int().min(0)]);

/** Names of files that the server has. */
export interface ServerFiles {
  readonly models: readonly string[];
  /** Uploaded images. */
  readonly inputs: readonly string[];
}

export function validateWorkflow(
  workflow: unknown,
  models: readonly string[],
  inputs: readonly string[] = [],
  version: ComfyVersion = '0.3.64',
): Checked {
  const files = { models, inputs };
  const known = nodesOf(version);
  const entries = z.record(z.string(), z.unknown()).safeParse(workflow).data;
  if (entries === undefined) return refuse('no_prompt', 'No prompt provided', 'No prompt provided');
  const nodes = new Map<string, CheckedNode>();
  for (const [id, value] of Object.entries(entries)) {
    const node = Node.safeParse(value).data;
    if (node === undefined) {
      const message = 'Cannot execute because a node is missing the class_type property.';
      return refuse('invalid_prompt', message, `Node ID '#${id}'`);
    }
    if (!Object.hasOwn(known, node.class_type))
      return refuse('invalid_prompt', `Cannot execute because node ${node.class_type} does not exist.`, `Node ID '#${id}'`);
    nodes.set(id, { className: node.class_type, inputs: node.inputs });
  }
  const outputs = [...nodes].filter(([, { className }]) => known[className]?.isOutput === true).map(([id]) => id);
  if (outputs.length === 0) return refuse('prompt_no_outputs', 'Prompt has no outputs', '');
  const nodeErrors: Record<string, object> = {};
  for (const [id, node] of nodes) {
    const errors = errorsOf(node, { nodes, known, files });
    if (errors.length > 0) nodeErrors[id] = { errors, dependent_outputs: outputs, class_type: node.className };
  }
  if (Object.keys(nodeErrors).length === 0) return { ok: true, nodes, outputs };
  const error = { type: 'prompt_outputs_failed_validation', message: 'Prompt outputs failed validation', details: '', extra_info: {} };
  return { ok: false, body: { error, node_errors: nodeErrors } };
}

function refuse(type: string, message: string, details: string): Checked {
  return { ok: false, body: { error: { type, message, details, extra_info: {} }, node_errors: {} } };
}

interface Graph {
  readonly nodes: ReadonlyMap<string, CheckedNode>;
  readonly known: Nodes;
  readonly files: ServerFiles;
}

/** Optional inputs are checked where they are set. */
function inputsOf({ className, inputs }: CheckedNode, known: Nodes): NodeInfo['inputs'] {
  const { inputs: required = {}, optional = {} } = known[className] ?? {};
  return { ...required, ...Object.fromEntries(Object.entries(optional).filter(([name]) => Object.hasOwn(inputs, name))) };
}

function errorsOf(node: CheckedNode, { nodes, known, files }: Graph): readonly InputError[] {
  return Object.entries(inputsOf(node, known)).flatMap(([name, info]) => {
    const error = (type: string, message: string, details = name): InputError => ({
      type,
      message,
      details,
      extra_info: { input_name: name },
    });
    if (!Object.hasOwn(node.inputs, name)) return [error('required_input_missing', 'Required input is missing')];
    const value = node.inputs[name];
    const link = Link.safeParse(value).data;
    if (link !== undefined) {
      const from = nodes.get(link[0]);
      const type = from === undefined ? undefined : known[from.className]?.outputs[link[1]];
      const wanted = info.kind === 'link' ? info.type : info.kind.toUpperCase();
      return type === wanted
        ? []
        : [
            error(
              'return_type_mismatch',
              'Return type mismatch between linked nodes',
              `${name}, received_type(${type}) mismatch input_type(${wanted})`,
            ),
          ];
    }
    const found = problemOf(info, value, files);
    return found === undefined ? [] : [error(found.type, found.message, `${name}: ${String(value)} ${found.details ?? ''}`.trim())];
  });
}

interface Problem {
  readonly type: string;
  readonly message: string;
  readonly details?: string;
}

function problemOf(info: InputInfo, value: unknown, { models, inputs }: ServerFiles): Problem | undefined {
  const wrongType = { type: 'invalid_input_type', message: 'Failed to convert an input value' };
  switch (info.kind) {
    case 'link':
      return { type: 'bad_linked_input', message: 'Bad linked input, must be a length-2 list of [node_id, slot_index]' };
    case 'int':
    case 'float': {
      if (typeof value !== 'number' && typeof value !== 'bigint') return wrongType;
      if (value < info.min) return { type: 'value_smaller_than_min', message: `Value ${value} smaller than min of ${info.min}` };
      return value > info.max ? { type: 'value_bigger_than_max', message: `Value ${value} bigger than max of ${info.max}` } : undefined;
    }
    case 'text':
      return typeof value === 'string' ? undefined : wrongType;
    case 'flag':
      return typeof value === 'boolean' ? undefined : wrongType;
    case 'choice':
    case 'file': {
      const choices = info.kind === 'choice' ? info.choices : info.of === 'model' ? models : inputs;
      const isListed = typeof value === 'string' && choices.includes(value);
      if (!isListed && info.kind === 'file' && info.of === 'input')
        return {
          type: 'custom_validation_failed',
          message: 'Custom validation failed for node',
          details: `Invalid image file: ${String(value)}`,
        };
      return isListed
        ? undefined
        : { type: 'value_not_in_list', message: 'Value not in list', details: `not in ${JSON.stringify(choices)}` };
    }
    default:
      return info satisfies never;
  }
}
