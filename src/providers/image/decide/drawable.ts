/** What a slot draws with: a template of the family of its model, or a workflow of its user. Both are read from a request and built in the same way. Pure. */
import type { ModelFacts } from '../../provider.ts';
import type { TranslatableBody } from '../../translation.ts';
import { bindWorkflow, graphOf, hasParameter, readForWorkflow, rulesOf, savedSize } from './bind-workflow.ts';
import { buildWorkflow, type BuiltWorkflow, type ImageSource } from './build-workflow.ts';
import { FAMILIES } from './image-families.ts';
import { imageModel, placeOf, type ImageModel } from './image-model.ts';
import { readParameters, type ImageParameters, type RequestRules } from './image-parameters.ts';
import type { ParameterProblem } from './request-fields.ts';
import { userWorkflow, type UserWorkflow } from './user-workflow.ts';

export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** What is known only after the request has been read. */
export interface BuildWith {
  readonly parameters: ImageParameters;
  readonly seed: bigint;
  readonly filenamePrefix: string;
  readonly source: ImageSource | undefined;
}

export type DrawableRead =
  | { readonly ok: true; readonly parameters: ImageParameters; readonly build: (request: BuildWith) => BuiltWorkflow }
  | { readonly ok: false; readonly problem: ParameterProblem };

export interface Drawable {
  readonly rules: RequestRules;
  /** Name of the file that the server loads first; empty if there is none. */
  readonly checkpoint: string;
  /** Undefined for a family. */
  readonly workflow: UserWorkflow | undefined;
  read(body: TranslatableBody): DrawableRead;
  /** Undefined: the workflow decides, and does not let requests say it. */
  sizeOf(parameters: ImageParameters): ImageSize | undefined;
  /** Which files it takes. */
  readonly image: FileUse;
  readonly mask: FileUse;
}

export type FileUse = 'never' | 'optional' | 'always';

/** Undefined if it is not known what the model is. */
export function drawableOf(model: ModelFacts | undefined): Drawable | undefined {
  if (model === undefined) return undefined;
  const known = imageModel(model);
  if (known !== undefined) return familyDrawable(known, placeOf(model.hostPath).name);
  const workflow = userWorkflow(model);
  return workflow === undefined ? undefined : workflowDrawable(workflow);
}

function familyDrawable(model: ImageModel, checkpoint: string): Drawable {
  const rules = FAMILIES[model.family];
  return {
    rules,
    checkpoint: baseOf(checkpoint),
    workflow: undefined,
    image: 'optional',
    mask: 'optional',
    read(body) {
      const read = readParameters(body, rules);
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
    checkpoint: baseOf(workflow.file?.name ?? ''),
    workflow,
    image: useOf('image'),
    mask: useOf('mask'),
    read(body) {
      const read = readForWorkflow(body, workflow, graph);
      return read.ok ? { ...read, build: (request) => bindWorkflow({ workflow, graph, values: read.values, ...request }) } : read;
    },
    sizeOf: ({ size }) => size ?? savedSize(workflow, graph),
  };
}

/** Why a path does not fit what is drawn with; undefined if it does. */
export function wrongPath({ image, workflow }: Drawable, isEdit: boolean): ParameterProblem | undefined {
  const name = workflow?.name ?? '';
  if (isEdit && image === 'never')
    return refuse(
      'image',
      `Use "/v1/images/generations": the workflow "${name}" takes no image, as no node of it has the title "svc: image"`,
    );
  return !isEdit && image === 'always'
    ? refuse('image', `Use "/v1/images/edits" and send an image: the workflow "${name}" changes one`)
    : undefined;
}

/** Whether a mask is there that is not used, or the other way round. */
export function wrongMask({ mask, workflow }: Drawable, hasMask: boolean): ParameterProblem | undefined {
  const name = workflow?.name ?? '';
  if (hasMask && mask === 'never')
    return refuse('mask', `Leave out "mask": the workflow "${name}" takes none, as no node of it has the title "svc: mask"`);
  return !hasMask && mask === 'always' ? refuse('mask', `Send a "mask": the workflow "${name}" needs one`) : undefined;
}

function refuse(param: string, message: string): ParameterProblem {
  return { code: 'request.invalid', message, param };
}

function baseOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
