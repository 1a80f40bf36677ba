/** Workflows of users: what is read of a file, and what is wrong with one. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { imageFormat } from '../../../../src/providers/image/image-format.ts';
import { drawableOf } from '../../../../src/providers/image/decide/drawable.ts';
import { readUserWorkflow } from '../../../../src/providers/image/decide/user-workflow.ts';
import { image } from '../../../../src/providers/image/image.ts';
import { ModelId, SlotName } from '../../../../src/schema/words/names.ts';
import { changed, PORTRAIT, RETOUCH, type SavedWorkflow } from '../../../support/comfyui/user-workflows.ts';
import { specOf } from '../../../support/providers/odd-models.ts';
import { safetensors, SHAPES } from '../../../support/comfyui/checkpoints.ts';

const ID = ModelId.parse('image/models/checkpoints/portrait/portrait.workflow.json');
const NAME = 'portrait.workflow.json';

/** In the directory of the workflow, which is one below those of checkpoints. */
const FILES: Readonly<Record<string, Parameters<typeof safetensors>[0]>> = {
  '../sdxl-turbo/base.safetensors': SHAPES.sdxl,
  'glow.safetensors': SHAPES.other,
};

async function read(text: string, present = FILES) {
  const sizeOf = (name: string): number => {
    if (name === NAME) return Buffer.byteLength(text);
    const shapes = present[name];
    if (shapes === undefined) throw new Error(`"${name}" is not there`);
    return safetensors(shapes).sizeBytes;
  };
  return imageFormat.read(
    { id: ID, entry: { name: NAME } },
    {
      names: async () => [NAME],
      sizeOf: async (name) => sizeOf(name),
      read: async (name, offset, length) =>
        (name === NAME ? Buffer.from(text) : safetensors(present[name] ?? {}).header).subarray(offset, offset + length),
    },
  );
}

async function factsOf(workflow: SavedWorkflow) {
  const reading = await read(JSON.stringify(workflow));
  if (reading.kind !== 'model') throw new Error(reading.message);
  return { id: ID, hostPath: `/store/${ID}`, provider: 'image', ...reading } as const;
}

describe('a workflow that a user has saved', () => {
  test('is a model: it has the size and the family of the models that it loads', async () => {
    expect(imageFormat.recognize({ name: NAME })).toBe('model');
    for (const name of ['portrait.json', '.workflow.json', 'workflow_api.json']) expect(imageFormat.recognize({ name })).toBeUndefined();
    const facts = await factsOf(PORTRAIT);
    expect(facts.family).toBe('SDXL (workflow)');
    expect(facts.sizeBytes).toBeGreaterThan(safetensors(SHAPES.sdxl).sizeBytes);
    expect(image.capabilities(SlotName.parse('img'), specOf('image'), facts)).toEqual(['image']);
    expect(image.objection?.(SlotName.parse('img'), specOf('image'), facts)).toBeUndefined();
    expect(image.leastDeviceBytes?.(SlotName.parse('img'), specOf('image'), facts)).toBe(8e9);
  });

  test('names files as the server lists them: beside the workflow, or below the directory of checkpoints', async () => {
    const { contents } = await factsOf(PORTRAIT);
    expect(contents['workflow']).toMatchObject({
      name: 'portrait',
      graph: expect.stringMatching(/"ckpt_name":"sdxl-turbo\/base.safetensors".*"lora_name":"portrait\/glow.safetensors"/),
      file: { className: 'CheckpointLoaderSimple', name: 'sdxl-turbo/base.safetensors' },
      output: '12:1',
    });
  });

  test('keeps seeds that a number cannot hold', async () => {
    const text = JSON.stringify(PORTRAIT).replace('"seed":7', '"seed":18446744073709551615');
    expect(await read(text)).toMatchObject({ contents: { workflow: { graph: expect.stringContaining('"seed":18446744073709551615') } } });
  });
});

const SECOND_OUTPUT = Object.fromEntries(
  Object.entries(PORTRAIT).flatMap(([id, node]): [string, typeof node][] => (id === '12:1' ? [['20', node]] : [])),
);

