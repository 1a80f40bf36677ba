/** `svcctl toolbox`, with a program in the place of podman that writes down its arguments. */
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { parse } from 'smol-toml';
import { planBuild, judgeImage, withPin } from '../../src/cli/decide/toolbox-plan.ts';
import { PROVIDER_KIND_NAMES } from '../../src/schema/slot/provider-kinds.ts';
import { svcctl } from './run-svcctl.ts';
import { PROVIDERS } from '../../src/providers/registry.ts';

const ID = 'b'.repeat(64);
const OTHER = 'c'.repeat(64);
let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svc-toolbox-'));
  await mkdir(path.join(dir, 'bin'));
  const script = `#!/bin/sh
echo "$@" >> ${dir}/calls
case "$1 $2" in
  "build --iidfile") printf 'sha256:${ID}' > "$3" ;;
  "image inspect") [ -e ${dir}/has ] && cat ${dir}/has || exit 125 ;;
esac
`;
  await writeFile(path.join(dir, 'bin/podman'), script);
  await chmod(path.join(dir, 'bin/podman'), 0o755);
});
afterEach(async () => rm(dir, { recursive: true }));

const run = async (...args: string[]) =>
  svcctl(['toolbox', ...args], { env: { PATH: `${path.join(dir, 'bin')}:${process.env['PATH'] ?? ''}`, SVC_CONFIG_DIR: dir } });
const own = async () => readFile(path.join(dir, 'toolboxes.toml'), 'utf8');
const calls = async () => (await readFile(path.join(dir, 'calls'), 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');

describe('svcctl toolbox', () => {
  test('build builds the image with podman, and pins what was built, not what was asked for', async () => {
    const { code, out } = await run('build', 'gguf', 'cpu', '--build-arg', 'BASE=localhost/base');
    expect([code, out]).toEqual([0, expect.stringContaining('pinned it in')]);
    expect(await calls()).toEqual([
      expect.stringMatching(
        /^build --iidfile \S+ --build-arg BACKEND=cpu --build-arg BASE=localhost\/base --tag localhost\/svc-toolbox-gguf-cpu:v1 \S+toolboxes\/gguf$/,
      ),
    ]);
    expect(parse(await own())).toEqual({ gguf: { cpu: { image: 'localhost/svc-toolbox-gguf-cpu:v1', id: `sha256:${ID}` } } });
  });

  test('build pins both providers of the image for speech, and leaves the rest of the file as it is', async () => {
    await writeFile(
      path.join(dir, 'toolboxes.toml'),
      '# ours\n[gguf.cpu]\nimage = "localhost/mine"\n\n[stt.cpu]\nimage = "localhost/old"\n',
    );
    expect((await run('build', 'stt')).code).toBe(0);
    const text = await own();
    expect(text).toMatch(/^# ours\n/);
    const built = { cpu: { image: 'localhost/svc-toolbox-speech-cpu:v1', id: `sha256:${ID}` } };
    expect(parse(text)).toEqual({ gguf: { cpu: { image: 'localhost/mine' } }, stt: built, tts: built });
  });

  test('build refuses what it cannot build, and a file with a mistake, before podman is asked', async () => {
    expect(await run('build', 'tts', 'vulkan')).toMatchObject({ code: 64, err: expect.stringContaining('use one of the backends "cpu"') });
    expect(await run('build', 'stt', 'cuda')).toMatchObject({ code: 64, err: expect.stringContaining('use one of the backends "cpu"') });
    await writeFile(path.join(dir, 'toolboxes.toml'), '[gguf');
    expect((await run('build', 'gguf')).code).toBe(1);
    expect(await calls()).toEqual([]);
  });

  test('list shows that an image is not published', async () => {
    const { code, out } = await run('list');
    expect(code).toBe(0);
    expect(out).toMatch(/^npu +npu +\S+svc-toolbox-npu:v1 +unpublished$/m);
  });

  test('verify fails if podman has another image under the name that is pinned', async () => {
    await run('build', 'gguf', 'cpu');
    const state = async () => /^gguf +cpu .* (\S+)$/m.exec((await run('verify')).out)?.[1];
    expect(await state()).toBe('absent');
    await writeFile(path.join(dir, 'has'), ID);
    expect([(await run('verify')).code, await state()]).toEqual([0, 'verified']);
    await writeFile(path.join(dir, 'has'), OTHER);
    expect([(await run('verify')).code, await state()]).toEqual([1, 'different']);
  });

  test('pull pulls by digest what is published, and says so if nothing is', async () => {
    expect(await run('pull')).toMatchObject({ code: 1, err: expect.stringContaining('no image is published') });
    await writeFile(path.join(dir, 'toolboxes.toml'), `[gguf.cpu]\nimage = "registry.example/gguf:v1"\ndigest = "sha256:${ID}"\n`);
    expect((await run('pull', 'gguf')).code).toBe(0);
    expect(await calls()).toEqual([`pull registry.example/gguf@sha256:${ID}`]);
  });
});

describe('the decisions', () => {
  test('each provider has an image to build', () => {
    for (const kind of PROVIDER_KIND_NAMES) {
      const plan = planBuild(PROVIDERS, kind);
      if (typeof plan === 'string') throw new Error(plan);
      expect(plan.entries.map(([provider]) => provider)).toContain(kind);
    }
  });

  test.each([
    [{ image: 'r/x', digest: 'unpublished' }, ID, 'unpublished'],
    [{ image: 'r/x', digest: `sha256:${ID}` }, undefined, 'absent'],
    [{ image: 'r/x', digest: `sha256:${ID}` }, OTHER, 'verified'],
    [{ image: 'localhost/x', id: `sha256:${ID}` }, ID, 'verified'],
    [{ image: 'localhost/x', id: `sha256:${ID}` }, OTHER, 'different'],
    [{ image: 'localhost/x' }, OTHER, 'not pinned'],
  ])('%j with the id %s is %s', (entry, found, state) => {
    expect(judgeImage(entry, found)).toBe(state);
  });

  test('an entry is replaced where it stands', () => {
    const text = 'a = 1\n[ gguf . cpu ] # mine\nimage = "x"\nid = "y"\n[tts.cpu]\nimage = "z"\n';
    expect(withPin(text, 'gguf', 'cpu', { image: 'localhost/n', by: 'id', sha256: ID })).toBe(
      `a = 1\n[gguf.cpu]\nimage = "localhost/n"\nid = "sha256:${ID}"\n\n[tts.cpu]\nimage = "z"\n`,
    );
  });
});
