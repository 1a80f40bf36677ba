/** Writers of the file of tokens that are killed in the middle of their work: `SVC_TEST_KILLS` of them (500 by `npm run test:long -- tokens`), always two at a time. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTokenStore } from '../../src/auth/token-store.ts';

const KILLS = Number(process.env['SVC_TEST_KILLS'] ?? 8);
/** So that rounds stay short. */
const MOST_TOKENS = 300;
const COMMENT = '# Tokens of the office\n';
let directory: string;
let path: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-tokens-'));
  path = join(directory, 'tokens.toml');
  await writeFile(path, COMMENT, { mode: 0o600 });
});
afterEach(async () => await rm(directory, { recursive: true, force: true }));

interface Writer {
  readonly child: ChildProcess;
  /** Changes that were reported as complete. */
  readonly done: () => readonly string[];
  readonly errors: () => string;
  readonly ended: Promise<void>;
}

function startWriter(): Writer {
  const child = spawn(process.execPath, ['test/auth/token-writer-process.ts', path], { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let errors = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return { child, done: () => out.split('\n').slice(0, -1), errors: () => errors, ended };
}

async function untilWrites({ done, child, errors }: Writer): Promise<void> {
  while (done().length === 0) {
    if (child.exitCode !== null) throw new Error(`The writer ended: ${errors()}`);
    await sleep(2);
  }
}

test('the file is always valid, and has each token whose creation was reported, and none whose revocation was', async () => {
  const warnings: string[] = [];
  const store = createTokenStore({ path, log: { warn: (_fields, message) => void warnings.push(message) } });
  let wanted = new Set<string>();
  let changes = 0;
  for (let kill = 0; kill < KILLS; kill += 2) {
    const writers = [startWriter(), startWriter()];
    await Promise.all(writers.map(untilWrites));
    for (const { child, ended } of writers) {
      // A reader at any moment finds a whole file.
      store.current();
      await sleep((kill * 7) % 23);
      child.kill('SIGKILL');
      await ended;
    }
    expect(writers.map(({ errors }) => errors())).toEqual(['', '']);
    const done = writers.flatMap((writer) => writer.done());
    changes += done.length;
    const idsOf = (sign: string): readonly string[] => done.filter((line) => line.startsWith(sign)).map((line) => line.slice(1));
    for (const id of idsOf('+')) wanted.add(id);
    // A killed writer may have revoked this one, and could not say so.
    for (const id of idsOf('~')) wanted.delete(id);
    const present = store.current();
    expect([...wanted].filter((id) => !present.has(id))).toEqual([]);
    expect(idsOf('-').filter((id) => present.has(id))).toEqual([]);
    // The last change of each writer is either complete or not there at all.
    expect(present.size - wanted.size).toBeLessThanOrEqual(writers.length);
    expect(warnings).toEqual([]);
    expect(await readFile(path, 'utf8')).toMatch(COMMENT);
    if (present.size > MOST_TOKENS) await store.change(() => new Map());
    wanted = new Set(store.current().keys());
  }
  expect(changes).toBeGreaterThan(KILLS);
}, 3_600_000);