describe('what is wrong with one is said with what to do', () => {
  const refused = (workflow: SavedWorkflow | string) => {
    const reading = readUserWorkflow(typeof workflow === 'string' ? workflow : JSON.stringify(workflow));
    return reading.ok ? 'accepted' : reading.problem;
  };

  test.each<[string, SavedWorkflow | string, RegExp]>([
    [
      'a node that is missing',
      changed(PORTRAIT, '7', null),
      /^lacks the node "7", which the node "12:1" \(SaveImage\) takes "images" from: connect/,
    ],
    [
      'a cycle',
      changed(PORTRAIT, '3', { inputs: { clip: ['7', 0] } }),
      /^goes in a circle: the node "\d" \(\w+\) needs its own output; connect it differently/,
    ],
    [
      'a node that takes itself',
      changed(PORTRAIT, '7', { inputs: { samples: ['7', 0] } }),
      /^goes in a circle: the node "7" \(VAEDecode\)/,
    ],
    ['no prompt', changed(PORTRAIT, '3', { title: 'Prompt' }), /^has no prompt: give the title "svc: prompt" to the node/],
    ['no image that is saved', changed(PORTRAIT, '12:1', null), /^saves no image: add the node "Save Image"/],
    ['two images that are saved', { ...PORTRAIT, ...SECOND_OUTPUT }, /^saves several images: give the title "svc: output"/],
    [
      'a parameter that is misspelt',
      changed(PORTRAIT, '3', { title: 'svc: promt' }),
      /the node has no input "promt"; .* "promt" is no parameter of the service, which are prompt, /,
    ],
    [
      'a parameter without an input',
      changed(PORTRAIT, '7', { title: 'svc: seed' }),
      /"svc: seed": the node has no input "seed" or "noise_seed" or "value"/,
    ],
    ['a parameter that is connected', changed(PORTRAIT, '3', { title: 'svc: prompt=clip' }), /take away what is connected to "clip"/],
    [
      'a prompt that is a number',
      changed(PORTRAIT, '6', { title: 'svc: prompt=cfg' }),
      /name another input for "prompt": "cfg" has the value "6.5"/,
    ],
    ['a file that clients would choose', changed(PORTRAIT, '2', { title: 'svc: style_file=lora_name' }), /requests must not choose files/],
    [
      'a place that clients would choose',
      changed(PORTRAIT, '12:1', { title: 'svc: place=filename_prefix' }),
      /requests must not choose files/,
    ],
    [
      'a parameter with the name of another field',
      changed(PORTRAIT, '2', { title: 'svc: model=strength_model' }),
      /choose another name for the parameter "model"/,
    ],
    [
      'a title that is no list of names',
      changed(PORTRAIT, '3', { title: 'svc: The Prompt!' }),
      /write the names of parameters after "svc:"/,
    ],
    ['only one side', changed(PORTRAIT, '5', { title: 'svc: width' }), /give the title "svc: height" to a node, too/],
    [
      'a picture of the author',
      changed(RETOUCH, '8', { title: 'Load Image' }),
      /^reads the file "example.png", which the image server does not have: give its node the title "svc: image"/,
    ],
    [
      'a file that can contain a program',
      changed(PORTRAIT, '1', { inputs: { ckpt_name: 'old.ckpt' } }),
      /"old.ckpt", which can contain a program/,
    ],
    ['a file outside', changed(PORTRAIT, '1', { inputs: { ckpt_name: '..\\..\\x.safetensors' } }), /use a name without "\.\."/],
    [
      'the format of the editor',
      '{"nodes": [], "links": []}',
      /^has the format of ComfyUI’s editor: save it in ComfyUI with "Export \(API\)"/,
    ],
    ['no JSON', '{', /^is no JSON object/],
    ['a list', '[]', /^is no JSON object/],
    ['nothing in it', '{}', /^has 0 nodes/],
    ['a leftover', JSON.stringify({ ...PORTRAIT, extra: { a: 1 } }), /^has no node of ComfyUI as "extra"/],
    [
      'far too many levels',
      `{"1":{"class_type":"X","inputs":{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}}}`,
      /^(has no node|is no JSON)/,
    ],
    ['1001 nodes', JSON.stringify(Object.fromEntries(Array.from({ length: 1001 }, (_, id) => [id, PORTRAIT['1']]))), /^has 1001 nodes/],
  ])('%s', (_what, workflow, message) => expect(refused(workflow)).toMatch(message));

  test('10 MB, of which nothing is read', async () => {
    expect(await read(`{"x":"${'y'.repeat(10_000_000)}"}`)).toEqual({
      kind: 'unusable',
      message: `The workflow "${ID}" has 10000008 bytes: remove what it does not need, since at most 1048576 bytes are read`,
    });
  });

  test('a model that is not in the store', async () => {
    const reading = await read(JSON.stringify(PORTRAIT), { 'glow.safetensors': SHAPES.other });
    expect(reading).toEqual({
      kind: 'unusable',
      message: `The workflow "${ID}" loads the file "sdxl-turbo/base.safetensors", which is not in the model store: put it beside the workflow, or write its path below "image/models/checkpoints"`,
    });
  });

  test('a circle of a thousand nodes is found, and none where there is none', () => {
    const chain = (last: string) =>
      Object.fromEntries(
        Array.from({ length: 990 }, (_, id) => [`c${id}`, { class_type: 'X', inputs: { a: [id === 989 ? last : `c${id + 1}`, 0] } }]),
      );
    expect(refused(JSON.stringify({ ...PORTRAIT, ...chain('c0') }))).toMatch(/^goes in a circle/);
    expect(refused(JSON.stringify({ ...PORTRAIT, ...chain('1') }))).toBe('accepted');
  });

  test('whatever a file contains, reading it is no error', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom('3', '6', '12:1'), fc.string(), (value, id, title) => {
        for (const each of [
          value,
          { ...PORTRAIT, [id]: value },
          { ...PORTRAIT, [id]: { class_type: 'X', inputs: value, _meta: { title } } },
        ])
          expect(typeof readUserWorkflow(JSON.stringify(each)).ok).toBe('boolean');
      }),
    );
  });
});

