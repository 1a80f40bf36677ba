/** Every workflow, checked as ComfyUI checks it against what it says about its nodes. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { buildWorkflow, workflowNameOf, type WorkflowRequest } from '../../../../src/providers/image/decide/build-workflow.ts';
import { FAMILIES, FAMILY_NAMES, SIDES } from '../../../../src/providers/image/decide/image-families.ts';
import type { ImageModel } from '../../../../src/providers/image/decide/image-model.ts';
import { exactJson } from '../../../../src/providers/image/decide/workflow-parameters.ts';
import { COMFY_VERSIONS } from '../../../support/comfyui/object-info.ts';
import { validateWorkflow } from '../../../support/comfyui/validate-workflow.ts';

const COMPANIONS = {
  t5: 't5xxl_fp8_e4m3fn.safetensors',
  clip: 'clip_l.safetensors',
  clip_g: 'clip_g.safetensors',
  encoder: 'qwen_3_4b.safetensors',
  vae: 'ae.safetensors',
};
const MODELS: readonly ImageModel[] = FAMILY_NAMES.flatMap((family): readonly ImageModel[] => [
  { family, companions: undefined },
  ...(FAMILIES[family].loader === undefined ? [] : [{ family, companions: COMPANIONS }]),
]);
const CHECKPOINT = 'mine/model.safetensors';
const LISTED = [CHECKPOINT, 'mine/glow.safetensors', ...Object.values(COMPANIONS).map((name) => `mine/${name}`)];
/** Nodes for these came after 0.3.64. */
const versionsOf = (model: ImageModel) => (model.family.startsWith('flux-2') ? (['0.38.1'] as const) : COMFY_VERSIONS);
const [NEWEST] = COMFY_VERSIONS.slice(-1);

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
        for (const version of versionsOf(model))
          expect(validateWorkflow(built.workflow, LISTED, [], version)).toMatchObject({ ok: true, outputs: ['9'] });
      }),
      { numRuns: 30 },
    );
  });

  test.each([1, 3])('is accepted for changing %d images, and with LoRAs', (count) => {
    const { references, needsImage } = FAMILIES[model.family];
    if (count > (references ?? 1)) return;
    const names = Array.from({ length: count }, (_, index) => `svc/image-${index}.png`);
    const [first = '', ...more] = names;
    const imageOf = (each: string) => ({ name: each, width: 4000, height: 1000 });
    for (const mask of references === undefined ? [undefined, 'svc/a-mask.png'] : [undefined]) {
      const source = { images: [imageOf(first), ...more.map((each) => imageOf(each))], mask, strength: 0.4 } as const;
      const asked = { n: 10, size: { width: 64, height: 2048 }, loras: [{ file: 'glow.safetensors', strength: 0.7 }] };
      const { workflow } = buildWorkflow({ ...requestFor(model, asked), source });
      for (const version of versionsOf(model)) {
        expect(validateWorkflow(workflow, LISTED, [...names, 'svc/a-mask.png'], version)).toMatchObject({ ok: true, outputs: ['9'] });
        expect(validateWorkflow(workflow, LISTED, [], version)).toMatchObject({ ok: false });
      }
      const text = exactJson(workflow);
      expect(text.match(/"class_type":"LoadImage"/g)).toHaveLength(count + (mask === undefined ? 0 : 1));
      expect(text).toContain('"lora_name":"mine/glow.safetensors","strength_model":0.7');
      expect(text.includes('SetLatentNoiseMask')).toBe(mask !== undefined);
      // With references, the image is drawn anew; otherwise it is the beginning.
      expect(text.includes('Empty')).toBe(references !== undefined);
      expect(text.includes('"denoise":0.4')).toBe(references === undefined);
      if (references !== undefined && needsImage === undefined) expect(text).toContain('ReferenceLatent');
    }
  });

  test('contains the prompt, the number of images and the name of the files', () => {
    const text = exactJson(buildWorkflow(requestFor(model, { n: 3 })).workflow);
    const { side } = FAMILIES[model.family];
    expect(JSON.parse(text)['5'].inputs).toEqual({ width: side, height: side, batch_size: 3 });
    const { text: prompt, prompt: named = prompt } = JSON.parse(text)['6'].inputs;
    expect(named).toBe('a red fox');
    expect(text).not.toMatch(/"\$/);
    expect(JSON.parse(text)['9'].inputs).toEqual({ images: ['8', 0], filename_prefix: 'svc/abc' });
  });

  test('has a seed that is exact to the last digit', () => {
    for (const seed of [0n, 2n ** 53n + 1n, 18_446_744_073_709_551_615n]) {
      const text = exactJson(buildWorkflow(requestFor(model, {}, seed)).workflow);
      expect(text).toMatch(new RegExp(`"(noise_)?seed":${seed}[,}]`));
    }
  });

  test('is refused by a server without the model', () => {
    const checked = validateWorkflow(buildWorkflow(requestFor(model)).workflow, [], [], NEWEST);
    expect(JSON.stringify(checked)).toContain('value_not_in_list');
  });
});

