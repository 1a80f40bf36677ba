import { describe, expect, test } from '@jest/globals';
import {
  isEncrypted,
  isSecret,
  judgeEntries,
  judgeFile,
  judgeTogether,
  listProblems,
  placeOfSecret,
} from '../../../../src/host/source/decide/judge-tree.ts';
import type { TreeEntry } from '../../../../src/host/source/ports.ts';

const entry = (path: string, more: Partial<TreeEntry> = {}): TreeEntry => ({ path, kind: 'file', id: path, sizeBytes: 10, ...more });
const judge = (...entries: readonly TreeEntry[]) => judgeEntries(entries, 2 ** 20);
const SLOT = 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n';

describe('Entries of a tree', () => {
  test('are declarations by their places; others are left out', () => {
    const names = [
      'slots/a.toml',
      'slots/README.md',
      'slots/.b.toml',
      'slots/b.toml.bak',
      'engines/vllm.toml',
      'profiles/day/a.toml',
      'slots/deep/a.toml',
      'profiles/a.toml',
      'checks/golden.jsonl',
      'checks/hello.wav',
      'checks/deep/golden.jsonl',
    ];
    expect(judge(...names.map((name) => entry(name)))).toEqual({
      files: ['slots/a.toml', 'engines/vllm.toml', 'profiles/day/a.toml', 'checks/golden.jsonl'].map((name) => entry(name)),
      problems: [],
    });
  });

  test.each([
    [entry('tokens.toml'), '"tokens.toml": secrets do not belong in a repository; remove this file, and replace the secrets in it'],
    [entry('api.env'), '"api.env": secrets do not belong in a repository; remove this file, and replace the secrets in it'],
    [entry('slots/a.toml', { kind: 'link' }), '"slots/a.toml" is a symbolic link, and these are not followed; replace it by a copy'],
    [entry('slots', { kind: 'link' }), '"slots" is a symbolic link, and these are not followed; replace it by a copy'],
    [entry('profiles', { kind: 'submodule' }), '"profiles" is a submodule, and these are not fetched; replace it by files'],
    [entry('engines'), '"engines" is a file, but has to be a directory; rename it'],
    [entry('slots/a.toml', { sizeBytes: 2 ** 21 }), '"slots/a.toml" has 2097152 bytes, more than 1 MiB; make it smaller'],
    [entry('slots/\u{FFFD}.toml'), '"slots/\u{FFFD}.toml": the file name is not valid UTF-8; rename it'],
    [entry('profiles/Day/a.toml'), '"profiles/Day/a.toml": rename the directory. A profile name consists of'],
  ])('%j is a problem', (found, message) => {
    const { problems } = judge(entry('slots/b.toml'), found);
    expect(problems).toEqual([expect.stringContaining(message)]);
  });

  test('are limited in number and size', () => {
    expect(judge(...Array.from({ length: 5001 }, (_, index) => entry(`slots/a${index}.toml`))).problems).toEqual([
      'The commit has 5001 files, more than 5000; remove some',
    ]);
    expect(judge(...Array.from({ length: 65 }, (_, index) => entry(`slots/a${index}.toml`, { sizeBytes: 2 ** 20 }))).problems).toEqual([
      'The files have more than 64 MiB together; make them smaller',
    ]);
    expect(listProblems(Array.from({ length: 25 }, String)).at(-1)).toBe('and 5 more problems');
  });
});

describe('A file', () => {
  test.each([
    ['slots/primary.toml', SLOT, undefined, []],
    ['slots/Primary.toml', SLOT, undefined, ['slots/Primary.toml: The file name is not the name of a slot; rename it.']],
    ['slots/primary.toml', `nothing = 1\n${SLOT}`, undefined, ['slots/primary.toml:1:1: nothing: ']],
    ['profiles/day/primary.toml', 'x', undefined, ['profiles/day/primary.toml:1:']],
    ['engines/vllm.toml', 'serves = 5\n', undefined, ['engines/vllm.toml:']],
    ['engines/gguf.toml', '=', undefined, ['engines/gguf.toml:1:']],
    ['slots/primary.toml', 'x', 'UTF-16', ['slots/primary.toml: This file is UTF-16; save it as UTF-8']],
    [
      'slots/primary.toml',
      'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n',
      undefined,
      ['slots/primary.toml: This is a pointer of Git LFS, whose files are not fetched; commit the text itself'],
    ],
  ])('%s with %j is judged as where it is in force', (path, text, encoding, problems) => {
    const found = judgeFile(path, text, encoding).problems;
    expect(found.slice(0, Math.max(1, problems.length))).toEqual(problems.map((problem) => expect.stringContaining(problem)));
  });
});

describe('Files together', () => {
  const files = (texts: Readonly<Record<string, string>>) =>
    new Map(Object.entries(texts).map(([path, provider]) => [path, { text: '', problems: [], provider }]));

  test('name engines of the tree or of the machine', () => {
    const named = files({
      'slots/a.toml': 'mine',
      'slots/b.toml': 'theirs',
      'slots/c.toml': 'gguf',
      'slots/d.toml': 'none',
      'engines/theirs.toml': '',
    });
    expect(judgeTogether(named, new Set(['mine']), 0)).toEqual([
      'slots/d.toml: There is no engine "none": add "engines/none.toml", or correct "provider"',
    ]);
  });

  test('do not remove all slots', () => {
    expect(judgeTogether(files({ 'engines/a.toml': '' }), new Set(), 3)).toEqual([
      expect.stringContaining('would remove all 3 slots: check "SVC_GIT_PATH"'),
    ]);
    expect(judgeTogether(files({}), new Set(), 0)).toEqual([]);
  });
});

describe('Secrets', () => {
  test.each([
    ['secrets/token.age', 'secrets/token'],
    ['secrets/cloud.sops.yaml', 'secrets/cloud.yaml'],
    ['secrets/cloud.sops', 'secrets/cloud'],
    ['secrets/plain', 'secrets/plain'],
  ])('%s is at %s', (path, place) => {
    expect([isSecret(path), placeOfSecret(path)]).toEqual([true, place]);
  });

  test.each(['secrets/.hidden', 'secrets/README.md', 'secrets/deep/token', 'slots/a.toml'])('%s is none', (path) => {
    expect(isSecret(path)).toBe(false);
  });

  test.each([
    ['age-encryption.org/v1\n-> X25519', true],
    ['-----BEGIN AGE ENCRYPTED FILE-----\n', true],
    ['token: ENC[x]\nsops:\n  age: []\n', true],
    ['{\n  "token": "ENC[x]",\n  "sops": {}\n}', true],
    ['TOKEN=ENC[x]\nsops_version=3\n', true],
    ['hunter2', false],
    ['my age-encryption.org/v1\n', false],
  ])('%j is encrypted: %j', (text, expected) => {
    expect(isEncrypted(text)).toBe(expected);
  });

  test('do not replace each other', () => {
    const files = new Map(['secrets/a.age', 'secrets/a.sops'].map((path) => [path, { text: '', problems: [] }]));
    expect(judgeTogether(files, new Set(), 0)).toEqual(['Several files are "secrets/a" when they are decrypted; rename all but one']);
  });
});
