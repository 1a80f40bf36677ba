/** What a slot with an image model serves, what is wrong with the model, and what its server is asked for. Pure. */
import { parseJson } from '../../../platform/decide/parse-json.ts';
import type { ModelFacts, SlotContext } from '../../provider.ts';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';
import { FAMILIES } from './image-families.ts';
import { imageModel, missingCompanions, placeOf } from './image-model.ts';
import { userWorkflow } from './user-workflow.ts';

export function capabilitiesOf(model: ModelFacts): readonly Capability[] {
  return imageModel(model) === undefined && userWorkflow(model) === undefined ? [] : ['image'];
}

/** Why the model must not be served, and what to do. */
export function objectionTo(model: ModelFacts): string | undefined {
  if (userWorkflow(model) !== undefined) return undefined;
  const known = imageModel(model);
  if (known === undefined) {
    const titles = Object.values(FAMILIES).map(({ title }) => title);
    return `Choose a model of ${titles.join(', ')}: this version has no workflow for "${model.id}"`;
  }
  const missing = missingCompanions(known);
  if (missing.length === 0) return undefined;
  return `Put ${missing.join(' and ')} into the directory of "${model.id}": its file has no text encoders and no decoder`;
}

/** The class of the node that loads the model, whose input lists every file that the server has. Undefined for a workflow that loads no model. */
export function loaderOf({ model }: Pick<SlotContext, 'model'>): { readonly className: string; readonly checkpoint: string } | undefined {
  const workflow = userWorkflow(model);
  if (workflow !== undefined)
    return workflow.file === undefined ? undefined : { className: workflow.file.className, checkpoint: workflow.file.name };
  const isSplit = imageModel(model)?.companions !== undefined;
  return { className: isSplit ? 'UNETLoader' : 'CheckpointLoaderSimple', checkpoint: placeOf(model.hostPath).name };
}

/** Whether the answer to `/object_info/<class>` lists a file. ComfyUI writes JSON with escapes for everything beyond ASCII. */
export function listsFile(body: string, name: string): boolean {
  const escaped = JSON.stringify(name).replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return body.includes(escaped) || body.includes(JSON.stringify(name));
}

/** Whether the answer to `/object_info/<class>` describes a node of this class: for any other, it is an empty object. */
export function describesClass(body: string, className: string): boolean {
  const parsed = parseJson(body);
  return typeof parsed === 'object' && parsed !== null && Object.hasOwn(parsed, className);
}
