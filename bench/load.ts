/** Drives a server with `wrk` and reads what it used meanwhile. Linux only, since it reads `/proc`. */
import { execFile, type ChildProcess } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseWrk, type WrkReport } from './decide/parse-wrk.ts';
import type { Run } from './decide/summarise.ts';
import { median } from './measure.ts';
import { cpuSeconds } from './service-process.ts';

export interface Server {
  /** Process whose CPU time is measured; undefined if that of nobody is. */
  readonly pid: number | undefined;
  /** Processes whose CPU time counts as well. Default: none. */
  readonly morePids?: readonly number[];
  readonly port: number;
  /** Servers beside this one, which get the same load at the same time; `connections` are those of all. Default: none. */
  readonly morePorts?: readonly number[];
}

export interface Started extends Server {
  readonly process: ChildProcess;
}

interface Load {
  /** A file that `writeScript` wrote. */
  readonly script: string;
  readonly connections: number;
  /** Default: 2. */
  readonly seconds?: number;
}

/** Throws if a request fails, since a failed answer is cheaper than a good one. */
export async function drive(server: Server, load: Load): Promise<Run> {
  const run = await driveAndCount(server, load);
  if (run.failures > 0) throw new Error(`${run.failures} requests to port ${server.port} failed`);
  return run;
}

/** Counts requests that fail. */
export async function driveAndCount(
  { pid, morePids = [], port, morePorts = [] }: Server,
  { script, connections, seconds = 2 }: Load,
): Promise<Run> {
  const pids = pid === undefined ? [] : [pid, ...morePids];
  const before = await cpuOf(pids);
  const ports = [port, ...morePorts];
  const each = Math.ceil(connections / ports.length);
  const reports = await Promise.all(ports.map((at) => runWrk(at, ['-t1', `-c${each}`, `-d${seconds}`, '-s', script])));
  const cpu = (await cpuOf(pids)) - before;
  const requests = sum(reports.map((report) => report.requests));
  return {
    requests,
    failures: sum(reports.map((report) => report.failures)),
    requestsPerSecond: sum(reports.map((report) => report.requests / report.seconds)),
    medianUs: median(reports.map((report) => report.medianUs)),
    cpu: cpu / requests,
    busy: cpu / Math.max(...reports.map((report) => report.seconds)),
  };
}

async function runWrk(port: number, args: readonly string[]): Promise<WrkReport> {
  const url = `http://127.0.0.1:${port}/v1/chat/completions`;
  const { stdout } = await promisify(execFile)('wrk', [...args, '--latency', '--timeout', '30', url]);
  return parseWrk(stdout);
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);

/** Not a number if nobody's time is measured, or if a process has ended: then its requests failed. */
async function cpuOf(pids: readonly number[]): Promise<number> {
  if (pids.length === 0) return Number.NaN;
  return sum(await Promise.all(pids.map((pid) => cpuSeconds(pid).catch(() => Number.NaN))));
}

interface Body {
  readonly bytes: number;
  readonly model: string;
  readonly stream?: boolean;
  /** Sent as a bearer token. Default: none. */
  readonly token?: string;
}

/** Writes the script of a load whose requests are all the same chat. Returns its path. */
export async function writeScript(directory: string, { bytes, model, stream, token }: Body): Promise<string> {
  const bodyOf = (content: string): string =>
    JSON.stringify({ model, ...(stream === true && { stream }), messages: [{ role: 'user', content }] });
  const body = bodyOf('z'.repeat(bytes - bodyOf('').length));
  const file = join(
    directory,
    `${model}-${bytes}${stream === true ? '-stream' : ''}${token === undefined ? '' : `-${token.slice(0, 12)}`}.lua`,
  );
  const credential = token === undefined ? '' : `wrk.headers["authorization"] = "Bearer ${token}"\n`;
  await writeFile(file, `wrk.method = "POST"\nwrk.headers["content-type"] = "application/json"\n${credential}wrk.body = '${body}'\n`, {
    mode: 0o600,
  });
  return file;
}
