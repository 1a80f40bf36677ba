/**
 * What the gateway costs, as ratios to nginx (one process, keep-alive to the upstream) and to the bare upstream, all in front of the same upstream and in
 * the same run. Needs `wrk` and `nginx` on the PATH and Linux's `/proc`; says so where they are missing. Rounds alternate, because machines drift.
 */
import { fork, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atLeast, atMost, median, unmeasured, type Row } from './measure.ts';

const ROUNDS = 5;
const SECONDS = 2;
const CLOCK_TICKS_PER_SECOND = 100;
const GOALS = [
  ['non-streaming, 32 connections: requests/s against nginx', '≥ 0.65 ×'],
  ['non-streaming, 32 connections: CPU a request against nginx', '≤ 2.5 ×'],
  ['16 streams of 200 chunks: chunks/s against the bare upstream', '≥ 0.93 ×'],
  ['one connection: latency added, median, against nginx', '≤ 4.5 ×'],
] as const;

export interface Server {
  readonly process: ChildProcess;
  readonly port: number;
}

export interface Run {
  readonly requestsPerSecond: number;
  readonly medianUs: number;
  /** CPU seconds a request of the process in front. */
  readonly cpu: number;
}

export async function measureGateway(): Promise<readonly Row[]> {
  const missing = ['wrk', 'nginx'].filter((program) => spawnSync(program, ['-v']).error !== undefined);
  if (missing.length > 0) return GOALS.map(([what, reach]) => unmeasured(what, reach, `needs ${missing.join(' and ')}`));
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
  const rows = { throughput: new Array<number>(), cpu: new Array<number>(), streams: new Array<number>(), latency: new Array<number>() };
  const addedUs = { gateway: new Array<number>(), nginx: new Array<number>() };
  for (let round = 0; round < ROUNDS; round += 1) {
    const front = await drive(nginx, plain, 32);
    const ours = await drive(gateway, plain, 32);
    rows.throughput.push(ours.requestsPerSecond / front.requestsPerSecond);
    rows.cpu.push(ours.cpu / front.cpu);
    const bare = await drive(upstream, stream, 16);
    const streamed = await drive(gateway, stream, 16);
    rows.streams.push(streamed.requestsPerSecond / bare.requestsPerSecond);
    const base = (await drive(upstream, plain, 1)).medianUs;
    addedUs.nginx.push((await drive(nginx, plain, 1)).medianUs - base);
    addedUs.gateway.push((await drive(gateway, plain, 1)).medianUs - base);
  }
  const [throughput, cpu, streams, latency] = GOALS.map(([what]) => what);
  return [
    atLeast(throughput ?? '', median(rows.throughput), 0.65, '×'),
    atMost(cpu ?? '', median(rows.cpu), 2.5, '×', 2),
    atLeast(streams ?? '', median(rows.streams), 0.93, '×'),
    atMost(latency ?? '', median(addedUs.gateway) / median(addedUs.nginx), 4.5, '×', 2),
    {
      what: '  in microseconds: gateway, nginx',
      figure: `${median(addedUs.gateway)}, ${median(addedUs.nginx)}`,
      reach: '-',
      met: undefined,
    },
  ];
}

export async function drive(server: Server, script: string, connections: number): Promise<Run> {
  const before = await cpuTicks(server.process.pid);
  const url = `http://127.0.0.1:${server.port}/v1/chat/completions`;
  const text = await output('wrk', ['-t1', `-c${connections}`, `-d${SECONDS}`, '--latency', '-s', script, url]);
  const after = await cpuTicks(server.process.pid);
  if (/Non-2xx|Socket errors/.test(text)) throw new Error(`Requests failed:\n${text}`);
  const [, requests] = /(\d+) requests in/.exec(text) ?? [];
  const [, perSecond] = /Requests\/sec:\s+([\d.]+)/.exec(text) ?? [];
  const [, amount, unit] = /50%\s+([\d.]+)(us|ms|s)/.exec(text) ?? [];
  return {
    requestsPerSecond: Number(perSecond),
    medianUs: Number(amount) * (unit === 'us' ? 1 : unit === 'ms' ? 1000 : 1_000_000),
    cpu: (after - before) / CLOCK_TICKS_PER_SECOND / Number(requests),
  };
}

/** User and system time of a process with all its threads. */
async function cpuTicks(pid: number | undefined): Promise<number> {
  const stat = await readFile(`/proc/${pid ?? 'self'}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

export function startNode(program: string, args: readonly string[], started: ChildProcess[]): Promise<Server> {
  const child = fork(join(import.meta.dirname, program), args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  started.push(child);
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`${program} ended with ${code}`)));
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
  while (!(await answers(port))) {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return { process: child, port };
}

async function writeScript(directory: string, name: string, stream: boolean): Promise<string> {
  const body = JSON.stringify({ model: 'primary', ...(stream && { stream }), messages: [{ role: 'user', content: 'z'.repeat(530) }] });
  const file = join(directory, name);
  await writeFile(file, `wrk.method = "POST"\nwrk.headers["content-type"] = "application/json"\nwrk.body = '${body}'\n`);
  return file;
}

function output(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (part: Buffer) => (text += part.toString()));
    child.on('error', reject);
    child.on('close', () => resolve(text));
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
