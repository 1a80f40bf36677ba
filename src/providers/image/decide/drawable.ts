/** The two things a slot draws with: the template of a family, or the workflow of a user. Pure. */
import { basename } from 'node:path';
import type { ModelFacts } from '../../provider.ts';
import type { TranslatableBody } from '../../translation.ts';
import { buildWorkflow, type BuiltWorkflow, type WorkflowRequest } from './build-workflow.ts';
import { FAMILIES } from './image-families.ts';
import { imageModel, placeOf, type ImageModel } from './image-model.ts';
import {
  badField,
  flagOf,
  invalid,
  parametersOf,
  problemOfField,
  readParameters,
  requestFields,
  textOf,
  type Checked,
  type FamilyParameters,
  type Field,
  type ImageParameters,
  type ImageSize,
  type ImageTask,
  type ParameterProblem,
  type RequestRules,
} from './image-parameters.ts';
import { userWorkflow, type UserWorkflow } from './user-workflow.ts';
import {
  isFieldOfApi,
  isScalar,
  isStandardParameter,
  isWithoutEffect,
  parseExactJson,
  type Scalar,
  type Workflow,
  type WorkflowNode,
} from './workflow-parameters.ts';

interface BuildWith extends Pick<WorkflowRequest, 'seed' | 'filenamePrefix' | 'source'> {
  readonly parameters: ImageParameters & Partial<FamilyParameters>;
}

type DrawableRead = Checked<{
  readonly parameters: ImageParameters & Partial<FamilyParameters>;
  /** Fields of the request without effect. */
  readonly ignored: readonly string[];
  readonly build: (request: BuildWith) => BuiltWorkflow;
}>;

export interface Drawable {
  readonly rules: RequestRules;
  readonly checkpoint: string;
  readonly workflow: UserWorkflow | undefined;
  read(body: TranslatableBody, task: ImageTask): DrawableRead;
  /** Most images of an edit. */
  readonly images: number;
  sizeOf(parameters: ImageParameters): ImageSize | undefined;
  readonly image: FileUse;
  readonly mask: FileUse;
}

type FileUse = 'never' | 'optional' | 'always';

export function drawableOf(model: ModelFacts | undefined): Drawable | undefined {
  if (model === undefined) return undefined;
  const known = imageModel(model);
  if (known !== undefined) return familyDrawable(known, placeOf(model.hostPath).name);
  const workflow = userWorkflow(model);
  return workflow === undefined ? undefined : workflowDrawable(workflow);
}

function familyDrawable(model: ImageModel, checkpoint: string): Drawable {
  const rules = FAMILIES[model.family];
  const { references } = rules;
  return {
    rules,
    checkpoint: basename(checkpoint),
    workflow: undefined,
    image: rules.needsImage === true ? 'always' : 'optional',
    images: references ?? 1,
    mask: references === undefined ? 'optional' : 'never',
    read(body, task) {
      const read = readParameters(body, { family: rules, task, loras: model.loras ?? [] });
      return read.ok ? { ...read, build: (request) => buildWorkflow({ model, checkpoint, ...request }) } : read;
    },
    sizeOf: ({ size }) => size ?? { width: rules.side, height: rules.side },
  };
}

function workflowDrawable(workflow: UserWorkflow): Drawable | undefined {
  const graph = graphOf(workflow);
  if (graph === undefined) return undefined;
  const useOf = (name: string): FileUse => (hasParameter(workflow.parameters, name) ? 'always' : 'never');
  return {
    rules: rulesOf(workflow),
    checkpoint: basename(workflow.file?.name ?? ''),
    workflow,
    image: useOf('image'),
    images: 1,
    mask: useOf('mask'),
    read(body, task) {
      const read = readForWorkflow(body, { workflow, graph, task });
      return read.ok ? { ...read, build: (request) => bindWorkflow({ workflow, graph, values: read.values, ...request }) } : read;
    },
    sizeOf: ({ size }) => size ?? savedSize(workflow, graph),
  };
}

const nameOf = ({ workflow, rules }: Drawable): string =>
  workflow === undefined ? `Model of ${rules.title}` : `Workflow "${workflow.name}"`;

export function wrongPath(drawable: Drawable, task: ImageTask): ParameterProblem | undefined {
  const { image } = drawable;
  if (task !== 'generation' && image === 'never')
    return badField('image', `${nameOf(drawable)} takes no image: no node has the title "svc: image"; use "/v1/images/generations"`);
  if (task === 'generation' && image === 'always')
    return badField('image', `${nameOf(drawable)} needs an image; send one to "/v1/images/edits"`);
  return undefined;
}

export function wrongMask(drawable: Drawable, hasMask: boolean): ParameterProblem | undefined {
  const { mask, workflow } = drawable;
  const name = workflow?.name ?? '';
  if (hasMask && mask === 'never' && workflow === undefined)
    return badField('mask', `${nameOf(drawable)} takes no mask: say in the prompt what is to be changed, and leave out "mask"`);
  if (hasMask && mask === 'never')
    return badField('mask', `Workflow "${name}" takes no mask: no node has the title "svc: mask"; leave out "mask"`);
  return !hasMask && mask === 'always' ? badField('mask', `Workflow "${name}" needs a mask; send a "mask"`) : undefined;
}

type ReadForWorkflow = Checked<{
  readonly parameters: ImageParameters;
  readonly ignored: readonly string[];
  readonly values: ReadonlyMap<string, Scalar>;
}>;

type WorkflowUse = { readonly workflow: UserWorkflow; readonly graph: Workflow; readonly task: ImageTask };

const ANY_FAMILY: RequestRules = { ...FAMILIES.sdxl, title: 'this workflow' };

