/** The fields of a request for images: what they default to, how they are limited, and what a client is told. */
import { describe, expect, test } from '@jest/globals';
import { FAMILIES, type FamilyName } from '../../../../src/providers/image/decide/image-families.ts';
import { readParameters, type ImageParameters } from '../../../../src/providers/image/decide/image-parameters.ts';

const PROMPT = { prompt: 'a red fox' };

const useOf = (family: FamilyName) =>
  ({ family: FAMILIES[family], task: 'generation', loras: ['glow.safetensors', 'old ink.safetensors'] }) as const;

const readText = (text: string, family: FamilyName = 'sdxl') =>
  readParameters({ kind: 'json', text, value: JSON.parse(text) }, useOf(family));
const read = (body: object, family?: FamilyName) => readText(JSON.stringify({ ...PROMPT, ...body }), family);

function accepted(body: object, family?: FamilyName): ImageParameters {
  const result = read(body, family);
  if (!result.ok) throw new Error(result.problem.message);
  return result.parameters;
}

function refused(body: object, family?: FamilyName) {
  const result = read(body, family);
  if (result.ok) throw new Error(`Accepted ${JSON.stringify(body)}`);
  expect(result.problem.message).toMatch(/^[A-Z].{10,}[^.]$/s);
  return result.problem;
}

test('a request with a prompt alone gets one image as a URL, with what fits the family', () => {
  const common = { prompt: 'a red fox', negativePrompt: '', n: 1, size: undefined, seed: undefined };
  const answer = { responseFormat: 'url', outputFormat: 'png', quality: 95, stream: false, partialImages: 0 };
  expect(accepted({})).toEqual({ ...common, steps: 25, cfg: 7, ...answer });
  expect(accepted({}, 'sdxl-turbo')).toEqual({ ...common, steps: 1, cfg: 1, ...answer });
  expect(accepted({}, 'flux-schnell')).toEqual({ ...common, steps: 4, cfg: 1, ...answer });
});

describe('seeds', () => {
  const seedOf = (text: string) => {
    const result = readText(`{"prompt":"x","seed":${text}}`);
    return result.ok ? result.parameters.seed : result.problem.param;
  };

  test.each([
    ['0', 0n],
    ['42', 42n],
    ['"42"', 42n],
    ['9007199254740993', 9_007_199_254_740_993n],
    ['18446744073709551615', 18_446_744_073_709_551_615n],
    ['"18446744073709551615"', 18_446_744_073_709_551_615n],
    ['null', undefined],
  ])('%s is exact', (text, seed) => expect(seedOf(text)).toBe(seed));

  test.each(['-1', '18446744073709551616', '"abc"', '""', '1.5', '"1.5"', '1e30', 'true', '[1]', `"${'9'.repeat(5000)}"`])(
    '%s is refused',
    (text) => expect(seedOf(text)).toBe('seed'),
  );

  test('the exact text is also read within `extra_body`', () => {
    const result = readText('{"prompt":"x","extra_body":{"seed":18446744073709551615}}');
    expect(result).toMatchObject({ ok: true, parameters: { seed: 18_446_744_073_709_551_615n } });
  });
});

describe('extensions', () => {
  const extensions = { seed: 3, steps: 12, cfg: 2.5, negative_prompt: 'rain' };
  const expected = { seed: 3n, steps: 12, cfg: 2.5, negativePrompt: 'rain' };

  test('are accepted at top level and in `extra_body`', () => {
    expect(accepted(extensions)).toMatchObject(expected);
    expect(accepted({ extra_body: extensions })).toMatchObject(expected);
  });

  test('at top level have precedence', () => {
    expect(accepted({ ...extensions, extra_body: { steps: 99, cfg: 9 } })).toMatchObject(expected);
  });

  test.each([null, 'x', 5, [], '{'])('an `extra_body` of %p is as good as none', (extra) => {
    expect(accepted({ extra_body: extra })).toMatchObject({ steps: 25 });
  });
});

describe('sizes', () => {
  test.each<[string, FamilyName]>([
    ['64x64', 'sdxl'],
    ['2048x2048', 'sdxl'],
    ['1024x1792', 'sdxl'],
    ['520x520', 'sd-1.5'],
    ['528x512', 'flux-schnell'],
  ])('%s of %s is drawn', (size, family) => {
    const [width, height] = size.split('x').map(Number);
    expect(accepted({ size }, family).size).toEqual({ width, height });
  });

  test('"auto" and null mean that of the family', () => {
    for (const size of ['auto', null]) expect(accepted({ size }).size).toBeUndefined();
  });

  test.each<[string, FamilyName]>([
    ['0x0', 'sdxl'],
    ['0x512', 'sdxl'],
    ['513x513', 'sdxl'],
    ['520x520', 'flux-schnell'],
    ['56x64', 'sdxl'],
    ['2056x2048', 'sdxl'],
    ['99999x99999', 'sdxl'],
  ])('%s of %s cannot be drawn', (size, family) => {
    expect(refused({ size }, family)).toMatchObject({ code: 'image.size_unsupported', param: 'size' });
  });

  test.each(['big', '512', '512x', 'x512', '-64x64', '512x512x512', '5e2x5e2', ' 512x512', 512, {}, `${'9'.repeat(40)}x64`])(
    '%p is no size',
    (size) => {
      expect(refused({ size })).toMatchObject({ code: 'request.invalid', param: 'size' });
    },
  );

  test('what is possible is said with the family', () => {
    expect(refused({ size: '520x520' }, 'flux-schnell').message).toBe(
      'Models of FLUX.1 schnell cannot draw 520x520; use a "size" whose width and height are multiples of 16 from 64 to 2048, such as "1024x1024"',
    );
  });
});

