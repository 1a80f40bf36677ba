import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { placeDirectory } from '../../../src/models/download/place-file.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-place-'));
});
afterEach(async () => await rm(root, { recursive: true }));

async function write(directory: string, text: string): Promise<string> {
  await mkdir(path.join(root, directory));
  await writeFile(path.join(root, directory, 'a'), text);
  return path.join(root, directory);
}

describe('a directory that is put in place', () => {
  test.each([
    ['takes a free place', undefined, true, 'new'],
    ['leaves a correct one', 'old', true, 'old'],
    ['replaces a wrong one, of which nothing is left', 'old', false, 'new'],
  ])('%s', async (_what, before, isCorrect, after) => {
    const from = await write('from', 'new');
    if (before !== undefined) await write('model', before);
    await placeDirectory(from, path.join(root, 'model'), async () => isCorrect);
    expect(await readFile(path.join(root, 'model/a'), 'utf8')).toBe(after);
    expect((await readdir(root)).filter((name) => name !== 'from')).toEqual(['model']);
  });
});
