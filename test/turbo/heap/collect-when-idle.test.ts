import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

const MODULE = new URL('../../../src/turbo/heap/collect-when-idle.ts', import.meta.url).href;

/** Makes 200 MB of garbage and is idle afterwards. */
const PROGRAM = `
  import { collectWhenIdle } from '${MODULE}';
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
  collectWhenIdle({ activity: () => idle, log: { debug }, checkMs: 300 }, done.signal);
  const patience = setTimeout(() => console.log('{}'), 20_000);
`;

test('an idle process returns the memory of a burst of work to the system', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', PROGRAM], { timeout: 30_000 });
  const seen: { readonly message?: string; readonly before: number; readonly after: number; readonly kept: number } = JSON.parse(stdout);
  expect(seen).toMatchObject({ message: 'Collected garbage while idle', kept: 1000 });
  expect(seen.after).toBeLessThan(seen.before / 2);
}, 40_000);

/** Is idle, leaves garbage outside of V8's heap after the first collection, and is idle again. */
const OUTSIDE = `
  import { collectWhenIdle } from '${MODULE}';
  const idle = { workloads: new Map(), demand: new Map() };
  const done = new AbortController();
  let collections = 0;
  let before;
  const debug = () => {
    collections += 1;
    if (collections === 1) {
      let buffers = Array.from({ length: 40 }, () => new Uint8Array(new ArrayBuffer(1048576, { maxByteLength: 1048576 })).fill(1));
      before = process.memoryUsage().external;
      buffers = undefined;
      return;
    }
    done.abort();
    console.log(JSON.stringify({ collections, before, after: process.memoryUsage().external }));
    clearTimeout(patience);
  };
  collectWhenIdle({ activity: () => idle, log: { debug }, checkMs: 300 }, done.signal);
  const patience = setTimeout(() => { console.log('{}'); process.exit(0); }, 15_000);
`;

test('an idle process collects buffers outside of the heap, however small the heap is', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', OUTSIDE], { timeout: 30_000 });
  const seen: { readonly collections?: number; readonly before: number; readonly after: number } = JSON.parse(stdout);
  expect(seen).toMatchObject({ collections: 2 });
  expect(seen.after).toBeLessThan(seen.before / 2);
}, 40_000);
