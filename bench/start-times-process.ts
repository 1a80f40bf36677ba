/** Loaded into the service (`--import`): reports to the file `START_TIMES` how long each start of a process, and each other stall, holds up its event loop. */
import { ChildProcess } from 'node:child_process';
import { appendFileSync, openSync, readSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/** Milliseconds. `waited`: for a core. What is left of `wall` was spent waiting for something else. */
export interface Stall {
  readonly kind: 'start' | 'stall';
  readonly wall: number;
  readonly cpu: number;
  readonly waited: number;
}

const REPORTED_FROM_MS = 10;
const file = process.env['START_TIMES'];
if (isMainThread && file !== undefined) report(file);

function report(to: string): void {
  const text = Buffer.alloc(100);
  const source = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
  const read = (): { readonly at: number; readonly cpu: number; readonly waited: number } => {
    const [cpu = 0, waited = 0] = text
      .toString('latin1', 0, readSync(source, text, 0, text.length, 0))
      .split(' ')
      .map(Number);
    return { at: performance.now(), cpu: cpu / 1e6, waited: waited / 1e6 };
  };
  const lines: string[] = [];
  const add = (kind: Stall['kind'], from: ReturnType<typeof read>, end: ReturnType<typeof read>): void => {
    const stall: Stall = { kind, wall: end.at - from.at, cpu: end.cpu - from.cpu, waited: end.waited - from.waited };
    lines.push(`${JSON.stringify(stall)}\n`);
  };
  let last = read();
  const look = (): void => {
    const now = read();
    if (now.at - last.at >= REPORTED_FROM_MS) add('stall', last, now);
    last = now;
  };
  // All of `node:child_process` starts its processes with this method.
  const prototype: { spawn(options: unknown): unknown } = Object.getOwnPropertyDescriptor(ChildProcess, 'prototype')?.value;
  const { spawn } = prototype;
  prototype.spawn = function timed(options) {
    look();
    const from = last;
    const result = spawn.call(this, options);
    last = read();
    add('start', from, last);
    return result;
  };
  setInterval(look, 1).unref();
  setInterval(() => appendFileSync(to, lines.splice(0).join('')), 500).unref();
}
