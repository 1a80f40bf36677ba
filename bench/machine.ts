/** The facts of this machine that a saved result names, and which of its cores a measurement may use. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';
import { shareCores, type Cores } from './decide/share-cores.ts';
import type { Machine } from './decide/result.ts';

/** How each program prints its version. */
const PROGRAMS = { nginx: '-v', wrk: '-v', 'llama-swap': '--version', 'llama-server': '--version' } as const;

export function readMachine(): Machine {
  const versions = Object.entries(PROGRAMS).flatMap(([program, flag]) => {
    const { error, stdout, stderr } = spawnSync(program, [flag]);
    if (error !== undefined) return [];
    return [[program, /\d+\.\d+(?:\.\d+)?|\bv?\d+\b/.exec(`${stdout.toString()}${stderr.toString()}`)?.[0] ?? 'unknown'] as const];
  });
  const [cpu] = os.cpus();
  return {
    cpu: cpu?.model.trim() ?? 'unknown',
    cores: os.availableParallelism(),
    arch: process.arch,
    memoryGb: Math.round(os.totalmem() / 1e9),
    kernel: os.release(),
    node: process.versions.node,
    programs: Object.fromEntries(versions),
    loadAverage: os.loadavg()[0] ?? Number.NaN,
  };
}

/**
 * Keeps this process, and those that it starts, away from one core, which is for the proxy under test. Returns undefined where that is not possible: there is only
 * one core, or no `taskset`.
 */
export function reserveCore(): { readonly cores: Cores; readonly release: () => void } | undefined {
  const status = process.platform === 'linux' ? readFileSync('/proc/self/status', 'utf8') : '';
  const [, allowed = ''] = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status) ?? [];
  const cores = shareCores(allowed);
  if (cores === undefined || !runOn(cores.load)) return undefined;
  return { cores, release: () => void runOn(allowed) };
}

/** All threads of this process. */
function runOn(cores: string): boolean {
  return spawnSync('taskset', ['-a', '-p', '-c', cores, String(process.pid)]).status === 0;
}
