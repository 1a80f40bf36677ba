/** A machine whose runtime is changed, with the real llama-server in both: processes give way to containers, and containers to processes. */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { eventually } from '../support/eventually.ts';
import { startStreamLoop } from '../support/live-cluster/stream-loop.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { describeWithPodmanSlots, GGUF_TOOLBOX, PODMAN, PODMAN_SOCKET } from '../support/require/require-podman.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';

const run = promisify(execFile);
const SLOT = 'backend = "cpu"\n[model]\ndefault = "demo-fox"\nargs = ["--threads", "1"]\n';

describeWithPodmanSlots('A change of the runtime', () => {
  let service: Service;
  beforeAll(async () => {
    const environment = {
      PATH: `${await directoryOfLlamaServer()}:${process.env['PATH'] ?? ''}`,
      SVC_ON_EXIT: 'leave',
      SVC_PODMAN_SOCKET: PODMAN_SOCKET,
    };
    service = await startService({ runtime: 'process', toolboxes: GGUF_TOOLBOX, environment });
    await service.save('primary', SLOT);
    await service.until('primary', 'ready', isAnswering);
  }, 120_000);
  afterAll(async () => {
    Object.assign(service.environment, { SVC_ON_EXIT: 'stop' });
    await service.kill('SIGTERM');
    await service.dispose();
  }, 120_000);

  /** Servers of this service, as the system lists them. */
  async function processes(): Promise<readonly string[]> {
    const mark = `INFERENCE_SVC_DEV_PROCESS={"stateDir":"${join(service.dir, 'state')}"`;
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const found = await Promise.all(
      pids.map(async (pid) => ((await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')).includes(mark) ? [pid] : [])),
    );
    return found.flat();
  }
  async function containers(): Promise<readonly string[]> {
    const { stdout } = await run('podman', [...PODMAN, 'ps', '--all', '--format', '{{.ID}} {{.Labels}}']);
    return stdout.split('\n').filter((line) => line.includes(service.configDir));
  }
  const doctor = async () => await svcctl(['doctor', '-o', 'wide'], { env: service.environment });

  test.each([
    ['podman', processes, containers],
    ['process', containers, processes],
  ] as const)(
    'to "%s" loses no request, and leaves no server of the former one',
    async (runtime, former, present) => {
      expect((await former()).length).toBeGreaterThan(0);
      await service.kill('SIGTERM');
      expect((await former()).length).toBeGreaterThan(0);
      Object.assign(service.environment, { SVC_RUNTIME: runtime });
      await service.start();
      const loop = startStreamLoop(service, 3);
      await eventually('nothing is left', async () => (await former()).length === 0 && (await present()).length > 0, 90_000);
      await service.until('primary', 'ready', isAnswering);
      const { failures, texts } = await loop.end();
      expect({ failures, texts: [...texts.keys()] }).toEqual({ failures: [], texts: [DEMO_SENTENCES['demo-fox']] });
      expect((await doctor()).out).toContain('All slots run in the same runtime');
    },
    180_000,
  );

  test('that is not complete is named by "svcctl doctor", with the workloads', async () => {
    await service.kill('SIGTERM');
    Object.assign(service.environment, { SVC_RUNTIME: 'podman' });
    await service.save('primary', SLOT.replace('cpu', 'vulkan'));
    await service.start();
    await eventually(
      'the former server is named',
      async () => (await doctor()).out.includes('"svc-slot-primary" still run in the former runtime "process"'),
      30_000,
    );
  }, 120_000);
});
