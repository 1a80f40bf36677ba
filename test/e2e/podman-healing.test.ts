/** Failures on podman heal or are explained. Uses a real llama-server and a real podman. */
import { execFile } from 'node:child_process';
import { copyFile, mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { DEMO_SENTENCES, demoModelPath } from '../../toolboxes/demo/demo-models.ts';
import { describeWithPodmanSlots, GGUF_TOOLBOX, PODMAN } from '../support/require/require-podman.ts';
import { chatText, condition, isAnswering, pause, startService, type Service } from '../support/service.ts';
import { startStreamLoop } from '../support/live-cluster/stream-loop.ts';

const run = promisify(execFile);
const podman = async (...args: readonly string[]): Promise<string> => (await run('podman', [...PODMAN, ...args])).stdout.trim();

const slotOf = (model: string, more = '') => `backend = "cpu"\n${more}\n[model]\ndefault = "${model}"\nargs = ["--threads", "1"]\n`;

/** Nothing listens on port 9, so the pull fails immediately. */
const NO_SUCH_IMAGE = `[gguf.rocm]\nimage = "127.0.0.1:9/toolbox:v1"\ndigest = "sha256:${'0'.repeat(64)}"\n`;

describeWithPodmanSlots('A slot on podman', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ runtime: 'podman', toolboxes: `${GGUF_TOOLBOX}${NO_SUCH_IMAGE}` });
    await service.save('primary', slotOf('demo-fox'));
    await service.until('primary', 'ready', isAnswering);
  }, 120_000);
  afterAll(() => service.dispose(), 60_000);

  // Other suites have containers of the same slot on this podman.
  const containerId = async () =>
    podman(
      'ps',
      '--no-trunc',
      '--quiet',
      ...['slot=primary', `instance=${service.configDir}`].flatMap((label) => ['--filter', `label=inference.svc.dev/${label}`]),
    );
  const healed = async (oldId: string) => {
    const deadline = Date.now() + 60_000;
    for (;;) {
      const id = await containerId();
      if (id !== '' && id !== oldId && isAnswering(await service.slot('primary'))) return id;
      if (Date.now() > deadline)
        throw new Error(`Not healed: ${JSON.stringify(await service.slot('primary'))}\n${service.output().slice(-3000)}`);
      await pause(50);
    }
  };

  test.each([
    ['podman kill', ['kill']],
    ['podman rm', ['rm', '--force']],
  ])(
    'heals after %s',
    async (_name, command) => {
      const before = await containerId();
      await podman(...command, before);
      await healed(before);
      expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
    },
    120_000,
  );

  test('heals if its container is replaced by a different one, which counts as drift', async () => {
    const before = await containerId();
    const inspected: { Name: string; Config: { Labels: Record<string, string>; Cmd: string[] } }[] = JSON.parse(
      await podman('inspect', before),
    );
    const config = inspected[0]?.Config;
    const labels = Object.entries(config?.Labels ?? {}).flatMap(([key, value]) => ['--label', `${key}=${value}`]);
    await service.kill('SIGKILL');
    await podman('rm', '--force', before);
    const altered = await podman(
      'run',
      '--detach',
      '--name',
      inspected[0]?.Name ?? '',
      ...labels,
      '--entrypoint',
      'sleep',
      'localhost/svc-toolbox-gguf-cpu:v1',
      '1000',
    );
    await service.start();
    await healed(altered);
    expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
    const timeline = await (await fetch(`${service.url}/api/slots/primary/timeline`)).text();
    expect(timeline).toContain('drift');
  }, 120_000);

  test('keeps its container if the controller is killed under load and started again', async () => {
    const before = await containerId();
    const loop = startStreamLoop(service, 2);
    while (loop.score.texts.size === 0) await pause(10);
    await service.kill('SIGKILL');
    await loop.end();
    expect(await containerId()).toBe(before);
    await service.start();
    expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
    expect(await containerId()).toBe(before);
  }, 120_000);

  test('serves its old model until a missing model file appears', async () => {
    await service.save('primary', slotOf('mine/owl.gguf'));
    const slot = await service.until('primary', 'reporting the missing model', (seen) =>
      JSON.stringify(seen?.status.conditions).includes('mine/owl.gguf'),
    );
    expect(JSON.stringify(slot.status.conditions)).toContain('ModelMissing');
    expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
    await mkdir(join(service.modelsDir, 'mine'));
    await copyFile(join(service.modelsDir, demoModelPath('demo-owl')), join(service.modelsDir, 'mine/owl.gguf'));
    const deadline = Date.now() + 60_000;
    while ((await chatText(await service.chat())) !== DEMO_SENTENCES['demo-owl'] && Date.now() < deadline) await pause(50);
    expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-owl']);
  }, 120_000);

  test('uses another port if the first one is taken', async () => {
    const first = Number((service.environment['SVC_PORT_RANGE'] ?? '').split('-')[0]);
    await service.save('primary', slotOf('demo-fox', 'enabled = false'));
    await service.until('primary', 'offline', (seen) => seen?.status.state === 'offline');
    const squatter = createServer().listen(first, '127.0.0.1');
    try {
      await service.save('primary', slotOf('demo-fox'));
      const slot = await service.until('primary', 'ready', isAnswering);
      expect(slot.status.endpoint).not.toContain(`:${first}`);
      expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
    } finally {
      squatter.close();
    }
  }, 120_000);

  test('explains that its image cannot be pulled, while other slots keep running', async () => {
    await service.save('extra', `provider = "gguf"\nbackend = "rocm"\n[model]\ndefault = "demo-fox"\n`);
    const slot = await service.until('extra', 'reporting the image', (seen) => condition(seen, 'Ready')?.reason === 'ImagePullFailed');
    expect(condition(slot, 'Ready')?.message).toContain('127.0.0.1:9/');
    // The next attempt shows progress for a moment.
    await eventually('the failed pull', async () => {
      const pulls = await (await fetch(`${service.url}/api/pulls`)).text();
      return /"slot":"extra",.*"failed":true,"message":".*127\.0\.0\.1:9\//.test(pulls);
    });
    expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
  }, 120_000);
});
