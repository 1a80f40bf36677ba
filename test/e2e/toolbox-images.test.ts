/** Toolbox images as a user has them: built by `svcctl`, pinned, refused if they are others, and pulled. With real podman and a real registry. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { DEMO_TRANSCRIPT } from '../../toolboxes/demo/demo-listener.ts';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { DEMO_VOICES } from '../../toolboxes/demo/demo-speaker.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { startRegistry, type Registry } from '../host/podman/registry.ts';
import { eventually } from '../support/eventually.ts';
import { BASE_IMAGE, describeWithPodman, SPEECH_BASE_IMAGE } from '../support/require/require-podman.ts';
import { chatText, condition, isAnswering, startService, type Service, type SlotView } from '../support/service.ts';

const run = promisify(execFile);
const LAYER_BYTES = 16 * 1024 * 1024;
/** Containers are named after their slots, and several suites use one podman. */
const box = `box-${process.pid}`;
const chatSlot = 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\nargs = ["--threads", "1"]\n';
const Progress = z.object({ what: z.string(), done_bytes: z.number(), total_bytes: z.number() });
const Pulling = z.object({ status: z.object({ progress: Progress.nullish() }) });
const isStalled = (slot: SlotView | undefined): boolean => condition(slot, 'Stalled')?.status === 'True';

