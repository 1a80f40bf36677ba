/** The lines of the specification about toolbox images, one test for each. Building, pulling and refusing them is in test/cli/toolbox.test.ts and test/e2e/toolbox-images.test.ts. */
import { readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import { parse } from 'smol-toml';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { ToolboxManifest, UNPUBLISHED } from '../../src/schema/slot/toolbox-images.ts';

const manifest = ToolboxManifest.parse(parse(await readFile('manifests/toolboxes.toml', 'utf8')));

test('Toolbox images are pinned by sha256 in a manifest file', () => {
  for (const { digest } of Object.values(manifest).flatMap((each) => Object.values(each)))
    expect(digest === UNPUBLISHED || /^sha256:[0-9a-f]{64}$/.test(digest ?? '')).toBe(true);
  const pinned = (digest: string) =>
    ToolboxManifest.safeParse({ image: { rocm: { image: 'registry.example/svc-toolbox-image-rocm:v1', digest } } }).success;
  expect(pinned(`sha256:${'0a'.repeat(32)}`)).toBe(true);
  for (const other of ['', 'latest', `sha256:${'0a'.repeat(31)}`, `md5:${'0a'.repeat(16)}`, `sha256:${'0G'.repeat(32)}`])
    expect(pinned(other)).toBe(false);
});

test('The NPU and image toolbox images carry the tag `v1`', () => {
  for (const images of [manifest.npu, manifest.image])
    expect(Object.values(images ?? {}).map(({ image }) => image.split(':').at(-1))).toEqual(['v1']);
});

test('The image toolbox image is the largest shipped: its CI build takes about 19 minutes, for which the workflow leaves time, and users are told that the first pull is long', async () => {
  const Publish = z.object({
    'timeout-minutes': z.number(),
    strategy: z.object({ matrix: z.object({ include: z.array(z.object({ folder: z.string() })) }) }),
  });
  const { jobs } = z
    .object({ jobs: z.object({ publish: Publish }) })
    .parse(parseYaml(await readFile('.github/workflows/toolboxes.yml', 'utf8')));
  expect(jobs.publish.strategy.matrix.include.map(({ folder }) => folder)).toContain('image');
  expect(jobs.publish['timeout-minutes']).toBeGreaterThan(2 * 19);
  expect(await readFile('docs/images.md', 'utf8')).toMatch(
    /svcctl toolbox build image.*free disk; it downloads several GB, so it takes long/,
  );
});