const rulesOf = ({ family }: Pick<UserWorkflow, 'family'>): RequestRules => (family === undefined ? ANY_FAMILY : FAMILIES[family]);

function readForWorkflow(body: TranslatableBody, { workflow, graph, task }: WorkflowUse): ReadForWorkflow {
  const { field, names } = requestFields(body);
  try {
    // `strength` and `steps` of a workflow may mean anything within the limits of every model.
    const parameters = parametersOf(field, { ...rulesOf(workflow), mostSteps: FAMILIES.sdxl.mostSteps }, task);
    for (const name of names) requireParameter(name, parameters, workflow);
    const values = new Map([...standardValues(parameters, field), ...ownValues(workflow, graph, field)]);
    return { ok: true, parameters, ignored: names.filter((name) => isWithoutEffect(name)), values };
  } catch (error) {
    return { ok: false, problem: problemOfField(error) };
  }
}

function requireParameter(name: string, { n, size, negativePrompt }: ImageParameters, { name: title, parameters }: UserWorkflow): void {
  if (isFieldOfApi(name) || hasParameter(parameters, name)) return;
  if ((name === 'n' && n === 1) || (name === 'size' && size === undefined) || (name === 'negative_prompt' && negativePrompt === '')) return;
  if (name === 'size' && hasParameter(parameters, 'width')) return;
  const known = Object.keys(parameters).filter((each) => !['width', 'height', 'image', 'mask'].includes(each));
  const listed = [...known, ...(hasParameter(parameters, 'width') ? ['size'] : [])].map((each) => `"${each}"`).join(', ');
  throw invalid(name, `Workflow "${title}" has no parameter "${name.slice(0, 50)}", only ${listed}; leave it out`);
}

const hasParameter = (parameters: UserWorkflow['parameters'], name: string): boolean => Object.hasOwn(parameters, name);

function standardValues(parameters: ImageParameters, field: Field): readonly (readonly [string, Scalar])[] {
  const { prompt, negativePrompt, n, steps, cfg, strength, size } = parameters;
  const given = Object.entries({ negative_prompt: negativePrompt, n, steps, cfg }).filter(([name]) => field(name) !== undefined);
  return [
    ['prompt', prompt],
    ...given,
    ...(strength === undefined ? [] : [['strength', strength] as const]),
    ...(size === undefined ? [] : Object.entries(size)),
  ];
}

/** Parameters of the author take values of the saved type. */
function ownValues({ parameters }: UserWorkflow, graph: Workflow, field: Field): readonly (readonly [string, Scalar])[] {
  return Object.entries(parameters).flatMap(([name, [at]]) => {
    if (isStandardParameter(name) || at === undefined || field(name) === undefined) return [];
    return [[name, ownValue(name, graph[at.node]?.inputs[at.input], field)] as const];
  });
}

function ownValue(name: string, saved: unknown, field: Field): Scalar {
  const value = field(name);
  if (typeof saved === 'string') return textOf(field, name, '');
  if (typeof saved === 'boolean') return flagOf(field, name);
  // Forms have strings only.
  const number = typeof value === 'string' && /^-?\d{1,19}(?:\.\d{1,15})?$/.test(value) ? parseExactJson(value) : value;
  if (typeof number === 'bigint' || (typeof number === 'number' && Number.isFinite(number))) return number;
  throw invalid(name, `Set "${name}" to a number`);
}

function savedSize({ parameters }: UserWorkflow, graph: Workflow): ImageSize | undefined {
  const [width, height] = ['width', 'height'].map((side) => {
    const [at] = hasParameter(parameters, side) ? (parameters[side] ?? []) : [];
    return at === undefined ? undefined : graph[at.node]?.inputs[at.input];
  });
  return typeof width === 'number' && typeof height === 'number' ? { width, height } : undefined;
}

function graphOf({ graph }: UserWorkflow): Workflow | undefined {
  const parsed = parseExactJson(graph);
  return isWorkflow(parsed) ? parsed : undefined;
}

function isWorkflow(value: unknown): value is Workflow {
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).every(
    (node: unknown) =>
      typeof node === 'object' && node !== null && 'class_type' in node && 'inputs' in node && typeof node.inputs === 'object',
  );
}

interface BindRequest extends Omit<BuildWith, 'parameters'> {
  readonly workflow: UserWorkflow;
  readonly graph: Workflow;
  readonly values: ReadonlyMap<string, Scalar>;
}

function bindWorkflow({ workflow, graph, values, seed, filenamePrefix, source }: BindRequest): BuiltWorkflow {
  const { parameters, name } = workflow;
  const files = { image: source?.images[0].name, mask: source?.mask };
  const all = new Map<string, Scalar>([...values, ['seed', seed]]);
  for (const [each, file] of Object.entries(files)) if (file !== undefined) all.set(each, file);
  const set = new Map<string, [string, Scalar][]>();
  for (const [each, value] of all) {
    for (const { node, input } of hasParameter(parameters, each) ? (parameters[each] ?? []) : [])
      set.set(node, [...(set.get(node) ?? []), [input, value]]);
  }
  const bound = Object.entries(graph).map(([id, node]): [string, WorkflowNode] => {
    // Other saved files are named after the job as well, and removed with it.
    const prefix = isScalar(node.inputs['filename_prefix'])
      ? [['filename_prefix', id === workflow.output ? filenamePrefix : `${filenamePrefix}-${id}`]]
      : [];
    return [id, { ...node, inputs: { ...node.inputs, ...Object.fromEntries(set.get(id) ?? []), ...Object.fromEntries(prefix) } }];
  });
  return { name, workflow: Object.fromEntries(bound), saveNode: workflow.output };
}
