/** Every workflow, checked as ComfyUI checks it against what it says about its nodes. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { buildWorkflow, workflowNameOf, type WorkflowRequest } from '../../../../src/providers/image/decide/build-workflow.ts';
import { FAMILIES, FAMILY_NAMES, SIDES } from '../../../../src/providers/image/decide/image-families.ts';
import type { ImageModel } from '../../../../src/providers/image/decide/image-model.ts';
import { exactJson } from '../../../../src/providers/image/decide/workflow-parameters.ts';
import { validateWorkflow } from '../../../support/comfyui/validate-workflow.ts';

const COMPANIONS = { t5: 't5xxl_fp8_e4m3fn.safetensors', clip: 'clip_l.safetensors', vae: 'ae.safetensors' };
const MODELS: readonly ImageModel[] = [
  { family: 'sd-1.5', companions: undefined },
  { family: 'sdxl', companions: undefined },
  { family: 'sdxl-turbo', companions: undefined },
  { family: 'flux-schnell', companions: undefined },
  { family: 'flux-schnell', companions: COMPANIONS },
  { family: 'flux-dev', companions: undefined },
  { family: 'flux-dev', companions: COMPANIONS },
];
const CHECKPOINT = 'mine/model.safetensors';
const LISTED = [CHECKPOINT, ...Object.values(COMPANIONS).map((name) => `mine/${name}`)];

function requestFor(model: ImageModel, more: Partial<WorkflowRequest['parameters']> = {}, seed = 7n): WorkflowRequest {
  const { steps, cfg } = FAMILIES[model.family];
  const parameters = { prompt: 'a red fox', negativePrompt: 'rain', n: 1, size: undefined, steps, cfg, ...more };
  return { model, checkpoint: CHECKPOINT, parameters, seed, filenamePrefix: 'svc/abc' };
}

function nodesOf(model: ImageModel, more: Partial<WorkflowRequest['parameters']> = {}) {
  return Object.values(buildWorkflow(requestFor(model, more)).workflow);
}

const inputsOf = (model: ImageModel, className: string, more: Partial<WorkflowRequest['parameters']> = {}) =>
  nodesOf(model, more).find((each) => each.class_type === className)?.inputs;

describe.each(MODELS.map((model) => [workflowNameOf(model), model] as const))('the workflow "%s"', (name, model) => {
  test('is accepted by a server, whatever a client may ask for', () => {
    const { multiple, mostSteps } = FAMILIES[model.family];
    const side = fc.integer({ min: SIDES.least / multiple, max: SIDES.most / multiple }).map((count) => count * multiple);
    const parameters = fc.record({
      prompt: fc.string({ minLength: 1 }),
      negativePrompt: fc.string(),
      n: fc.integer({ min: 1, max: 10 }),
      size: fc.option(fc.record({ width: side, height: side }), { nil: undefined }),
      steps: fc.integer({ min: 1, max: mostSteps }),
      cfg: fc.double({ min: 0, max: 30, noNaN: true }),
    });
    fc.assert(
      fc.property(parameters, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (asked, seed) => {
        const built = buildWorkflow(requestFor(model, asked, seed));
        expect(built.name).toBe(name);
        expect(validateWorkflow(built.workflow, LISTED)).toMatchObject({ ok: true, outputs: ['9'] });
      }),
    );
  });

  test.each(['svc/a-mask.png', undefined])('is accepted for changing an image with the mask %p, whatever a client may ask for', (mask) => {
    const source = { image: 'svc/a-image.png', mask, strength: 0.4 };
    const { workflow } = buildWorkflow({ ...requestFor(model, { n: 10, size: { width: 64, height: 2048 } }), source });
    expect(validateWorkflow(workflow, LISTED, ['svc/a-image.png', 'svc/a-mask.png'])).toMatchObject({ ok: true, outputs: ['9'] });
    const text = exactJson(workflow);
    expect(text).toContain('"denoise":0.4');
    expect(text).not.toContain('Empty');
    expect(text.includes('SetLatentNoiseMask')).toBe(mask !== undefined);
    expect(validateWorkflow(workflow, LISTED, [])).toMatchObject({ ok: false });
  });

  test('contains the prompt, the number of images and the name of the files', () => {
    const text = exactJson(buildWorkflow(requestFor(model, { n: 3 })).workflow);
    const { side } = FAMILIES[model.family];
    expect(JSON.parse(text)['5'].inputs).toEqual({ width: side, height: side, batch_size: 3 });
    expect(JSON.parse(text)['6'].inputs.text).toBe('a red fox');
    expect(JSON.parse(text)['9'].inputs).toEqual({ images: ['8', 0], filename_prefix: 'svc/abc' });
  });

  test('has a seed that is exact to the last digit', () => {
    for (const seed of [0n, 2n ** 53n + 1n, 18_446_744_073_709_551_615n]) {
      const text = exactJson(buildWorkflow(requestFor(model, {}, seed)).workflow);
      expect(text).toMatch(new RegExp(`"(noise_)?seed":${seed}[,}]`));
    }
  });

  test('is refused by a server without the model', () => {
    const checked = validateWorkflow(buildWorkflow(requestFor(model)).workflow, []);
    expect(JSON.stringify(checked)).toContain('value_not_in_list');
  });
});

test('a prompt cannot change the workflow around it', () => {
  const prompt = '","inputs":{}},"9":{"class_type":"X"}, 18446744073709551615n \u0000 \u2028';
  const text = exactJson(buildWorkflow(requestFor({ family: 'sdxl', companions: undefined }, { prompt })).workflow);
  expect(JSON.parse(text)['6'].inputs.text).toBe(prompt);
});

describe('`cfg`', () => {
  const [, , , , split, , devSplit] = MODELS;

  test('is the guidance of FLUX.1 dev, which was trained with it', () => {
    if (devSplit === undefined) throw new Error('no model');
    expect(inputsOf(devSplit, 'FluxGuidance', { cfg: 5 })).toMatchObject({ guidance: 5 });
    expect(inputsOf(devSplit, 'BasicGuider')).toMatchObject({ conditioning: ['12', 0] });
  });

  test('makes FLUX.1 schnell compute with the negative prompt only if it is not 1', () => {
    if (split === undefined) throw new Error('no model');
    expect(inputsOf(split, 'BasicGuider')).toBeDefined();
    expect(inputsOf(split, 'CFGGuider', { cfg: 3 })).toMatchObject({ cfg: 3, negative: ['7', 0] });
  });
});

test('every family has a workflow, and sizes that it can draw', () => {
  for (const family of FAMILY_NAMES) {
    const { side, multiple, steps, mostSteps } = FAMILIES[family];
    expect(MODELS.some((model) => model.family === family)).toBe(true);
    expect(side % multiple).toBe(0);
    expect(steps).toBeLessThanOrEqual(mostSteps);
  }
});
