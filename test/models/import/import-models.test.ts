import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { encodeDemoModel } from '../../../toolboxes/demo/demo-models.ts';
import { findForeignModels, foreignDirectories } from '../../../src/models/import/import-model.ts';
import { createModelStore } from '../../../src/models/store.ts';
import { ModelId } from '../../../src/schema/words/names.ts';
import { svcctl } from '../../cli/run-svcctl.ts';
import { MODEL_FORMATS } from '../../../src/providers/registry.ts';

const fox = Buffer.from(encodeDemoModel('demo-fox'));
const owl = Buffer.from(encodeDemoModel('demo-owl'));
const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex');
const LAYER = 'application/vnd.ollama.image.';

let home = '';
let root = '';
beforeEach(async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-import-'));
  home = path.join(directory, 'home');
  root = path.join(directory, 'store');
  await mkdir(root);
});
afterEach(() => rm(path.dirname(home), { recursive: true, force: true }));

async function put(file: string, content: Buffer | string): Promise<string> {
  const full = path.join(home, file);
  await mkdir(path.dirname(full), { recursive: true });
  await writeFile(full, content);
  return full;
}

async function layOutOllama(content = fox): Promise<void> {
  const layers = [
    { mediaType: `${LAYER}model`, digest: `sha256:${sha256(fox)}`, size: fox.length },
    { mediaType: `${LAYER}template`, digest: `sha256:${'1'.repeat(64)}`, size: 1 },
    { mediaType: `${LAYER}license`, digest: `sha256:${'2'.repeat(64)}`, size: 1 },
  ];
  await put('.ollama/models/manifests/registry.ollama.ai/library/fox/3b', JSON.stringify({ schemaVersion: 2, layers }));
  await put('.ollama/models/manifests/registry.ollama.ai/library/broken/1b', '{');
  await put(`.ollama/models/blobs/sha256-${sha256(fox)}`, content);
  await put(`.ollama/models/blobs/sha256-${sha256(owl)}-partial`, 'x');
}

async function layOutHub(): Promise<void> {
  const repo = '.cache/huggingface/hub/models--own-er--my-repo-GGUF';
  const blob = await put(`${repo}/blobs/${sha256(owl)}`, owl);
  await put(`${repo}/refs/main`, 'b'.repeat(40));
  for (const commit of ['a'.repeat(40), 'b'.repeat(40)]) {
    const snapshot = path.join(home, repo, 'snapshots', commit);
    await mkdir(snapshot, { recursive: true });
    await symlink(path.relative(snapshot, blob), path.join(snapshot, 'owl-Q8_0.gguf'));
    await symlink(path.relative(snapshot, blob), path.join(snapshot, 'mmproj-F16.gguf'));
  }
  await put(`${repo}/blobs/${'c'.repeat(64)}.incomplete`, 'x');
}

const run = (...args: string[]) =>
  svcctl(['model', 'import', '--store', root, ...args], { env: { HOME: home, XDG_CACHE_HOME: '', HF_HOME: '' } });
const look = async (id: string) =>
  (await createModelStore({ root, formats: MODEL_FORMATS }).observe([ModelId.parse(id)], new AbortController().signal)).get(
    ModelId.parse(id),
  );

