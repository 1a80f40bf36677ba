/**
 * What `/object_info` of two versions of ComfyUI says about the nodes of this project's workflows (`recorded/`, with where it is from): types, ranges and choices of their
 * inputs, and what they put out. Names of files are filled in by the stand-in.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';

export const COMFY_VERSIONS = ['0.3.64', '0.38.1'] as const;
export type ComfyVersion = (typeof COMFY_VERSIONS)[number];

export type InputInfo =
  | { readonly kind: 'link'; readonly type: string }
  | { readonly kind: 'int' | 'float'; readonly min: bigint | number; readonly max: bigint | number; readonly step: number }
  | { readonly kind: 'text' }
  | { readonly kind: 'flag' }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  /** One of the files that the server has. */
  | { readonly kind: 'file'; readonly of: 'model' | 'input' };

export interface NodeInfo {
  readonly inputs: Readonly<Record<string, InputInfo>>;
  readonly optional: Readonly<Record<string, InputInfo>>;
  readonly outputs: readonly string[];
  readonly isOutput: boolean;
}

export type Nodes = Readonly<Record<string, NodeInfo>>;

const Input = z.tuple([z.union([z.string(), z.array(z.string())])], z.record(z.string(), z.unknown()));
/** The type, and its options if it has any. */
const Inputs = z.record(z.string(), Input);
const Recorded = z.object({
  version: z.string(),
  source: z.string(),
  nodes: z.record(
    z.string(),
    z.object({
      input: z.object({ required: Inputs, optional: Inputs.default({}) }),
      output: z.array(z.string()),
      output_node: z.boolean(),
    }),
  ),
});

function infoOf(name: string, [type, options = {}]: z.output<typeof Input>): InputInfo {
  const choices = Array.isArray(type) ? type : type === 'COMBO' ? z.array(z.string()).parse(options['options']) : undefined;
  if (choices !== undefined) {
    if (choices.length > 0) return { kind: 'choice', choices };
    return { kind: 'file', of: name === 'image' ? 'input' : 'model' };
  }
  if (type === 'STRING') return { kind: 'text' };
  if (type === 'BOOLEAN') return { kind: 'flag' };
  if (type !== 'INT' && type !== 'FLOAT') return { kind: 'link', type: type.toString() };
  const { min, max, step = 1 } = z.object({ min: z.number(), max: z.number(), step: z.number().optional() }).parse(options);
  // JSON holds no integer of 64 bits.
  return { kind: type === 'INT' ? 'int' : 'float', min, max: name.endsWith('seed') ? 2n ** 64n - 1n : max, step };
}

const infosOf = (inputs: z.output<typeof Inputs>): Readonly<Record<string, InputInfo>> =>
  Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, infoOf(name, input)]));

function readRecorded(version: ComfyVersion) {
  const text = readFileSync(path.join(import.meta.dirname, `recorded/object-info-${version}.json`), 'utf8');
  const { nodes } = Recorded.parse(JSON.parse(text));
  const infos = Object.entries(nodes).map(([name, { input, output, output_node: isOutput }]): [string, NodeInfo] => [
    name,
    { inputs: infosOf(input.required), optional: infosOf(input.optional), outputs: output, isOutput },
  ]);
  return { nodes, infos: Object.fromEntries(infos) };
}

const RECORDED = { '0.3.64': readRecorded('0.3.64'), '0.38.1': readRecorded('0.38.1') };

export const nodesOf = (version: ComfyVersion): Nodes => RECORDED[version].infos;

/** As `/object_info/<class>` has it. */
export function describeNode(name: string, version: ComfyVersion, models: readonly string[]): object | undefined {
  const { nodes, infos } = RECORDED[version];
  const [recorded, info] = [nodes[name], infos[name]];
  if (recorded === undefined || info === undefined) return undefined;
  const required = Object.entries(recorded.input.required).map(([key, input]) => {
    const known = info.inputs[key];
    return [key, known?.kind === 'file' ? [known.of === 'model' ? models : []] : input];
  });
  return { [name]: { ...recorded, input: { ...recorded.input, required: Object.fromEntries(required) }, name, python_module: 'nodes' } };
}
