/** What a token and its limits cost in JavaScript, without a network (`auth-memory-process.ts`). */
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ALL_LIMITS, COUNTED } from './auth-cpu.ts';
import { createTokenFile } from './auth-tokens.ts';
import { median, note, type Row } from './measure.ts';

const ROUNDS = 120;
/** The code is compiled meanwhile. */
const FIRST_ROUNDS = 10;
const REQUESTS = 3200;
/** Each gateway, and the one to which its time is compared. */
const KINDS = [
  ['a token takes, besides', 1, 0],
  ['usage takes, besides the token', 4, 1],
  ['limits that count take, besides the token', 2, 1],
  ['all limits take, besides the token', 3, 1],
] as const;

/** No goals: what these microseconds are of a request depends on the network. */
export async function measureInMemory(directory: string): Promise<readonly Row[]> {
  const files = await Promise.all(
    [{}, { limits: COUNTED }, { limits: ALL_LIMITS }].map((more) => createTokenFile({ known: 1, total: 1, ...more })),
  );
  const paths = files.map((_file, index) => join(directory, `memory-${index}.toml`));
  for (const [index, path] of paths.entries()) await writeFile(path, files[index]?.text ?? '', { mode: 0o600 });
  const plan = [FIRST_ROUNDS + ROUNDS, REQUESTS, paths, files.map(({ tokens }) => tokens[0])];
  const args = ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'auth-memory-process.ts')];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { input: JSON.stringify(plan), encoding: 'utf8' });
  if (status !== 0) throw new Error(`The gateways in memory failed: ${stderr}`);
  const rounds = z.array(z.array(z.number())).parse(JSON.parse(stdout)).slice(FIRST_ROUNDS);
  const without = median(rounds.map(([off = Number.NaN]) => off));
  const rows = KINDS.map(([kind, index, against]) => {
    const more = median(rounds.map((times) => (times[index] ?? Number.NaN) - (times[against] ?? Number.NaN)));
    return note(`  ${kind}`, `${more.toFixed(2)} µs`);
  });
  return [note('JavaScript of a request in memory, without authentication', `${without.toFixed(2)} µs`), ...rows];
}
