/**
 * `svcctl upgrade engine` with real servers: slots run a build of spring 2026, played by a script around the real llama-server, and move to the real one, which has
 * dropped flags since.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { startLoad } from '../chaos/support/load.ts';
import { startSvcctl, svcctl } from '../cli/run-svcctl.ts';
import { B11669 } from '../providers/gguf/help/help-texts.ts';
import { eventually } from '../support/eventually.ts';
import { BUILDS, writeBuild } from '../support/llama-builds.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { describeWithPodmanSlots, PODMAN, PODMAN_SOCKET } from '../support/require/require-podman.ts';
import { chatText, isAnswering, startService, type Service } from '../support/service.ts';

const run = promisify(execFile);
const REAL_IMAGE = 'localhost/svc-toolbox-gguf-cpu:v1';
/** Containers of all services of a podman have different names. */
const [CODER, EMBED, PRIMARY, ZEBRA] = [
  `coder-${process.pid}`,
  `embed-${process.pid}`,
  `primary-${process.pid}`,
  `zebra-${process.pid}`,
] as const;
const SLOTS: Readonly<Record<string, string>> = {
  [PRIMARY]: '# The one for everybody.\nprovider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-fox" # small\ncontext = 1024\n',
  [CODER]: 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-owl"\nargs = ["--no-mmap"]\n',
  [EMBED]: 'provider = "gguf"\nbackend = "cpu"\nload = "on-demand"\n[model]\ndefault = "demo-embed"\n',
};
const NAMES = [CODER, EMBED, PRIMARY];

interface Row {
  readonly slot: string;
  readonly flags: string;
  readonly start: string;
  readonly result: string;
  readonly message: string;
}

const upgrade = async (service: Service, ...args: readonly string[]) => {
  const { code, out, err } = await svcctl(['upgrade', 'engine', 'gguf', ...args, '-o', 'json'], {
    env: { ...service.environment, TMPDIR: service.dir },
  });
  const answer: { slots: readonly Partial<Row>[] } = out.startsWith('{') ? JSON.parse(out) : { slots: [{ message: err }] };
  return {
    code,
    out,
    err,
    rows: answer.slots,
    results: Object.fromEntries(answer.slots.map(({ slot, result, message }) => [slot ?? message, result])),
  };
};
const filesOf = async ({ configDir }: Service) =>
  await Promise.all(NAMES.map(async (name) => await readFile(path.join(configDir, 'slots', `${name}.toml`), 'utf8')));
const isRunning = (pid: number): boolean => pid > 0 && existsSync(`/proc/${pid}`);
const leftOf = async ({ dir }: Service) => (await readdir(dir)).filter((name) => name.startsWith('svc-upgrade-'));

const RUNTIMES = {
  process: {
    option: '--path',
    async start(dir: string) {
      const real = path.join(await directoryOfLlamaServer(), 'llama-server');
      await writeBuild(BUILDS.older, dir, { help: path.join(dir, 'help.txt'), real });
      return await startService({ runtime: 'process', environment: { PATH: `${dir}:${process.env['PATH'] ?? ''}` } });
    },
    build: async () => path.join(await directoryOfLlamaServer(), 'llama-server'),
  },
  podman: {
    option: '--image',
    async start(dir: string) {
      await writeBuild(BUILDS.older, dir, { help: '/usr/local/share/help.txt', real: '/usr/bin/llama-server' });
      const lines = [`FROM ${REAL_IMAGE}`, 'COPY llama-server /usr/local/bin/', 'COPY help.txt /usr/local/share/'];
      await writeFile(path.join(dir, 'Containerfile'), `${lines.join('\n')}\n`);
      const image = `localhost/${path.basename(dir).toLowerCase()}:v1`;
      await run('podman', [...PODMAN, 'build', '--quiet', '--tag', image, dir]);
      return await startService({
        runtime: 'podman',
        toolboxes: `[gguf.cpu]\nimage = "${image}"\n`,
        environment: { SVC_PODMAN_SOCKET: PODMAN_SOCKET },
      });
    },
    build: async () => REAL_IMAGE,
  },
} as const;