describe('other fields', () => {
  test.each<[object, string]>([
    [{ n: 0 }, 'n'],
    [{ n: 11 }, 'n'],
    [{ n: 1.5 }, 'n'],
    [{ n: 'many' }, 'n'],
    [{ n: -1 }, 'n'],
    [{ steps: 0 }, 'steps'],
    [{ steps: 151 }, 'steps'],
    [{ cfg: -1 }, 'cfg'],
    [{ cfg: 31 }, 'cfg'],
    [{ cfg: 'high' }, 'cfg'],
    [{ prompt: '' }, 'prompt'],
    [{ prompt: '   ' }, 'prompt'],
    [{ prompt: null }, 'prompt'],
    [{ prompt: ['a'] }, 'prompt'],
    [{ prompt: 'x'.repeat(32_769) }, 'prompt'],
    [{ prompt: 'é'.repeat(16_385) }, 'prompt'],
    [{ negative_prompt: 'x'.repeat(32_769) }, 'negative_prompt'],
    [{ negative_prompt: 5 }, 'negative_prompt'],
    [{ response_format: 'png' }, 'response_format'],
    [{ output_format: 'gif' }, 'output_format'],
    [{ output_compression: 101 }, 'output_compression'],
    [{ stream: 'yes' }, 'stream'],
    [{ stream: true, response_format: 'url' }, 'response_format'],
    [{ partial_images: 4 }, 'partial_images'],
    [{ partial_images: -1 }, 'partial_images'],
  ])('%p is refused', (body, param) => expect(refused(body)).toMatchObject({ code: 'request.invalid', param }));

  test('a turbo model has at most ten steps', () => {
    expect(accepted({ steps: 10 }, 'sdxl-turbo').steps).toBe(10);
    expect(refused({ steps: 11 }, 'sdxl-turbo').message).toBe('Set "steps" to a whole number from 1 to 10 for models of SDXL turbo');
  });

  test('what OpenAI’s clients send besides is accepted, and has no effect', () => {
    const others = {
      quality: 'hd',
      style: 'vivid',
      background: 'transparent',
      user: 'u',
      moderation: 'low',
      safety_identifier: 's',
      model: 'img',
      stream: false,
    };
    expect(accepted(others)).toEqual(accepted({}));
  });

  test('a body that is no object has no prompt', () => {
    for (const text of ['[]', '"x"', 'null', '5']) expect(readText(text)).toMatchObject({ ok: false, problem: { param: 'prompt' } });
  });

  test('numbers in forms are texts', () => {
    const fields = Object.entries({ prompt: 'x', n: '2', cfg: '2.5', seed: '18446744073709551615', size: '', extra_body: '{"steps":9}' });
    const form = { kind: 'form', fields: fields.map(([name, value]) => ({ name, value })), files: [] } as const;
    expect(readParameters(form, useOf('sdxl'))).toMatchObject({
      ok: true,
      parameters: { n: 2, cfg: 2.5, seed: 18_446_744_073_709_551_615n, size: undefined, steps: 9 },
    });
  });
});

describe('sampler, scheduler and LoRAs', () => {
  test('are names that the server or the directory of the model has', () => {
    expect(accepted({ sampler: 'dpmpp_2m', scheduler: 'beta' })).toMatchObject({ sampler: 'dpmpp_2m', scheduler: 'beta' });
    expect(refused({ sampler: '../x' })).toMatchObject({ param: 'sampler' });
    expect(refused({ scheduler: 'karras' }, 'sdxl-turbo')).toMatchObject({
      param: 'scheduler',
      message: 'Models of SDXL turbo have a noise schedule of their own; leave out "scheduler"',
    });
  });

  test.each([
    ['glow', [{ file: 'glow.safetensors', strength: 1 }]],
    [
      ['glow.safetensors', { name: 'old ink', strength: -0.5 }],
      [
        { file: 'glow.safetensors', strength: 1 },
        { file: 'old ink.safetensors', strength: -0.5 },
      ],
    ],
    ['["glow"]', [{ file: 'glow.safetensors', strength: 1 }]],
  ])('%j', (loras, expected) => expect(accepted({ loras })).toMatchObject({ loras: expected }));

  test.each([['../../secret'], [{ name: 'glow', strength: 99 }], [Array.from({ length: 9 }, () => 'glow')], [5]])(
    '%j is refused',
    (loras) => expect(refused({ loras })).toMatchObject({ param: 'loras' }),
  );

  test('what does not exist is told with what does', () =>
    expect(refused({ loras: 'glou' }).message).toBe('LoRA "glou" does not exist: use "glow", "old ink"'));
});

describe('fields without effect are named', () => {
  const ignoredBy = (body: object, family?: FamilyName) => {
    const result = read(body, family);
    return result.ok ? result.ignored : result.problem;
  };

  test('unknown ones, those of OpenAI, and those that the family has no use for', () => {
    expect(ignoredBy({ model: 'img', n: 1, size: 'auto', seed: 1, extra_body: { steps: 3 } })).toEqual([]);
    expect(ignoredBy({ quality: 'high', style: 'vivid', stepz: 9, extra_body: { cgf: 2 } })).toEqual(['quality', 'style', 'stepz', 'cgf']);
    expect(ignoredBy({ strength: 0.5 })).toEqual(['strength']);
  });

  test.each([
    ['sdxl', {}, []],
    ['sdxl-turbo', {}, ['negative_prompt']],
    ['sdxl-turbo', { cfg: 2 }, []],
    ['flux-dev', {}, ['negative_prompt']],
    ['qwen-image', {}, []],
  ] as const)('a negative prompt for %s with %j', (family, more, expected) =>
    expect(ignoredBy({ negative_prompt: 'rain', ...more }, family)).toEqual(expected),
  );
});
