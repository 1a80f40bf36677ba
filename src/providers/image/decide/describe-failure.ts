/** Turns failures of ComfyUI into advice for the client or the operator. Pure. */
import type { TranslationEnd } from '../../translation.ts';
import type { ExecutionError, ValidationError } from './comfy-answers.ts';
import { SIDES } from './image-families.ts';
import type { UserWorkflow } from './user-workflow.ts';
import { isFileInput } from './workflow-parameters.ts';

export interface Drawing {
  readonly model: string;
  /** Undefined: the workflow decides. */
  readonly size: { readonly width: number; readonly height: number } | undefined;
  readonly multiple: number;
  readonly n: number;
  /** Workflow of a user; undefined: a template. */
  readonly workflow?: Pick<UserWorkflow, 'name' | 'parameters'> | undefined;
}

/** Inputs of loaders: a value outside their list is a missing file. */
const FILE_INPUTS: ReadonlySet<string> = new Set(['ckpt_name', 'unet_name', 'clip_name', 'clip_name1', 'clip_name2', 'vae_name']);

export const imageFailed = (message: string): TranslationEnd => ({ kind: 'refuse', code: 'image.failed', message });

export function describeRefusal(error: ValidationError | undefined, { model, workflow }: Drawing): TranslationEnd {
  if (error === undefined)
    return imageFailed('Read the log of the slot: the image server did not accept the workflow, and does not say why');
  if (workflow !== undefined) return describeForWorkflow(error, workflow);
  const { type, input, nodeType, message } = error;
  if (type === 'value_not_in_list' && input !== undefined && FILE_INPUTS.has(input))
    return imageFailed(
      `Get the model again ("svcctl model pull ${model}"), then restart the slot: the image server does not have a file of it: ${message}`,
    );
  if (type === 'invalid_prompt' || nodeType === undefined)
    return imageFailed(`Update the image server: it does not know a part of the workflow: ${message}`);
  return imageFailed(`Read the log of the slot: "${nodeType}" of the image server does not accept the workflow: ${message}`);
}

/** Advice for the author of a workflow, or the client that has set a parameter of it. */
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
      message: `Set "${param}" to another value: the image server refuses it: ${message}`,
    };
  if (type === 'value_not_in_list' && input !== undefined && isFileInput(input, 'x.safetensors'))
    return imageFailed(
      `Put back the file that the workflow "${name}" loads, then restart the slot: the image server does not have it: ${message}`,
    );
  if (type === 'invalid_prompt' || nodeType === undefined)
    return imageFailed(`Change the workflow "${name}": the image server does not have a node of it: ${message}`);
  return imageFailed(`Change the workflow "${name}": "${nodeType}" of the image server does not accept it: ${message}`);
}

export function describeExecutionError({ exceptionType, message, nodeType }: ExecutionError, drawing: Drawing): TranslationEnd {
  if (/out ?of ?memory/i.test(`${exceptionType} ${message}`)) return imageFailed(adviseOnMemory(drawing));
  const where = nodeType === '' ? 'the image server' : `"${nodeType}" of the image server`;
  const what = message === '' ? 'it does not say why' : message;
  return imageFailed(`Read the log of the slot: ${where} failed: ${what}`);
}

/** Half of the pixels need about half of the memory beyond the weights. */
function adviseOnMemory({ size: drawn, multiple, n, workflow }: Drawing): string {
  if (drawn === undefined)
    return `Let the workflow "${workflow?.name ?? ''}" draw smaller images: the device has no memory for those that it draws`;
  const { width, height } = drawn;
  const short = `the device has no memory for ${n === 1 ? 'an image' : `${n} images at once`} of ${width}x${height}`;
  if (n > 1) return `Set "n" to 1, and ask several times: ${short}`;
  const smaller = (side: number): number => Math.max(SIDES.least, Math.floor(side / Math.SQRT2 / multiple) * multiple);
  const size = `${smaller(width)}x${smaller(height)}`;
  return size === `${width}x${height}`
    ? `Stop other programs that use the device, or choose a smaller model: ${short}`
    : `Set "size" to "${size}" or less: ${short}`;
}
