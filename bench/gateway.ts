/**
 * What the gateway costs, as ratios to nginx (one process, keep-alive to the upstream) and to the bare upstream, with the same upstream and in the same run.
 * Needs `wrk` and `nginx` on the PATH and Linux's `/proc`, and reports what is missing. Rounds alternate, because the speed of machines drifts.
 */
import { execFile, fork, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../test/support/free-port.ts';
import { atLeast, atMost, median, type Row } from './measure.ts';
import { accepts, cpuSeconds } from './service-process.ts';
import { waitUntil } from './wait-until.ts';

const ROUNDS = 5;
const SECONDS = 2;
export interface Server {
  readonly process: ChildProcess;
  readonly port: number;
}

export interface Run {
  readonly requestsPerSecond: number;
  readonly medianUs: number;
  /** CPU seconds per request of the server under test. */
  readonly cpu: number;
}

export async function measureGateway(): Promise<readonly Row[]> {
  const missing = ['wrk', 'nginx'].filter((program) => spawnSync(program, ['-v']).error !== undefined);
  if (missing.length > 0) {
    const why = `needs ${missing.join(' and ')}`;
    return rowsOf({ throughput: why, cpu: why, streams: why, latency: why });
  }
  const directory = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const started: ChildProcess[] = [];
  try {
    const upstream = await startNode('upstream.ts', [], started);
    const gateway = await startNode('gateway-process.ts', [String(upstream.port)], started);
    const nginx = await startNginx(directory, upstream.port, started);
    return await measureAll(directory, { upstream, gateway, nginx });
  } finally {
    for (const child of started) child.kill('SIGKILL');
    await rm(directory, { recursive: true, force: true });
  }
}

async function measureAll(directory: string, servers: Record<'upstream' | 'gateway' | 'nginx', Server>): Promise<readonly Row[]> {
  const { upstream, gateway, nginx } = servers;
  const plain = await writeScript(directory, 'plain.lua', false);
  const stream = await writeScript(directory, 'stream.lua', true);
  const warmUp = [gateway, nginx, gateway].map((server) => () => drive(server, plain, 32));
  for (const run of warmUp) await run();
  const ratios = { throughput: new Array<number>(), cpu: new Array<number>(), streams: new Array<number>() };
  const addedUs = { gateway: new Array<number>(), nginx: new Array<number>() };
  for (let round = 0; round < ROUNDS; round += 1) {
    const byNginx = await drive(nginx, plain, 32);
    const byGateway = await drive(gateway, plain, 32);
    ratios.throughput.push(byGateway.requestsPerSecond / byNginx.requestsPerSecond);
    ratios.cpu.push(byGateway.cpu / byNginx.cpu);
    const bare = await drive(upstream, stream, 16);
    const streamed = await drive(gateway, stream, 16);
    ratios.streams.push(streamed.requestsPerSecond / bare.requestsPerSecond);
    const base = (await drive(upstream, plain, 1)).medianUs;
    addedUs.nginx.push((await drive(nginx, plain, 1)).medianUs - base);
    addedUs.gateway.push((await drive(gateway, plain, 1)).medianUs - base);
  }
  const added = { gateway: median(addedUs.gateway), nginx: median(addedUs.nginx) };
  const { throughput, cpu, streams } = ratios;
  return [
    ...rowsOf({
      throughput: median(throughput),
      cpu: median(cpu),
      streams: median(streams),
      latency: added.gateway / added.nginx,
    }),
    { what: '  in microseconds: gateway, nginx', figure: `${added.gateway}, ${added.nginx}`, goal: '-', met: undefined },
  ];
}

function rowsOf(values: Readonly<Record<'throughput' | 'cpu' | 'streams' | 'latency', number | string>>): readonly Row[] {
  return [
    atLeast('non-streaming, 32 connections: requests/s against nginx', values.throughput, { limit: 0.65, unit: '×' }),
    atMost('non-streaming, 32 connections: CPU per request against nginx', values.cpu, { limit: 2.5, unit: '×' }),
    atLeast('16 streams of 200 chunks: chunks/s against the bare upstream', values.streams, { limit: 0.93, unit: '×' }),
    atMost('one connection: added latency, median, against nginx', values.latency, { limit: 4.5, unit: '×' }),
  ];
}

export async function drive(server: Server, script: string, connections: number): Promise<Run> {
  const pid = server.process.pid ?? 0;
  const before = await cpuSeconds(pid);
  const url = `http://127.0.0.1:${server.port}/v1/chat/completions`;
  const { stdout: text } = await promisify(execFile)('wrk', ['-t1', `-c${connections}`, `-d${SECONDS}`, '--latency', '-s', script, url]);
  const cpu = (await cpuSeconds(pid)) - before;
  if (/Non-2xx|Socket errors/.test(text)) throw new Error(`Requests failed:\n${text}`);
  const [, requests] = /(\d+) requests in/.exec(text) ?? [];
  const [, perSecond] = /Requests\/sec:\s+([\d.]+)/.exec(text) ?? [];
  const [, amount, unit] = /50%\s+([\d.]+)(us|ms|s)/.exec(text) ?? [];
  return {
    requestsPerSecond: Number(perSecond),
    medianUs: Number(amount) * (unit === 'us' ? 1 : unit === 'ms' ? 1000 : 1_000_000),
    cpu: cpu / Number(requests),
  };
}

export function startNode(program: string, args: readonly string[], started: ChildProcess[]): Promise<Server> {
  const child = fork(join(import.meta.dirname, program), args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  started.push(child);
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`"${program}" exited with code ${code}`)));
    child.stdout?.once('data', (text: Buffer) => resolve({ process: child, port: Number(text.toString()) }));
  });
}

async function startNginx(directory: string, upstreamPort: number, started: ChildProcess[]): Promise<Server> {
  const port = await freePort();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${directory}/${name};`);
  const config = `daemon off; master_process off; pid ${directory}/nginx.pid; error_log ${directory}/error.log;
events { worker_connections 1024; }
http { access_log off; ${temporary.join(' ')}
  upstream bare { server 127.0.0.1:${upstreamPort}; keepalive 128; }
  server { listen 127.0.0.1:${port}; keepalive_requests 1000000000;
    location / { proxy_pass http://bare; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } } }`;
  const file = join(directory, 'nginx.conf');
  await writeFile(file, config);
  const child = spawn('nginx', ['-c', file, '-e', join(directory, 'error.log')], { stdio: 'ignore' });
  started.push(child);
  await waitUntil(() => child.exitCode !== null || accepts(port), { withinMs: 10_000, everyMs: 20, failure: () => 'nginx did not start' });
  if (child.exitCode !== null) throw new Error(`nginx exited with code ${child.exitCode}`);
  return { process: child, port };
}

async function writeScript(directory: string, name: string, stream: boolean): Promise<string> {
  const body = JSON.stringify({ model: 'primary', ...(stream && { stream }), messages: [{ role: 'user', content: 'z'.repeat(530) }] });
  const file = join(directory, name);
  await writeFile(file, `wrk.method = "POST"\nwrk.headers["content-type"] = "application/json"\nwrk.body = '${body}'\n`);
  return file;
}