test('a prompt cannot change the workflow around it', () => {
  const prompt = '","inputs":{}},"9":{"class_type":"X"}, 18446744073709551615n \u0000 \u2028';
  const text = exactJson(buildWorkflow(requestFor({ family: 'sdxl', companions: undefined }, { prompt })).workflow);
  expect(JSON.parse(text)['6'].inputs.text).toBe(prompt);
});

describe('`cfg`', () => {
  test.each(['flux-dev', 'flux-kontext', 'flux-2-dev'] as const)('is the guidance of %s, which was trained with it', (family) => {
    const model = { family, companions: COMPANIONS };
    expect(inputsOf(model, 'FluxGuidance', { cfg: 5 })).toMatchObject({ guidance: 5 });
    expect(inputsOf(model, 'KSampler', { cfg: 5 })?.['cfg'] ?? 1).toBe(1);
  });

  test.each(['flux-schnell', 'qwen-image', 'z-image'] as const)('is a second pass of %s with the negative prompt', (family) => {
    expect(inputsOf({ family, companions: COMPANIONS }, 'KSampler', { cfg: 3 })).toMatchObject({ cfg: 3, negative: ['7', 0] });
  });
});

describe('defaults are those of the templates of upstream', () => {
  test.each([
    ['sd-1.5', { steps: 20, cfg: 8, sampler_name: 'euler', scheduler: 'normal' }],
    ['sd-3.5', { steps: 20, cfg: 4.01, sampler_name: 'euler', scheduler: 'sgm_uniform' }],
    ['qwen-image', { steps: 20, cfg: 4, sampler_name: 'euler', scheduler: 'simple' }],
    ['z-image', { steps: 50, cfg: 4, sampler_name: 'res_multistep', scheduler: 'simple' }],
    ['z-image-turbo', { steps: 8, cfg: 1, sampler_name: 'res_multistep', scheduler: 'simple' }],
  ] as const)('%s', (family, expected) => {
    expect(inputsOf({ family, companions: COMPANIONS }, 'KSampler')).toMatchObject(expected);
  });

  test.each([
    ['qwen-image', 3.1],
    ['qwen-image-edit', 3.1],
    ['z-image', 3],
    ['z-image-turbo', 3],
  ] as const)('the shift of %s is %d', (family, shift) =>
    expect(inputsOf({ family, companions: COMPANIONS }, 'ModelSamplingAuraFlow')).toEqual({ model: ['4', 0], shift }),
  );

  test.each([
    ['flux-2-dev', 'FluxGuidance', { guidance: 4 }],
    ['flux-2-klein-4b', 'CFGGuider', { cfg: 1 }],
    ['flux-2-klein-base-9b', 'CFGGuider', { cfg: 5 }],
    ['flux-2-klein-9b', 'Flux2Scheduler', { steps: 4, width: 1024, height: 1024 }],
    ['flux-kontext', 'FluxGuidance', { guidance: 2.5 }],
    ['qwen-image', 'EmptySD3LatentImage', { width: 1328, height: 1328 }],
  ] as const)('%s: %s', (family, className, expected) =>
    expect(inputsOf({ family, companions: COMPANIONS }, className)).toMatchObject(expected),
  );
});

test('a method of the request takes the place of the one of the family', () => {
  const asked = { sampler: 'dpmpp_2m', scheduler: 'karras' };
  expect(inputsOf({ family: 'sd-1.5', companions: undefined }, 'KSampler', asked)).toMatchObject({
    sampler_name: 'dpmpp_2m',
    scheduler: 'karras',
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
