/** A workflow in ComfyUI's API format as a model of a slot, put there by the operator, but not trusted. Pure. */
import { z } from 'zod';
import type { ModelFacts } from '../../provider.ts';
import type { Readable } from '../../../schema/words/failure.ts';
import * as graphs from './workflow-parameters.ts';
import { FAMILY_NAMES } from './image-families.ts';

/** Other programs keep their own JSON files beside models. */
export const WORKFLOW_ENDING = '.workflow.json';
/** Workflows of hundreds of nodes have a few hundred kilobytes. */
export const MOST_WORKFLOW_BYTES = 2 ** 20;
const MOST_NODES = 1000;

const Kept = z.object({
  name: z.string(),
  /** JSON with exact integers, without titles, and with file names of the server. */
  graph: z.string(),
  output: z.string(),
  parameters: z.record(z.string(), z.array(z.object({ node: z.string(), input: z.string() }))),
  classes: z.array(z.string()),
  file: z.object({ className: z.string(), name: z.string() }).optional(),
  /** Family of the model file that needs the most memory; absent: none is known. */
  family: z.enum(FAMILY_NAMES).optional(),
});

type Immutable<Value> = { readonly [Key in keyof Value]: Value[Key] extends object ? Immutable<Value[Key]> : Value[Key] };
export type UserWorkflow = Immutable<z.output<typeof Kept>>;

export const userWorkflow = ({ provider, contents }: Pick<ModelFacts, 'provider' | 'contents'>): UserWorkflow | undefined =>
  provider === 'image' && contents !== undefined ? Kept.safeParse(contents['workflow']).data : undefined;

export interface NamedFile {
  readonly node: string;
  readonly input: string;
  readonly name: string;
}

export interface ReadWorkflow {
  readonly workflow: graphs.Workflow;
  readonly output: string;
  readonly parameters: graphs.WorkflowParameters;
  readonly files: readonly NamedFile[];
}

export type ReadingOfWorkflow = Readable<{ readonly read: ReadWorkflow }>;

