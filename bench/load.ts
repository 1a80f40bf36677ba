/** Drives a server with `wrk` and reads what it used meanwhile. Linux only, since it reads `/proc`. */
import { execFile, type ChildProcess } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cpuSeconds } from './service-process.ts';

export interface Server {
  /** Process whose CPU time is measured; undefined if that of nobody is. */
  readonly pid: number | undefined;
  readonly port: number;
}

export interface Started extends Server {
  readonly process: ChildProcess;
}

export interface Run {
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly medianUs: number;
  /** CPU seconds per request of the server under test; not a number if they were not measured. */
  readonly cpu: number;
  /** CPU time of the server under test as a share of one core. */
  readonly busy: number;
}

interface Load {
  /** A file that `writeScript` wrote. */
  readonly script: string;
  readonly connections: number;
  /** Default: 2. */
  readonly seconds?: number;
}

/** Throws if a request fails, since a failed answer is cheaper than a good one. */
export async function drive({ pid, port }: Server, { script, connections, seconds = 2 }: Load): Promise<Run> {
  const before = await cpuOf(pid);
  const startedAt = performance.now();
  const url = `http://127.0.0.1:${port}/v1/chat/completions`;
  const args = ['-t1', `-c${connections}`, `-d${seconds}`, '--latency', '--timeout', '30', '-s', script, url];
  const { stdout: text } = await promisify(execFile)('wrk', args);
  const cpu = (await cpuOf(pid)) - before;
  const lastedS = (performance.now() - startedAt) / 1000;
  if (/Non-2xx|Socket errors/.test(text)) throw new Error(`Requests to port ${port} failed:\n${text}`);
  const [, requests] = /(\d+) requests in/.exec(text) ?? [];
  const [, perSecond] = /Requests\/sec:\s+([\d.]+)/.exec(text) ?? [];
  const [, amount, unit] = /50%\s+([\d.]+)(us|ms|s)/.exec(text) ?? [];
  return {
    requests: Number(requests),
    requestsPerSecond: Number(perSecond),
    medianUs: Number(amount) * (unit === 'us' ? 1 : unit === 'ms' ? 1000 : 1_000_000),
    cpu: cpu / Number(requests),
    busy: cpu / lastedS,
  };
}

const cpuOf = async (pid: number | undefined): Promise<number> => (pid === undefined ? Number.NaN : cpuSeconds(pid));

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
  const file = join(directory, `${model}-${bytes}${token === undefined ? '' : `-${token.slice(0, 12)}`}.lua`);
  const credential = token === undefined ? '' : `wrk.headers["authorization"] = "Bearer ${token}"\n`;
  await writeFile(file, `wrk.method = "POST"\nwrk.headers["content-type"] = "application/json"\n${credential}wrk.body = '${body}'\n`, {
    mode: 0o600,
  });
  return file;
}
