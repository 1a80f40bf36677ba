import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startWorld, type World } from '../api/manage/world.ts';
import { svcctl } from './run-svcctl.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

const run = (args: readonly string[]) => svcctl(args, { env: { SVCCTL_SERVER: world.url } });

describe('svcctl model search', () => {
  test('lists repositories with the largest model that fits, and the models with -o wide', async () => {
    const { code, out, err } = await run(['model', 'search', 'qwen3 4b']);
    expect(code).toBe(0);
    expect(out.split('\n').map((line) => line.trim().split(/ {2,}/))).toEqual([
      ['REPOSITORY', 'DOWNLOADS', 'LICENSE', 'MODELS', 'LARGEST THAT FITS', 'SIZE', 'NOTE'],
      ['o/r', '1200', 'gemma', '3', 'hf:o/r:Q4_K_M', '4.7 GiB', 'licence not accepted'],
      ['o/s', '1200', '-', '0', '-', '-', 'gated; The Hub does not answer in time; try again'],
      [''],
    ]);
    expect(err).toBe('All quantisations with their names: add -o wide\nMore: add --cursor next-page\n');
    const wide = await run(['model', 'search', 'qwen3', '-o', 'wide', '--limit', '1', '--cursor', 'next-page']);
    expect(wide).toMatchObject({ code: 0, err: '' });
    const lines = wide.out.split('\n').map((line) => line.trim().split(/ {2,}/).slice(0, 7));
    expect(lines.slice(1, 4)).toEqual([
      ['hf:o/r:Q8_0', '8.4 GiB', '9.3 GiB', 'no', '1', 'mmproj.gguf', 'hf:o/r/mtp-m.gguf'],
      ['hf:o/r:Q4_K_M', '4.7 GiB', '5.6 GiB', 'yes', '1', 'mmproj.gguf', 'hf:o/r/mtp-m.gguf'],
      ['hf:o/r/odd.gguf', '954 MiB', '-', '-', '1', '-', 'hf:o/r/mtp-m.gguf'],
    ]);
  });

  test('prints the whole answer as JSON', async () => {
    const { out } = await run(['model', 'search', 'qwen3', '-o', 'json']);
    expect(JSON.parse(out)).toMatchObject({
      models: [
        { id: 'o/r', likes: 7 },
        { id: 'o/s', gated: true },
      ],
      next: 'next-page',
    });
  });

  test.each([
    [['off'], 1, '"SVC_MODEL_SEARCH" is "off"'],
    [['away'], 1, 'Check the network'],
    [['nothing'], 0, 'No models found'],
    [['a', '--limit', '0'], 64, 'use a number from 1 to 20'],
    [['a', '--limit', 'x'], 64, 'use a number from 1 to 20'],
  ])('%j ends with %d and says why', async (args, code, message) => {
    expect(await run(['model', 'search', ...args])).toMatchObject({ code, out: '', err: expect.stringContaining(message) });
  });
});
