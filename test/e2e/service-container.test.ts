/** The image of the service as a container of podman, with podman's own socket: it runs the servers of the models in containers beside it. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES, writeDemoModels } from '../../toolboxes/demo/demo-models.ts';
import { freePort } from '../support/free-port.ts';
import { describeWithPodman, GGUF_TOOLBOX, PODMAN, PODMAN_SOCKET } from '../support/require/require-podman.ts';

const IMAGE = 'localhost/svc-test-service:v1';
const SERVICE = 'svc-test-service';
const SLOT = 'contained';
/** Lines of the quadlet that are arguments of `podman run` too, apart from those of places. */
const ARGUMENT_OF: Readonly<Record<string, (value: string) => readonly string[]>> = {
  Network: (value) => ['--network', value],
  User: (value) => ['--user', value],
  DropCapability: (value) => ['--cap-drop', value],
  NoNewPrivileges: () => ['--security-opt', 'no-new-privileges'],
  ReadOnly: () => ['--read-only'],
  Tmpfs: (value) => ['--tmpfs', value],
  SecurityLabelDisable: () => ['--security-opt', 'label=disable'],
};

const run = promisify(execFile);
const podman = async (...args: readonly string[]): Promise<string> => (await run('podman', [...PODMAN, ...args])).stdout.trim();

describeWithPodman('the image of the service, run by podman', () => {
  let dir: string;
  let port: number;

  /** With the security settings of the quadlet. */
  async function start(): Promise<void> {
    const quadlet = await readFile('installer/quadlet/svc.container', 'utf8');
    const settings = [...quadlet.matchAll(/^([A-Z][A-Za-z]+)=(.*)$/gm)].flatMap(
      ([, key = '', value = '']) => ARGUMENT_OF[key]?.(value) ?? [],
    );
    const ports = 20_000 + (port % 60) * 200;
    const environment = {
      SVC_RUNTIME: 'podman',
      SVC_PODMAN_SOCKET: '/run/podman/podman.sock',
      SVC_LISTEN: `127.0.0.1:${port}`,
      SVC_CONFIG_DIR: path.join(dir, 'config'),
      SVC_STATE_DIR: path.join(dir, 'state'),
      SVC_PORT_RANGE: `${ports}-${ports + 199}`,
    };
    const env = Object.entries(environment).flatMap(([key, value]) => ['--env', `${key}=${value}`]);
    const volumes = ['--volume', `${PODMAN_SOCKET}:/run/podman/podman.sock`, '--volume', `${dir}:${dir}`];
    await podman('run', '--detach', '--name', SERVICE, '--pull', 'never', ...settings, ...env, ...volumes, IMAGE);
  }

  async function ask(): Promise<string> {
    const body = JSON.stringify({ model: SLOT, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 40 });
    for (;;) {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      }).catch(() => undefined);
      if (answer !== undefined) return await answer.text();
      if ((await podman('inspect', '--format', '{{.State.Running}}', SERVICE)) !== 'true') throw new Error(await podman('logs', SERVICE));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  const slotContainer = (): Promise<string> => podman('ps', '--no-trunc', '--quiet', '--filter', `name=svc-slot-${SLOT}`);

  beforeAll(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'svc-contained-'));
    port = await freePort();
    await mkdir(path.join(dir, 'config/slots'), { recursive: true });
    await mkdir(path.join(dir, 'state/models'), { recursive: true });
    await writeDemoModels(path.join(dir, 'state/models'));
    await writeFile(path.join(dir, 'config/toolboxes.toml'), GGUF_TOOLBOX);
    await writeFile(path.join(dir, `config/slots/${SLOT}.toml`), 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    const env = { ...process.env, BASE: 'localhost/svc-base:forky' };
    await run('bash', ['scripts/build-image.sh', IMAGE], { env });
  }, 600_000);
  afterAll(async () => {
    await podman('rm', '--force', '--ignore', SERVICE);
    const slots = await podman('ps', '--all', '--quiet', '--filter', `name=svc-slot-${SLOT}`);
    if (slots !== '') await podman('rm', '--force', ...slots.split('\n'));
    await podman('rmi', '--force', IMAGE).catch(() => undefined);
    await rm(dir, { recursive: true, force: true });
  }, 120_000);

  test('answers with a model in a container beside it, and serves the dashboard', async () => {
    await start();
    expect(await ask()).toContain(DEMO_SENTENCES['demo-fox'].slice(0, 12));
    expect(await slotContainer()).not.toBe('');
    expect((await (await fetch(`http://127.0.0.1:${port}/`)).text()).slice(0, 15).toLowerCase()).toBe('<!doctype html>');
  }, 300_000);

  test('is replaced by another one, which goes on with the same container of the model', async () => {
    const before = await slotContainer();
    await podman('rm', '--force', '--time', '20', SERVICE);
    expect(await slotContainer()).toBe(before);
    await start();
    expect(await ask()).toContain(DEMO_SENTENCES['demo-fox'].slice(0, 12));
    expect(await slotContainer()).toBe(before);
  }, 300_000);
});
