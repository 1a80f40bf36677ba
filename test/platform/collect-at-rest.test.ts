import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

const MODULE = new URL('../../src/platform/collect-at-rest.ts', import.meta.url).href;

/** A process that makes 200 MB of garbage and then does nothing. */
const PROGRAM = `
  import { collectAtRest } from '${MODULE}';
  const idle = { workloads: new Map(), demand: new Map() };
  let kept = Array.from({ length: 2_000_000 }, (_, index) => ({ index, text: String(index) }));
  kept = kept.slice(0, 1000);
  const before = process.memoryUsage().rss;
  const done = new AbortController();
  const debug = (fields, message) => {
    done.abort();
    console.log(JSON.stringify({ message, before, after: process.memoryUsage().rss, kept: kept.length }));
    clearTimeout(patience);
  };
  collectAtRest({ activity: () => idle, log: { debug }, lookMs: 300 }, done.signal);
  const patience = setTimeout(() => console.log('{}'), 20_000);
`;

test('a process at rest gives the memory back that a burst of work took', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', PROGRAM], { timeout: 30_000 });
  const seen: { readonly message?: string; readonly before: number; readonly after: number; readonly kept: number } = JSON.parse(stdout);
  expect(seen).toMatchObject({ message: 'Collected garbage at rest', kept: 1000 });
  expect(seen.after).toBeLessThan(seen.before / 2);
}, 40_000);
