/** Installs the packages of the speech server once, as locked in its folder, and returns the directory with its `node_modules`. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, copyFile, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = path.resolve(import.meta.dirname, '../../..');
const SOURCES = path.join(ROOT, 'toolboxes', 'speech');

export async function installSpeechModules(): Promise<string> {
  const lock = await readFile(path.join(SOURCES, 'package-lock.json'));
  const state = path.join(ROOT, '.svc');
  const dir = path.join(state, `speech-modules-${createHash('sha256').update(lock).digest('hex').slice(0, 16)}`);
  if (await exists(dir)) return dir;
  await mkdir(state, { recursive: true });
  const part = await mkdtemp(path.join(state, 'speech-modules-part-'));
  for (const name of ['package.json', 'package-lock.json']) await copyFile(path.join(SOURCES, name), path.join(part, name));
  await run('npm', ['ci', '--ignore-scripts', '--omit=dev', '--no-audit', '--no-fund', '--prefix', part], { cwd: part });
  // Another suite may have been faster.
  await rename(part, dir).catch(async () => rm(part, { recursive: true, force: true }));
  return dir;
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