const Node = z.object({
  class_type: z.string().regex(/^[^\p{Cc}"]{1,200}$/u),
  inputs: z.record(z.string(), z.unknown()),
  _meta: z.object({ title: z.string().catch('') }).catch({ title: '' }),
});
const NodeId = /^[\w:.-]{1,100}$/;

export function readUserWorkflow(text: string): ReadingOfWorkflow {
  const parsed = z.record(z.string(), z.unknown()).safeParse(graphs.parseExactJson(text)).data;
  if (parsed === undefined) return refuse('is no JSON object: save it again in ComfyUI with "Export (API)"');
  if (Array.isArray(parsed['nodes'])) return refuse('has the format of ComfyUI’s editor: save it in ComfyUI with "Export (API)" instead');
  const nodes: [string, graphs.WorkflowNode][] = [];
  const titles = new Map<string, string>();
  for (const [id, value] of Object.entries(parsed)) {
    const node = NodeId.test(id) ? Node.safeParse(value).data : undefined;
    if (node === undefined || isDeeper(node.inputs, MOST_DEPTH))
      return refuse(`has no node of ComfyUI as "${id.slice(0, 50)}": save it again in ComfyUI with "Export (API)"`);
    nodes.push([id, { class_type: node.class_type, inputs: node.inputs }]);
    titles.set(id, node._meta.title);
  }
  if (nodes.length === 0 || nodes.length > MOST_NODES) return refuse(`has ${nodes.length} nodes: save one with 1 to ${MOST_NODES}`);
  const workflow = Object.fromEntries(nodes);
  const problem = problemOfLinks(workflow);
  if (problem !== undefined) return refuse(problem);
  const titled = graphs.readTitles(workflow, titles);
  if (!titled.ok) return titled;
  return readTitled(workflow, titled.parameters, titled.output);
}

function readTitled(workflow: graphs.Workflow, parameters: graphs.WorkflowParameters, titled: string | undefined): ReadingOfWorkflow {
  if (!parameters.has('prompt')) return refuse('has no prompt: give the title "svc: prompt" to the node that takes it, and save it again');
  const savers = Object.keys(workflow).filter((id) => workflow[id]?.class_type === 'SaveImage');
  const output = titled ?? savers[0];
  if (output === undefined || !savers.includes(output)) return refuse('saves no image: add the node "Save Image" to it, and save it again');
  if (titled === undefined && savers.length > 1)
    return refuse('saves several images: give the title "svc: output" to the node whose images are answered, and save it again');
  const settable = new Set(['image', 'mask'].flatMap((name) => (parameters.get(name) ?? []).map(({ node }) => node)));
  const loaded = Object.entries(workflow).find(
    ([id, { class_type: className, inputs }]) =>
      className.startsWith('LoadImage') && typeof inputs['image'] === 'string' && !settable.has(id),
  );
  if (loaded !== undefined)
    return refuse(
      `reads the file ${JSON.stringify(String(loaded[1].inputs['image']).slice(0, 100))}, which the image server does not have: give its node the title "svc: image" or "svc: mask", so that requests send it`,
    );
  const files = Object.entries(workflow).flatMap(([node, { inputs }]) =>
    Object.entries(inputs).flatMap(([input, value]) =>
      graphs.isFileInput(input, value) ? [{ node, input, name: value.replaceAll('\\', '/') }] : [],
    ),
  );
  const [unsafe] = files.filter(({ name }) => !/\.(?:safetensors|sft)$/i.test(name));
  if (unsafe !== undefined)
    return refuse(`loads the file "${shown(unsafe.name)}", which can contain a program: use one in the format safetensors`);
  const [outside] = files.filter(({ name }) => name.startsWith('/') || name.split('/').includes('..'));
  if (outside !== undefined) return refuse(`loads the file "${shown(outside.name)}": use a name without ".." that does not begin with "/"`);
  return { ok: true, read: { workflow, output, parameters, files } };
}

function problemOfLinks(workflow: graphs.Workflow): string | undefined {
  for (const [id, { class_type: className, inputs }] of Object.entries(workflow)) {
    for (const [input, value] of Object.entries(inputs)) {
      if (graphs.isLink(value) && !Object.hasOwn(workflow, value[0]))
        return `lacks the node "${value[0].slice(0, 50)}", which the node "${id}" (${className}) takes "${input.slice(0, 50)}" from: connect it in ComfyUI, and save it again`;
    }
  }
  const id = graphs.nodeInCycle(workflow);
  return id === undefined
    ? undefined
    : `goes in a circle: the node "${id}" (${workflow[id]?.class_type ?? ''}) needs its own output; connect it differently in ComfyUI, and save it again`;
}

/** Values of nodes are lists and tables of a few levels at most. */
const MOST_DEPTH = 10;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((each: unknown) => isDeeper(each, levels - 1));
}

const refuse = (problem: string): { readonly ok: false; readonly problem: string } => ({ ok: false, problem });
const shown = (text: string): string => text.slice(0, 100);

export function keepWorkflow(
  name: string,
  { workflow, output, parameters, files }: ReadWorkflow,
  nameOf: (file: NamedFile) => string,
  family: UserWorkflow['family'],
): UserWorkflow {
  const renamed = Object.entries(workflow).map(([id, node]): [string, graphs.WorkflowNode] => {
    const own = files.filter((file) => file.node === id).map((file) => [file.input, nameOf(file)] as const);
    return [id, { ...node, inputs: { ...node.inputs, ...Object.fromEntries(own) } }];
  });
  const [first] = files;
  const className = first === undefined ? undefined : workflow[first.node]?.class_type;
  return {
    name,
    graph: graphs.exactJson(Object.fromEntries(renamed)),
    output,
    parameters: Object.fromEntries(parameters),
    classes: [...new Set(Object.values(workflow).map((node) => node.class_type))],
    ...(first === undefined || className === undefined ? {} : { file: { className, name: nameOf(first) } }),
    ...(family === undefined ? {} : { family }),
  };
}
