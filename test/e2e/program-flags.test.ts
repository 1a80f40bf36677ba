/** Earlier and later builds of llama-server (`llama-builds.ts`), as a process and in a container. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { llamaHelp } from '../../src/providers/gguf/decide/llama-options.ts';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { startLoad } from '../chaos/support/load.ts';
import { B11669 } from '../providers/gguf/help/help-texts.ts';
import { eventually } from '../support/eventually.ts';
import { BUILDS, writeBuild } from '../support/llama-builds.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { describeWithPodmanSlots, PODMAN, PODMAN_SOCKET } from '../support/require/require-podman.ts';
import { chatText, condition, isAnswering, startService, type Service } from '../support/service.ts';

const run = promisify(execFile);
type Build = (typeof BUILDS)[keyof typeof BUILDS];

const podman = async (...args: readonly string[]): Promise<string> => (await run('podman', [...PODMAN, ...args])).stdout.trim();

const RUNTIMES = {
  async process(build: Build, dir: string) {
    await writeBuild(build, dir, { help: path.join(dir, 'help.txt'), real: path.join(await directoryOfLlamaServer(), 'llama-server') });
    return await startService({ runtime: 'process', environment: { PATH: `${dir}:${process.env['PATH'] ?? ''}` } });
  },
  async podman(build: Build, dir: string) {
    await writeBuild(build, dir, { help: '/usr/local/share/help.txt', real: '/usr/bin/llama-server' });
    const image = `localhost/svc-flags-${path.basename(dir).toLowerCase()}:v1`;
    const lines = ['FROM localhost/svc-toolbox-gguf-cpu:v1', 'COPY llama-server /usr/local/bin/', 'COPY help.txt /usr/local/share/'];
    await writeFile(path.join(dir, 'Containerfile'), `${lines.join('\n')}\n`);
    await podman('build', '--quiet', '--tag', image, dir);
    return await startService({
      runtime: 'podman',
      toolboxes: `[gguf.cpu]\nimage = "${image}"\n`,
      environment: { SVC_PODMAN_SOCKET: PODMAN_SOCKET },
    });
  },
} as const;

const CASES = Object.entries(RUNTIMES).flatMap(([runtime, start]) =>
  Object.entries(BUILDS).map(([name, build]) => ({ runtime, start, name, build })),
);

for (const { runtime, start, name, build } of CASES) {
  describeWithPodmanSlots(`llama-server of a build that is ${name}, with the runtime "${runtime}",`, () => {
    const slot = `flags-${process.pid}`;
    const slotOf = (model: string, args: readonly string[] = []) =>
      `provider = "gguf"\nbackend = "cpu"\nlifecycle.swap = "drain"\n[model]\ndefault = "${model}"\nargs = ${JSON.stringify(args)}\n`;
    let dir: string;
    let service: Service;
    beforeAll(async () => {
      dir = await mkdtemp(path.join(tmpdir(), 'svc-flags-'));
      service = await start(build, dir);
      await service.save(slot, slotOf('demo-fox'));
    }, 180_000);
    afterAll(async () => {
      await service.dispose();
      if (runtime === 'podman') await podman('rmi', '--force', `localhost/svc-flags-${path.basename(dir).toLowerCase()}:v1`);
      await rm(dir, { recursive: true, force: true });
    }, 120_000);
    const answer = async (): Promise<string> => chatText(await service.chat({ model: slot }));

    test('starts: our own arguments are those that it has', async () => {
      await service.until(slot, 'ready', isAnswering);
      expect(await answer()).toBe(DEMO_SENTENCES['demo-fox']);
      expect(service.output()).not.toContain('invalid argument');
    }, 90_000);

    test('that lacks a flag: the refusal names the successor, and the old model keeps serving', async () => {
      const load = startLoad(service, { slots: [slot], sentences: [DEMO_SENTENCES['demo-fox']], clients: 2 });
      await service.save(slot, slotOf('demo-owl', [build.old]));
      const seen = await service.until(slot, 'stalled', (each) => condition(each, 'Stalled')?.status === 'True');
      const score = await load.end();
      expect(condition(seen, 'Stalled')).toMatchObject({ reason: 'ArgumentsRefused', message: expect.stringContaining(build.fix) });
      expect(isAnswering(seen)).toBe(true);
      expect({ ...score, refused: [...score.refused] }).toMatchObject({ cut: 0, disconnected: 0, refused: [], wrong: [] });
      expect(await answer()).toBe(DEMO_SENTENCES['demo-fox']);
    }, 90_000);

    test('serves the new model with the successor', async () => {
      await service.save(slot, slotOf('demo-owl', [build.now]));
      await service.until(slot, 'swapped', (seen) => isAnswering(seen) && seen?.status.model === 'demo-owl');
      expect(await answer()).toBe(DEMO_SENTENCES['demo-owl']);
    }, 90_000);

    if (name === 'newer')
      test('takes a flag that nobody but the program knows', async () => {
        await service.save(slot, slotOf('demo-fox', ['--think-twice', '2']));
        await service.until(slot, 'swapped', (seen) => isAnswering(seen) && seen?.status.model === 'demo-fox');
        expect(await answer()).toBe(DEMO_SENTENCES['demo-fox']);
      }, 90_000);

    if (runtime === 'podman')
      test('was asked by a container that is gone, and the answer outlasts the service; a container left by a killed one is removed', async () => {
        const left = async (): Promise<string> =>
          podman('ps', '--all', '--quiet', '--filter', `label=inference.svc.dev/prints=${service.configDir}`);
        expect(await left()).toBe('');
        expect(await readdir(path.join(service.dir, 'state', 'program-help'))).toEqual([expect.stringMatching(/^gguf-[0-9a-f]{64}\.txt$/)]);
        await service.kill('SIGKILL');
        await podman('create', '--label', `inference.svc.dev/prints=${service.configDir}`, 'localhost/svc-toolbox-gguf-cpu:v1', 'true');
        await service.start();
        await eventually('it is removed', async () => (await left()) === '', 30_000);
        await service.until(slot, 'ready', isAnswering);
      }, 120_000);
  });
}

describeWithPodmanSlots('The help of the real llama-server', () => {
  test('is understood, and has all that we pass', async () => {
    const { stdout } = await run(path.join(await directoryOfLlamaServer(), 'llama-server'), ['--help'], { maxBuffer: 2 ** 20 });
    const [real, recorded] = [llamaHelp.parse(stdout), llamaHelp.parse(B11669)];
    expect(real).toBeDefined();
    for (const flag of ['--no-ui', '--no-slots', '--offline', '--mmproj', '--parallel']) {
      expect([flag, real?.flags[flag]]).toEqual([flag, expect.objectContaining({ words: recorded?.flags[flag]?.words })]);
    }
  }, 60_000);
});
