/** Reads and writes the saved results in `bench/results`. */
import { spawnSync } from 'node:child_process';
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseResults, type Machine, type Result } from './decide/result.ts';

const DIRECTORY = join(import.meta.dirname, 'results');

/** What a figure depends on: an earlier result, or a page about it, is no change. */
const MEASURED = [':/', ':(top,exclude)bench/results', ':(top,exclude)docs'];

/** The oldest first. */
export async function readResults(): Promise<readonly Result[]> {
  const names = await readdir(DIRECTORY).catch(() => []);
  return parseResults(
    await Promise.all(names.filter((name) => name.endsWith('.json')).map((name) => readFile(join(DIRECTORY, name), 'utf8'))),
  );
}

/** Returns the path of the file. */
export async function saveResult(machine: Machine, measurements: Result['measurements']): Promise<string> {
  const savedAt = new Date().toISOString();
  const commit = git('rev-parse', 'HEAD');
  const result: Result = { savedAt, commit, modified: git('status', '--porcelain', '--', ...MEASURED) !== '', machine, measurements };
  const file = join(DIRECTORY, `${savedAt.slice(0, 19).replaceAll(':', '-')}.json`);
  await mkdir(DIRECTORY, { recursive: true });
  await writeFile(file, `${JSON.stringify(result, undefined, 2)}\n`);
  return file;
}

function git(...args: readonly string[]): string {
  const { status, stdout } = spawnSync('git', args, { cwd: import.meta.dirname });
  return status === 0 ? stdout.toString().trim() : 'unknown';
}