describeWithPodman('Toolbox images', () => {
  let registry: Registry;
  let service: Service;
  let dir: string;
  const podman = async (...args: readonly string[]) =>
    (await run('podman', ['--remote', '--url', `unix://${registry.socketPath}`, ...args])).stdout.trim();
  const toolbox = async (...args: readonly string[]) =>
    svcctl(['toolbox', ...args], { env: { SVC_CONFIG_DIR: service.configDir, CONTAINER_HOST: `unix://${registry.socketPath}` } });
  const pin = async (text: string) => writeFile(path.join(service.configDir, 'toolboxes.toml'), text);
  const containers = async (slot: string) => podman('ps', '--all', '--quiet', '--filter', `label=inference.svc.dev/slot=${slot}`);
  const stalled = async (slot: string) => {
    const seen = await service.until(slot, 'stalled', isStalled);
    expect(await containers(slot)).toBe('');
    return condition(seen, 'Stalled');
  };

  beforeAll(async () => {
    registry = await startRegistry();
    dir = await mkdtemp(path.join(tmpdir(), 'svc-images-'));
    const environment = { SVC_PODMAN_SOCKET: registry.socketPath, SVC_STOP_DELAY: '0s' };
    service = await startService({ runtime: 'podman', speech: true, environment });
  }, 180_000);
  afterAll(async () => {
    await service.dispose();
    await registry.dispose();
    await rm(dir, { recursive: true, force: true });
  }, 60_000);

  test('an image that was not built says "unpublished", is refused with the command that builds it, and its slot runs once it is built', async () => {
    expect((await toolbox('list')).out).toMatch(/^gguf +cpu +\S+svc-toolbox-gguf-cpu:v1 +unpublished$/m);
    await service.save(box, chatSlot);
    expect(await stalled(box)).toMatchObject({
      reason: 'ImageUnknown',
      message: expect.stringContaining('build it with "svcctl toolbox build gguf cpu"'),
    });
    const built = await toolbox('build', 'gguf', 'cpu', '--build-arg', `BASE=${BASE_IMAGE}`);
    expect([built.code, built.err]).toEqual([0, expect.any(String)]);
    await service.until(box, 'ready', isAnswering);
    expect(await chatText(await service.chat({ model: box }))).toBe(DEMO_SENTENCES['demo-fox']);
    expect((await toolbox('verify')).out).toMatch(/^gguf +cpu .* verified$/m);
    await service.remove(box);
    await eventually('its container is gone', async () => (await containers(box)) === '', 60_000);
  }, 300_000);

  test('the image for speech is built, and serves both kinds of slots', async () => {
    const own = [`BASE=${SPEECH_BASE_IMAGE}`, 'NODE_EXTRA_CA_CERTS=/opt/certificates.crt'];
    const built = await toolbox('build', 'stt', '--build-arg', ...own);
    expect([built.code, built.err]).toEqual([0, expect.any(String)]);
    const [listener, speaker] = [`stt-${process.pid}`, `tts-${process.pid}`];
    await service.save(listener, 'provider = "stt"\n[model]\ndefault = "demo-listener"\n');
    await service.save(speaker, 'provider = "tts"\n[model]\ndefault = "demo-speaker"\n');
    for (const each of [listener, speaker]) await service.until(each, 'ready', isAnswering, 120_000);
    const headers = { 'content-type': 'application/json' };
    const wanted = { model: speaker, voice: DEMO_VOICES[0], input: 'Hello there world', response_format: 'wav' };
    const spoken = await fetch(`${service.url}/v1/audio/speech`, { method: 'POST', headers, body: JSON.stringify(wanted) });
    const form = new FormData();
    form.set('file', await spoken.blob(), 'a.wav');
    form.set('model', listener);
    const heard: { text: string } = JSON.parse(
      await (await fetch(`${service.url}/v1/audio/transcriptions`, { method: 'POST', body: form })).text(),
    );
    expect(heard.text).toBe(DEMO_TRANSCRIPT);
    for (const each of [listener, speaker]) await service.remove(each);
  }, 600_000);

  describe('an image that is not the one of the manifest does not start', () => {
    test('another one was built under its name', async () => {
      const image = `localhost/svc-pin-${process.pid}:v1`;
      const build = async (what: string): Promise<string> => {
        await writeFile(path.join(dir, 'Containerfile'), `FROM localhost/svc-toolbox-gguf-cpu:v1\nLABEL what=${what}-${process.pid}\n`);
        await podman('build', '--quiet', '--tag', image, dir);
        return podman('image', 'inspect', '--format', '{{.Id}}', image);
      };
      const first = await build('first');
      const second = await build('second');
      try {
        await podman('rmi', first);
        await pin(`[gguf.cpu]\nimage = "${image}"\nid = "sha256:${first}"\n`);
        await service.save(box, chatSlot);
        const refused = await stalled(box);
        expect(refused).toMatchObject({
          reason: 'ImageMissing',
          message: expect.stringMatching(/; build it again with "svcctl toolbox build"/),
        });
        expect(refused?.message).toContain(`is "${second.slice(0, 12)}" in podman, but "${first.slice(0, 12)}" is pinned`);
        const verified = await toolbox('verify');
        expect([verified.code, /^gguf +cpu .* (\S+)$/m.exec(verified.out)?.[1]]).toEqual([1, 'different']);
        // What the message asks for helps.
        await pin(`[gguf.cpu]\nimage = "${image}"\nid = "sha256:${second}"\n`);
        await service.until(box, 'ready', isAnswering);
        await service.remove(box);
        await eventually('its container is gone', async () => (await containers(box)) === '', 60_000);
      } finally {
        await podman('rmi', '--force', second);
      }
    }, 180_000);

    test('its registry has another one under its name', async () => {
      const { host } = registry;
      await pushImage('other', host);
      await pin(`[gguf.cpu]\nimage = "${host}/svc/other:v1"\ndigest = "sha256:${'0'.repeat(64)}"\n`);
      await service.save(box, chatSlot);
      const seen = await service.until(box, 'refused', (slot) => condition(slot, 'Ready')?.reason === 'ImagePullFailed');
      expect(condition(seen, 'Ready')?.message).toMatch(/^"\S+" does not have the image ".*"; check the digest/);
      expect(await containers(box)).toBe('');
      const pulled = await toolbox('pull', 'gguf');
      expect([pulled.code, pulled.err]).toEqual([1, expect.stringContaining('manifest unknown')]);
      await service.remove(box);
    }, 120_000);
  });

  test('a download reports its progress: in the status of the slot, in its timeline, and in "svcctl toolbox pull"', async () => {
    const { slowHost } = registry;
    const digest = await pushImage('slow', registry.host);
    const reference = `${slowHost}/svc/slow@${digest}`;
    await pin(`[gguf.cpu]\nimage = "${slowHost}/svc/slow:v1"\ndigest = "${digest}"\n`);
    await service.save(box, chatSlot);
    const parts = new Set<number>();
    await eventually(
      'the progress of the download',
      async () => {
        const progress = Pulling.safeParse(await service.slot(box)).data?.status.progress;
        if (progress !== undefined && progress !== null) {
          expect([progress.what, progress.total_bytes]).toEqual([reference, expect.any(Number)]);
          expect(progress.total_bytes).toBeGreaterThanOrEqual(LAYER_BYTES);
          parts.add(progress.done_bytes);
        }
        return parts.size >= 2;
      },
      60_000,
    );
    expect((await svcctl(['explain', box, '--server', service.url])).out).toMatch(
      new RegExp(`pulled [\\d.]+ [KM]iB of 16\\.0 MiB, (?:.*, )?${reference}`),
    );
    await eventually(
      'the image is here',
      async () => (await podman('images', '--quiet', '--filter', `reference=${slowHost}/svc/slow`)) !== '',
      60_000,
    );
    const { entries }: { entries: { message: string }[] } = JSON.parse(
      await (await fetch(`${service.url}/api/slots/${box}/timeline`)).text(),
    );
    expect(entries.map(({ message }) => message).join('\n')).toContain(reference);
    await service.remove(box);
    // Podman finds the container of the slot, and may miss it a moment later.
    await eventually(
      'the image is gone',
      async () =>
        podman('rmi', '--force', reference).then(
          () => true,
          () => false,
        ),
      30_000,
    );
    const pulled = await toolbox('pull', 'gguf');
    expect([pulled.code, pulled.out + pulled.err]).toEqual([0, expect.stringContaining('Copying blob')]);
    expect((await toolbox('verify')).out).toMatch(/^gguf +cpu .* verified$/m);
    await podman('rmi', '--force', reference);
  }, 180_000);

  /** Of a layer that is nowhere else, so that it is really fetched. Returns its digest. */
  async function pushImage(name: string, host: string): Promise<string> {
    const layer = path.join(dir, name);
    await mkdir(layer);
    await writeFile(path.join(layer, 'random'), randomBytes(LAYER_BYTES));
    await run('tar', ['-C', layer, '-cf', `${layer}.tar`, '.']);
    const image = `${host}/svc/${name}:v1`;
    await podman('import', `${layer}.tar`, image);
    await podman('push', '--tls-verify=false', image);
    await podman('rmi', image);
    const accept = 'application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json';
    const manifest = await fetch(`http://${host}/v2/svc/${name}/manifests/v1`, { headers: { accept } });
    return manifest.headers.get('docker-content-digest') ?? '';
  }
});
