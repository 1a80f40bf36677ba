/** Pulls by digest from a real registry. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Progress, Runtime } from '../../../src/reconciler/ports.ts';
import { createPodmanRuntime } from '../../../src/host/podman/podman-runtime.ts';
import { describeWithPodman } from '../../support/require/require-podman.ts';
import { startRegistry, type Registry } from './registry.ts';

const run = promisify(execFile);
const LAYER_BYTES = 8 * 1024 * 1024;
const ABSENT = `sha256:${'0'.repeat(64)}`;

describeWithPodman('pull() of the podman runtime', () => {
  let registry: Registry;
  let runtime: Runtime;
  let reference: string;
  const signal = () => AbortSignal.timeout(60_000);
  const podman = async (...args: readonly string[]) =>
    (await run('podman', ['--remote', '--url', `unix://${registry.socketPath}`, ...args])).stdout.trim();

  beforeAll(async () => {
    registry = await startRegistry();
    runtime = createPodmanRuntime({ socketPath: registry.socketPath, instance: 'pull' });
    const name = `${registry.host}/svc/tiny`;
    // Of a layer that is nowhere else, so that it is really fetched.
    const layer = join(registry.dir, 'layer');
    await mkdir(layer);
    await writeFile(join(layer, 'random'), randomBytes(LAYER_BYTES));
    await run('tar', ['-C', layer, '-cf', `${layer}.tar`, '.']);
    await podman('import', `${layer}.tar`, `${name}:v1`);
    await podman('push', '--tls-verify=false', `${name}:v1`);
    await podman('rmi', `${name}:v1`);
    const manifest = await fetch(`http://${registry.host}/v2/svc/tiny/manifests/v1`, {
      headers: { accept: 'application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json' },
    });
    reference = `${registry.slowHost}/svc/tiny@${manifest.headers.get('docker-content-digest')}`;
  }, 120_000);
  afterAll(async () => {
    await podman('rmi', '--ignore', reference).catch(() => undefined);
    await registry.dispose();
  });

  const present = async () => {
    const facts = await runtime.observe([{ reference }], signal());
    return facts.ok ? facts.value.images : facts.failure;
  };

  test('pulls an image by its digest, reports progress, and then observes the image', async () => {
    const other = createPodmanRuntime({ socketPath: registry.socketPath, instance: 'pull' });
    expect(await present()).toEqual([{ reference, present: false }]);
    const progress: Progress[] = [];
    expect(await other.pull({ reference }, (step) => progress.push(step), signal())).toEqual({ ok: true, value: undefined });
    expect(progress.at(-1)?.totalBytes).toBeGreaterThanOrEqual(LAYER_BYTES);
    for (const step of progress) expect(step.doneBytes).toBeLessThanOrEqual(step.totalBytes ?? 0);
    expect(await present()).toEqual([{ reference, present: true, imageId: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) }]);
    expect(await other.pull({ reference }, () => undefined, signal())).toEqual({ ok: true, value: undefined });
  }, 60_000);

  test('reports that a registry does not have a digest', async () => {
    const absent = `${registry.host}/svc/tiny@${ABSENT}`;
    const pulled = await runtime.pull({ reference: absent }, () => undefined, signal());
    expect(pulled).toMatchObject({
      ok: false,
      failure: { kind: 'retry', reason: 'ImagePullFailed', message: expect.stringContaining(`does not have the image "${absent}"`) },
    });
  }, 60_000);

  test('retries a registry that does not answer', async () => {
    const pulled = await runtime.pull({ reference: `${registry.deadHost}/svc/tiny@${ABSENT}` }, () => undefined, signal());
    expect(pulled).toMatchObject({
      ok: false,
      failure: { kind: 'retry', reason: 'ImagePullFailed', message: expect.stringContaining('refused') },
    });
  }, 60_000);

  test('never pulls an image that is built here', async () => {
    const pulled = await runtime.pull({ reference: 'localhost/not-built:v1' }, () => undefined, signal());
    expect(pulled).toMatchObject({
      ok: false,
      failure: { kind: 'stalled', reason: 'ImageMissing', message: expect.stringContaining('svcctl toolbox build') },
    });
  });

  test('can be cancelled', async () => {
    const pulled = await runtime.pull({ reference: `${registry.deadHost}/svc/tiny@${ABSENT}` }, () => undefined, AbortSignal.timeout(200));
    expect(pulled).toMatchObject({ ok: false, failure: { reason: 'Aborted' } });
  });
});