describe('svcctl model import', () => {
  test('takes what Ollama, LM Studio, llama.cpp and Hugging Face have, without another copy of it', async () => {
    await layOutOllama();
    await layOutHub();
    await put('.lmstudio/models/publisher/Fox-GGUF/fox-Q4_K_M.gguf', fox);
    await put('.lmstudio/models/ignored.gguf', fox);
    await put('.cache/llama.cpp/o_r_owl.gguf', owl);
    await put('.cache/llama.cpp/o_r_owl.gguf.etag', 'x');
    await put('.cache/llama.cpp/o_r_half.gguf.downloadInProgress', 'x');
    const { code, out, err } = await run();
    expect({ code, err }).toEqual({ code: 0, err: expect.not.stringContaining('error') });
    const ids = [
      'ollama/fox/3b/fox-3b.gguf',
      'lm-studio/publisher/Fox-GGUF/fox-Q4_K_M/fox-Q4_K_M.gguf',
      'llama.cpp/o_r_owl/o_r_owl.gguf',
      'huggingface/own-er/my-repo-GGUF/owl-Q8_0/owl-Q8_0.gguf',
    ];
    expect(
      out
        .split('\n')
        .slice(0, -1)
        .map((line) => line.split(',')[0]),
    ).toEqual(ids.map((id) => `model/${id} imported by hard link`));
    for (const id of ids) expect(await look(id)).toMatchObject({ kind: 'present' });
    expect(await look(ids[3] ?? '')).toMatchObject({ facts: { contents: { projector: expect.stringContaining('mmproj-F16.gguf') } } });
    const original = await stat(path.join(home, '.lmstudio/models/publisher/Fox-GGUF/fox-Q4_K_M.gguf'));
    expect((await stat(path.join(root, ids[1] ?? ''))).ino).toBe(original.ino);
    expect((await run()).out).toContain(`model/${ids[0]} already present`);
  });

  test('notices a file that is not what its own tool describes, and takes the others', async () => {
    await layOutOllama(Buffer.concat([fox.subarray(0, fox.length - 1), Buffer.from([1])]));
    await put('.lmstudio/models/p/Owl/owl.gguf', owl);
    await put('.lmstudio/models/p/Bad/bad.gguf', 'no model');
    const { code, out, err } = await run();
    expect(code).toBe(1);
    expect(err).toContain('ollama fox:3b: The SHA-256 of "');
    expect(err).toContain('lm-studio p/Bad/bad.gguf: The model file "bad.gguf"');
    expect(out).toContain('model/lm-studio/p/Owl/owl/owl.gguf imported');
    expect(await look('ollama/fox/3b/fox-3b.gguf')).toMatchObject({ kind: 'missing' });
    expect(await look('lm-studio/p/Bad/bad/bad.gguf')).toMatchObject({ kind: 'missing' });
  });

  test('shows first what it would do', async () => {
    await layOutOllama();
    expect(await run('--dry-run')).toMatchObject({ code: 0, out: 'would import ollama fox:3b as ollama/fox/3b/fox-3b.gguf\n' });
    expect(await look('ollama/fox/3b/fox-3b.gguf')).toMatchObject({ kind: 'missing' });
  });

  test('takes named files, with shards and projector, and refuses others', async () => {
    const first = await put('m-00001-of-00002.gguf', fox);
    await put('m-00002-of-00002.gguf', owl);
    expect(await run(first)).toMatchObject({
      code: 0,
      out: expect.stringContaining('model/file/m/m-00001-of-00002.gguf imported by hard link'),
    });
    expect(await readFile(path.join(root, 'file/m/m-00002-of-00002.gguf'))).toEqual(owl);
    expect(await run(path.join(home, 'none.gguf'))).toMatchObject({ code: 64, err: expect.stringContaining('is not a file') });
    const listed = await svcctl(['model', 'verify', '--store', root]);
    expect(listed).toMatchObject({ code: 0, out: expect.stringContaining(`m-00002-of-00002.gguf: correct, sha256 ${sha256(owl)}`) });
  });

  test('finds nothing in empty and missing directories', async () => {
    expect(await run()).toMatchObject({ code: 1, err: expect.stringContaining('No models of other tools found') });
    expect(await run('--from', 'ollama', '--directory', path.join(home, 'away'))).toMatchObject({ code: 1 });
    expect(await run('--directory', home)).toMatchObject({ code: 64 });
  });
});

test('the directories of other tools follow their own variables', () => {
  const directories = foreignDirectories({ HOME: '/h', OLLAMA_MODELS: '/o', HF_HOME: '/hf', LLAMA_CACHE: '/l' });
  expect(directories.ollama[0]).toBe('/o');
  expect(directories.huggingface).toEqual(['/l', '/hf/hub']);
  expect(directories['lm-studio']).toEqual(['/h/.lmstudio/models']);
});

test('names with other characters get valid paths in the store', async () => {
  await put('x/Some One/M (v1) GGUF/m [Q4].gguf', fox);
  const [found] = await findForeignModels('lm-studio', path.join(home, 'x'));
  expect(found).toMatchObject({ directory: 'lm-studio/Some-One/M--v1--GGUF/m--Q4-', files: [{ name: 'm--Q4-.gguf' }] });
});