for (const [runtime, { option, start, build }] of Object.entries(RUNTIMES)) {
  describeWithPodmanSlots(`An upgrade of llama-server, with the runtime "${runtime}",`, () => {
    let dir: string;
    let service: Service;
    let texts: readonly string[];
    beforeAll(async () => {
      dir = await mkdtemp(path.join(tmpdir(), 'svc-builds-'));
      service = await start(dir);
      for (const [name, text] of Object.entries(SLOTS)) await service.save(name, text);
      for (const name of [PRIMARY, CODER]) await service.until(name, 'ready', isAnswering);
      texts = await filesOf(service);
    }, 240_000);
    afterAll(async () => {
      await service?.dispose();
      if (runtime === 'podman') await run('podman', [...PODMAN, 'rmi', '--force', `localhost/${path.basename(dir).toLowerCase()}:v1`]);
      await rm(dir, { recursive: true, force: true });
    }, 120_000);
    const explained = async (name: string): Promise<string> => (await svcctl(['explain', name], { env: service.environment })).out;

    test('that is only checked finds the removed flag of one slot of three, with its successor, and changes nothing', async () => {
      const before = await Promise.all(NAMES.map(explained));
      const { code, rows } = await upgrade(service, option, await build(), '--check');
      expect(rows).toEqual([
        { slot: CODER, flags: 'refused', start: 'skipped', result: 'breaks', message: expect.stringContaining('use "--load-mode none"') },
        { slot: EMBED, flags: 'accepted', start: 'answered', result: 'can move', message: '' },
        { slot: PRIMARY, flags: 'accepted', start: 'answered', result: 'can move', message: '' },
      ]);
      expect(code).toBe(1);
      expect(await filesOf(service)).toEqual(texts);
      expect(await Promise.all(NAMES.map(explained))).toEqual(before);
      expect(await leftOf(service)).toEqual([]);
    }, 120_000);

    test('refuses that slot alone, and moves the others without a failed request', async () => {
      const load = startLoad(service, { slots: [PRIMARY, CODER], sentences: Object.values(DEMO_SENTENCES), clients: 2 });
      const { code, results, err } = await upgrade(service, option, await build());
      const score = await load.end();
      expect([results, err]).toEqual([{ [CODER]: 'breaks', [EMBED]: 'moved', [PRIMARY]: 'moved' }, expect.any(String)]);
      expect(code).toBe(1);
      expect({ ...score, refused: [...score.refused] }).toMatchObject({ cut: 0, disconnected: 0, refused: [], wrong: [] });
      expect(await explained(CODER)).not.toContain(await build());
      const [coder, embed, primary] = await filesOf(service);
      expect(coder).toBe(texts[0]);
      for (const text of [embed, primary]) expect(text).toContain(`${option.slice(2)} = "${await build()}"`);
      expect(primary).toContain('# The one for everybody.');
      expect(await chatText(await service.chat({ model: PRIMARY }))).toBe(DEMO_SENTENCES['demo-fox']);
    }, 180_000);

    test('goes on with the corrected slot, and is taken back by one command', async () => {
      await service.save(CODER, (SLOTS[CODER] ?? '').replace('["--no-mmap"]', '["--load-mode", "none"]'));
      await service.until(
        CODER,
        'refused by the build before',
        (seen) => seen?.status.conditions.some(({ reason }) => reason === 'ArgumentsRefused') === true,
      );
      const { code, results } = await upgrade(service, option, await build());
      expect([results, code]).toEqual([{ [CODER]: 'moved', [EMBED]: 'unchanged', [PRIMARY]: 'unchanged' }, 0]);
      expect(await chatText(await service.chat({ model: CODER }))).toBe(DEMO_SENTENCES['demo-owl']);
      await service.save(EMBED, `${(await filesOf(service))[1]}\n[limits]\nmax_in_flight = 4\n`);
      await service.save(CODER, SLOTS[CODER] ?? '');
      const undone = await upgrade(service, '--undo');
      expect([undone.out.trim().split('\n'), undone.code]).toEqual([
        [`slot/${CODER} left as it is: it runs its build before`, `slot/${PRIMARY} put back`, `slot/${EMBED} put back`],
        0,
      ]);
      const [coder, embed, primary] = await filesOf(service);
      expect([coder, primary]).toEqual([texts[0], texts[2]]);
      expect(embed).toContain('max_in_flight = 4');
      expect(embed).not.toContain('program');
      await service.until(PRIMARY, 'ready', isAnswering);
      expect((await upgrade(service, '--undo')).err).toContain('No upgrade of "gguf" is recorded here');
    }, 180_000);

    if (runtime === 'process') {
      test('to a build that starts with no slot finds that out in the trial', async () => {
        const at = path.join(dir, 'broken');
        const broken = await writeBuild({ help: B11669, lacks: [] }, at, {
          help: path.join(at, 'help.txt'),
          real: await build(),
          first: 'echo "no such backend" >&2; exit 3',
        });
        const { code, rows } = await upgrade(service, '--path', broken, '--check', '--slots', PRIMARY);
        expect([rows, code]).toEqual([
          [{ slot: PRIMARY, flags: 'accepted', start: 'failed', result: 'breaks', message: expect.stringContaining('no such backend') }],
          1,
        ]);
      }, 120_000);

      test('to a build that fails with what a trial leaves out puts the slot back, and moves no other one', async () => {
        const at = path.join(dir, 'small');
        const first = 'case "$*" in *"--ctx-size 512"*) ;; *) echo "too large" >&2; exit 3;; esac';
        const small = await writeBuild({ help: B11669, lacks: [] }, at, { help: path.join(at, 'help.txt'), real: await build(), first });
        await service.save(ZEBRA, SLOTS[PRIMARY] ?? '');
        await service.until(ZEBRA, 'ready', isAnswering);
        const { code, rows } = await upgrade(service, '--path', small, '--slots', `${PRIMARY},${ZEBRA}`);
        expect(rows).toMatchObject([
          { slot: PRIMARY, start: 'answered', result: 'put back', message: expect.stringContaining('too large') },
          { slot: ZEBRA, start: 'answered', result: 'not moved' },
        ]);
        expect(code).toBe(1);
        expect((await filesOf(service))[2]).toBe(texts[2]);
        await service.until(PRIMARY, 'ready', isAnswering);
        expect((await upgrade(service, '--undo')).err).toContain('No upgrade of "gguf" is recorded here');
      }, 240_000);

      test('leaves nothing behind when it is killed', async () => {
        const at = path.join(dir, 'slow');
        const first = `echo $$ > '${path.join(at, 'pid')}'; exec sleep 600`;
        const slow = await writeBuild({ help: B11669, lacks: [] }, at, { help: path.join(at, 'help.txt'), real: await build(), first });
        const args = ['upgrade', 'engine', 'gguf', '--path', slow, '--check', '--slots', PRIMARY];
        const verb = startSvcctl(args, { env: { ...service.environment, TMPDIR: at } });
        const serverOf = async (): Promise<number> => Number(await readFile(path.join(at, 'pid'), 'utf8').catch(() => '0'));
        await eventually('the server of the trial runs', async () => isRunning(await serverOf()), 60_000);
        verb.kill('SIGKILL');
        const server = await serverOf();
        await eventually('it has ended', async () => !isRunning(server), 60_000);
      }, 150_000);

      test('says what it cannot try out, and refuses what is no build', async () => {
        await service.save(ZEBRA, 'provider = "gguf"\nenabled = false\n[model]\ndefault = "missing.gguf"\n');
        await service.until(ZEBRA, 'off', (seen) => seen?.status.conditions.some(({ reason }) => reason === 'Disabled') === true);
        const { rows } = await upgrade(service, '--path', await build(), '--check', '--slots', ZEBRA);
        expect(rows).toMatchObject([
          { flags: 'accepted', start: 'skipped', result: 'can move', message: 'Its model "missing.gguf" is not on this machine' },
        ]);
        expect((await upgrade(service, '--path', '/bin/true', '--check')).err).toContain('The build is no llama-server');
        expect((await upgrade(service, '--path', path.join(dir, 'help.txt'), '--check')).err).toContain('is no program that can be run');
        expect((await upgrade(service, '--image', REAL_IMAGE)).err).toContain('Slots run as processes here');
        expect((await upgrade(service, '--path', await build(), '--slots', 'nobody')).err).toContain('No slot "nobody"');
      }, 120_000);
    }
  });
}
