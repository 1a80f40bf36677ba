/** Reads real files: what is refused, and what stays in force. */
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createEngineDirectory, type Engines } from '../../src/files/engine-directory.ts';
import { formatProblem } from '../../src/schema/slot/spec-problem.ts';

const GOOD = `serves = ["chat"]
backends = ["cpu"]
command = ["my-server", "{model}", "{host}", "{port}"]
models = { format = "any-file" }
health = { path = "/health" }
`;
let dir = '';
let logged: string[] = [];

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svc-engines-'));
  logged = [];
});
afterEach(async () => await rm(dir, { recursive: true, force: true }));

const open = () =>
  createEngineDirectory({
    directory: path.join(dir, 'engines'),
    lastGoodFile: path.join(dir, 'engines.json'),
    log: { info: () => undefined, warn: (_facts, message) => void logged.push(message) },
  });
const save = async (name: string, text: string | Uint8Array): Promise<void> => {
  await mkdir(path.join(dir, 'engines'), { recursive: true });
  await writeFile(path.join(dir, 'engines', name), text);
};
const problemsOf = ({ problems }: Engines, name: string): readonly string[] =>
  (problems.get(name) ?? []).map((problem) => formatProblem(problem).replace(`${dir}/engines/`, ''));
const none = new Set<string>();
const used = new Set(['mine']);

test('without a directory there are no engines, and no problems', async () => {
  expect(await open().read(used)).toEqual({ definitions: new Map(), problems: new Map() });
});

test('a definition is the same object until its meaning changes', async () => {
  await save('mine.toml', GOOD);
  const engines = open();
  const first = (await engines.read(none)).definitions.get('mine');
  expect(first).toMatchObject({ name: 'mine', serves: ['chat'], port: 8080 });
  await save('mine.toml', `# a comment\n${GOOD}`);
  expect((await engines.read(none)).definitions.get('mine')).toBe(first);
  await save('mine.toml', GOOD.replace('"{host}"', '"{host}", "--fast"'));
  const changed = (await engines.read(none)).definitions.get('mine');
  expect(changed).not.toBe(first);
  expect(changed?.command).toContain('--fast');
});

test('a mistake is reported with line and column, the last good definition stays, and other engines are not affected', async () => {
  await save('mine.toml', GOOD);
  await save('other.toml', GOOD);
  const engines = open();
  const before = (await engines.read(none)).definitions;
  await save('mine.toml', GOOD.replace('"{port}"', '"{prot}"'));
  const after = await engines.read(none);
  expect(after.definitions.get('mine')).toBe(before.get('mine'));
  expect(after.definitions.get('other')).toBe(before.get('other'));
  expect([...after.problems.keys()]).toEqual(['mine']);
  expect(problemsOf(after, 'mine')).toEqual([
    expect.stringContaining('mine.toml:3:1: command: Pass "{port}" to the server'),
    'mine.toml:3:46: command.3: Unknown placeholder "{prot}"; did you mean "{port}"?; the last good definition stays in force',
  ]);
  await engines.read(none);
  expect(logged).toHaveLength(1);
});

test('the last good definition survives a restart, also if the file is invalid or gone by then', async () => {
  await save('mine.toml', GOOD);
  await save('other.toml', GOOD);
  await open().read(used);
  await save('mine.toml', 'serves = ');
  const again = open();
  expect((await again.read(used)).definitions.get('mine')).toMatchObject({ serves: ['chat'] });
  await rm(path.join(dir, 'engines'), { recursive: true });
  const gone = await open().read(used);
  expect([...gone.definitions.keys()]).toEqual(['mine']);
  expect(problemsOf(gone, 'mine')).toEqual([
    'mine.toml: This file of an engine is missing, and slots name the engine; restore it; the last good definition stays in force',
  ]);
});

test('a deleted definition is gone once no slot names it', async () => {
  await save('mine.toml', GOOD);
  const engines = open();
  await engines.read(used);
  await rm(path.join(dir, 'engines', 'mine.toml'));
  expect((await engines.read(used)).definitions.has('mine')).toBe(true);
  expect(await engines.read(none)).toEqual({ definitions: new Map(), problems: new Map() });
  expect((await open().read(used)).definitions.size).toBe(0);
});

test('two files whose names differ in case: the valid name is the engine, and the other file is reported', async () => {
  await save('mine.toml', GOOD);
  await save('MINE.toml', GOOD.replace('my-server', 'other-server'));
  const { definitions, problems } = await open().read(used);
  expect([...definitions.values()].map(({ command }) => command[0])).toEqual(['my-server']);
  expect([...problems.keys()]).toEqual(['MINE']);
});

test('a large file, a named pipe, a directory, a dangling link and a file in another encoding are refused without blocking', async () => {
  await save('mine.toml', GOOD);
  await save('large.toml', `# ${'x'.repeat(2 ** 20)}\n${GOOD}`);
  execFileSync('mkfifo', [path.join(dir, 'engines', 'pipe.toml')]);
  await mkdir(path.join(dir, 'engines', 'folder.toml'));
  execFileSync('ln', ['-s', 'nowhere', path.join(dir, 'engines', 'link.toml')]);
  await save('latin.toml', Buffer.from([0x73, 0xff, 0xfe]));
  const { definitions, problems } = await open().read(used);
  expect([...definitions.keys()]).toEqual(['mine']);
  expect([...problems.keys()].toSorted()).toEqual(['folder', 'large', 'latin', 'link', 'pipe']);
});

test('a directory that cannot be listed keeps what was good', async () => {
  await save('mine.toml', GOOD);
  const engines = open();
  await engines.read(used);
  await rename(path.join(dir, 'engines'), path.join(dir, 'moved'));
  await writeFile(path.join(dir, 'engines'), 'a file');
  const { definitions, problems } = await engines.read(used);
  expect([...definitions.keys()]).toEqual(['mine']);
  expect([...problems.keys()]).toEqual(['mine']);
});

test('an image without a digest is a warning in the log', async () => {
  await save('mine.toml', `image = { cpu = "docker.io/a/b:1" }\n${GOOD}`);
  const { definitions, problems } = await open().read(used);
  expect([definitions.size, problems.size]).toEqual([1, 0]);
  expect(logged).toEqual([expect.stringMatching(/mine\.toml:1:\d+: image\.cpu: The image "docker\.io\/a\/b:1" has no digest/)]);
});