describe('a request', () => {
  const built = async (workflow: SavedWorkflow, body: object) => {
    const read = drawableOf(await factsOf(workflow))?.read(
      { kind: 'json', text: JSON.stringify({ prompt: 'a fox', ...body }), value: body },
      'generation',
    );
    if (read?.ok !== true) throw new Error(read?.problem.message);
    return read.build({ parameters: read.parameters, seed: 99n, filenamePrefix: 'svc/x', source: undefined }).workflow;
  };
  const refusal = async (body: object) =>
    await built(PORTRAIT, body).then(
      () => 'accepted',
      (error: Error) => error.message,
    );

  test('sets what it names, and the rest stays as it was saved', async () => {
    const workflow = await built(PORTRAIT, { size: '512x768', steps: 20, extra_body: { glow: 1.5, sampler: 'heun' } });
    expect(workflow).toMatchObject({
      '2': { inputs: { strength_model: 1.5, strength_clip: 1 } },
      '3': { inputs: { text: 'a fox' } },
      '4': { inputs: { text: 'blurry' } },
      '5': { inputs: { width: 512, height: 768, batch_size: 1 } },
      '6': { inputs: { seed: 99n, steps: 20, cfg: 6.5, sampler_name: 'heun', scheduler: 'karras' } },
      '12:1': { inputs: { filename_prefix: 'svc/x' } },
    });
    expect(JSON.stringify(workflow, (_key, value: unknown) => (typeof value === 'bigint' ? 0 : value))).not.toContain('_meta');
    expect(await built(PORTRAIT, {})).toMatchObject({ '5': { inputs: { width: 832, height: 1216 } }, '6': { inputs: { steps: 8 } } });
  });

  test('with what OpenAI’s clients always send is accepted', async () => {
    const sent = {
      model: 'img',
      n: 1,
      size: 'auto',
      response_format: 'b64_json',
      quality: 'high',
      user: 'u',
      negative_prompt: '',
      stream: false,
    };
    expect(await refusal(sent)).toBe('accepted');
  });

  test.each([
    [{ cfg: 3 }, /^Workflow "portrait" has no parameter "cfg", only "glow", "prompt", .*"size"; leave it out$/],
    [{ n: 2 }, / has no parameter "n", only /],
    [{ glwo: 1 }, / has no parameter "glwo", only /],
    [{ extra_body: { strength: 0.5 } }, / has no parameter "strength", only /],
    [{ glow: 'much' }, /^Set "glow" to a number$/],
    [{ sampler: 5 }, /^Set "sampler" to a text/],
    [{ size: '7x7' }, / cannot draw 7x7; /],
    [{ steps: 0 }, /^Set "steps" to a whole number from 1 to 150/],
  ])('with %p is refused', async (body, message) => expect(await refusal(body)).toMatch(message));
});
