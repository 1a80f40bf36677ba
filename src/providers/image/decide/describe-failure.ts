/** Turns failures of ComfyUI into advice for the client or the operator. Pure. */
import type { TranslationEnd } from '../../translation.ts';
import type { ExecutionError, ValidationError } from './comfy-answers.ts';
import { SIDES } from './image-families.ts';
import type { ImageSize } from './image-parameters.ts';
import type { UserWorkflow } from './user-workflow.ts';
import { isFileInput } from './workflow-parameters.ts';

export interface Drawing {
  readonly model: string;
  /** Undefined: the workflow decides. */
  readonly size: ImageSize | undefined;
  readonly multiple: number;
  readonly n: number;
  readonly workflow?: Pick<UserWorkflow, 'name' | 'parameters'> | undefined;
}

/** Inputs of loaders: a value outside their list is a missing file. */
const FILE_INPUTS: ReadonlySet<string> = new Set(
  'ckpt_name unet_name clip_name clip_name1 clip_name2 clip_name3 vae_name lora_name'.split(' '),
);
/** Inputs whose values requests choose, and their fields. */
const METHOD_INPUTS: ReadonlyMap<string, string> = new Map([
  ['sampler_name', 'sampler'],
  ['scheduler', 'scheduler'],
]);

export const imageFailed = (message: string): TranslationEnd => ({ kind: 'refuse', code: 'image.failed', message });

export function describeRefusal(error: ValidationError | undefined, { model, workflow }: Drawing): TranslationEnd {
  if (error === undefined) return imageFailed('The image server refused the workflow without a reason; read the log of the slot');
  if (workflow !== undefined) return describeForWorkflow(error, workflow);
  const { type, input, nodeType, message } = error;
  const param = METHOD_INPUTS.get(input ?? '');
  if (type === 'value_not_in_list' && param !== undefined) {
    const known = 'see its list in the editor of ComfyUI, or leave it out';
    return { kind: 'refuse', code: 'request.invalid', param, message: `The image server has no such "${param}": ${message}; ${known}` };
  }
  if (type === 'value_not_in_list' && input !== undefined && FILE_INPUTS.has(input))
    return imageFailed(
      `The image server lacks a file of the model: ${message}; get it again ("svcctl model pull ${model}"), then restart the slot`,
    );
  if (type === 'invalid_prompt' || nodeType === undefined)
    return imageFailed(`The image server does not know a part of the workflow: ${message}; update it`);
  return imageFailed(`Node "${nodeType}" of the image server refused the workflow: ${message}; read the log of the slot`);
}

function describeForWorkflow(
  { type, input, nodeType, node, message }: ValidationError,
  { name, parameters }: Pick<UserWorkflow, 'name' | 'parameters'>,
): TranslationEnd {
  const [param] = Object.entries(parameters).find(([, inputs]) => inputs.some((each) => each.node === node && each.input === input)) ?? [];
  if (param !== undefined)
    return {
      kind: 'refuse',
      code: 'request.invalid',
      param,
      message: `The image server refused "${param}": ${message}; set it to another value`,
    };
  if (type === 'value_not_in_list' && input !== undefined && isFileInput(input, 'x.safetensors'))
    return imageFailed(`The image server lacks a file of workflow "${name}": ${message}; put it back, then restart the slot`);
  if (type === 'invalid_prompt' || nodeType === undefined)
    return imageFailed(`The image server lacks a node of workflow "${name}": ${message}; change the workflow`);
  return imageFailed(`Node "${nodeType}" of the image server refused workflow "${name}": ${message}; change the workflow`);
}

export function describeExecutionError({ exceptionType, message, nodeType }: ExecutionError, drawing: Drawing): TranslationEnd {
  if (/out ?of ?memory/i.test(`${exceptionType} ${message}`)) return imageFailed(adviseOnMemory(drawing));
  const where = nodeType === '' ? 'The image server' : `Node "${nodeType}" of the image server`;
  const what = message === '' ? 'it does not say why' : message;
  return imageFailed(`${where} failed: ${what}; read the log of the slot`);
}

/** Half of the pixels need about half of the memory beyond the weights. */
function adviseOnMemory({ size: drawn, multiple, n, workflow }: Drawing): string {
  if (drawn === undefined)
    return `The device has too little memory for the images of workflow "${workflow?.name ?? ''}"; let it draw smaller ones`;
  const { width, height } = drawn;
  const short = `The device has too little memory for ${n === 1 ? 'an image' : `${n} images at once`} of ${width}x${height}`;
  if (n > 1) return `${short}; set "n" to 1, and send several requests`;
  const smaller = (side: number): number => Math.max(SIDES.least, Math.floor(side / Math.SQRT2 / multiple) * multiple);
  const size = `${smaller(width)}x${smaller(height)}`;
  return size === `${width}x${height}`
    ? `${short}; stop other programs that use the device, or choose a smaller model`
    : `${short}; set "size" to "${size}" or less`;
}
