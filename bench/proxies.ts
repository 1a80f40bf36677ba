/** Starts what `bench/gateway.ts` compares: upstreams, nginx, a bare forwarder, the gateway alone, the real service, and llama-swap where it is installed. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../test/support/free-port.ts';
import type { Cores } from './decide/share-cores.ts';
import type { Started } from './load.ts';
import { accepts, startBenchService, type BenchService } from './service-process.ts';
import { waitUntil } from './wait-until.ts';

/** A directory for files, and the processes to end afterwards. */
export interface Bed {
  readonly directory: string;
  readonly started: ChildProcess[];
  /** Which cores proxies and everything else get. Default: all get all. */
  readonly cores?: Cores | undefined;
}

export const hasProgram = (program: string): boolean => spawnSync(program, ['-v']).error === undefined;

/** The command that runs another one, given as its last arguments, on these cores. */
export const pinTo = (cores: string | undefined): readonly string[] => (cores === undefined ? [] : ['taskset', '-c', cores]);

/** What an OpenAI-compatible server answers to a short chat: some 300 bytes. */
const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'y'.repeat(80) }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 140, completion_tokens: 20, total_tokens: 160 },
});

/** nginx, which answers from memory: a server in Node would need more CPU for a request than the proxies in front of it. */
export async function startNativeUpstream(bed: Bed): Promise<Started> {
  const port = await freePort();
  return startNginx(bed, { port, servers: nativeUpstream(port), cores: bed.cores?.load });
}

export async function startNginxProxy(bed: Bed, upstreamPort: number): Promise<Started> {
  const port = await freePort();
  // Without buffers on disk, without waiting for the whole body, and with reads of 64 KiB, as the gateway works too.
  const servers = `upstream bare { server 127.0.0.1:${upstreamPort}; keepalive 256; keepalive_requests 1000000000; }
  server { listen 127.0.0.1:${port}; location / { proxy_pass http://bare; proxy_http_version 1.1; proxy_set_header Connection "";
    proxy_buffering off; proxy_request_buffering off; client_body_buffer_size 64k; } }`;
  return startNginx(bed, { port, servers, cores: bed.cores?.proxy });
}

/** Runs a program of this folder, on the core of proxies. */
export function startNode({ started, cores }: Pick<Bed, 'started' | 'cores'>, program: string, args: readonly string[]): Promise<Started> {
  const [command = '', ...rest] = [...pinTo(cores?.proxy), process.execPath, join(import.meta.dirname, program), ...args];
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  started.push(child);
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`"${program}" exited with code ${code}`)));
    child.once('error', reject);
    child.stdout?.once('data', (text: Buffer) => resolve({ process: child, pid: child.pid ?? 0, port: Number(text.toString()) }));
  });
}

const slotOf = (model: string): string => `provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "${model}"\n`;

export interface RealService {
  readonly service: BenchService;
  readonly port: number;
  /** Ports of the servers in the slots `primary` (the native upstream, or the one on Node where nginx is missing) and `streams` (the one on Node). */
  readonly upstreams: Readonly<Record<'primary' | 'streams', number>>;
}

export interface RealServiceOptions {
  /** How many further slots are declared and never requested. Default: none. */
  readonly idle?: number;
  /** Settings of the service. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The text of `tokens.toml`. Default: none. */
  readonly tokens?: string;
  /** With which the service is asked about itself. Default: without. */
  readonly token?: string;
  /** The compiled server of streams (`bench/native`), for the slot `streams`. Default: a server on Node. */
  readonly streams?: string;
}

/** Runs `svcctl serve` with its loop on. In its slots run the upstreams of this measurement, as programs called `llama-server`: they answer the probes of slots. */
export async function startRealService({ directory, cores }: Bed, options: RealServiceOptions = {}): Promise<RealService> {
  const { idle = 0, settings = {}, tokens, token, streams } = options;
  const programs = join(directory, 'programs');
  await mkdir(programs, { recursive: true });
  const program = join(programs, 'llama-server');
  await writeFile(program, await serverProgram(directory, cores?.load, streams));
  await chmod(program, 0o755);
  const atRest = Array.from({ length: idle }, (_, index) => [`slots/at-rest-${index}.toml`, `load = "on-demand"\n${slotOf('demo-fox')}`]);
  const files = {
    'slots/primary.toml': slotOf('demo-fox'),
    'slots/streams.toml': slotOf('demo-owl'),
    ...Object.fromEntries(atRest),
    ...(tokens === undefined ? {} : { 'tokens.toml': tokens }),
  };
  const env = {
    SVC_RUNTIME: 'process',
    PATH: `${programs}:${process.env['PATH'] ?? ''}`,
    SVC_PORT_RANGE: idle === 0 ? '18080-18979' : '19080-21979',
    ...settings,
  };
  const service = await startBenchService(env, files, pinTo(cores?.proxy));
  // While workers take the port over, a connection may be refused.
  const statuses = async () => await service.status().catch(() => []);
  await waitUntil(async () => (await statuses()).filter((slot) => slot.ready).length === 2, {
    withinMs: 60_000,
    everyMs: 50,
    failure: async () => `The slots did not become ready: ${await (await fetch(`${service.url}/api/status`)).text()}`,
  });
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const upstreamOf = async (slot: string): Promise<number> => {
    const body: { status: { endpoint: string } } = JSON.parse(await (await fetch(`${service.url}/api/slots/${slot}`, { headers })).text());
    return Number(new URL(body.status.endpoint).port);
  };
  const upstreams = { primary: await upstreamOf('primary'), streams: await upstreamOf('streams') };
  return { service, port: Number(new URL(service.url).port), upstreams };
}

/** Returns undefined where haproxy is not installed. */
export async function startHaproxy({ directory, started, cores }: Bed, upstreamPort: number): Promise<Started | undefined> {
  if (!hasProgram('haproxy')) return undefined;
  const port = await freePort();
  const file = join(directory, `haproxy-${port}.cfg`);
  const limits = 'timeout connect 5s\n  timeout client 60s\n  timeout server 60s';
  await writeFile(
    file,
    `global\n  nbthread 1\n  maxconn 5000\ndefaults\n  mode http\n  http-reuse always\n  ${limits}\nfrontend all\n  bind 127.0.0.1:${port}\n  default_backend one\nbackend one\n  server one 127.0.0.1:${upstreamPort}\n`,
  );
  const [command, ...args] = [...pinTo(cores?.proxy), 'haproxy', '-f', file];
  return opened(spawn(command, args, { stdio: 'ignore' }), port, started, 'haproxy');
}

/** Returns undefined where llama-swap is not installed. */
export async function startLlamaSwap({ directory, started, cores }: Bed, upstreamPort: number): Promise<Started | undefined> {
  if (spawnSync('llama-swap', ['--version']).error !== undefined) return undefined;
  const port = await freePort();
  const file = join(directory, 'llama-swap.yaml');
  // By default, it answers 429 to more than ten concurrent requests for a model.
  const model = `cmd: sleep 1000000\n    proxy: http://127.0.0.1:${upstreamPort}\n    checkEndpoint: none\n    concurrencyLimit: 1000`;
  await writeFile(file, `logLevel: error\nmodels:\n  primary:\n    ${model}\n`);
  const [command, ...args] = [...pinTo(cores?.proxy), 'llama-swap', '--config', file, '--listen', `127.0.0.1:${port}`];
  const child = spawn(command, args, { stdio: 'ignore' });
  return opened(child, port, started, 'llama-swap');
}

/**
 * A shell script with the arguments of llama-server, which runs the server of the model that it is told to serve. It must keep its last arguments: a workload without them was altered from outside,
 * and the service under test would replace it again and again while it is measured.
 */
async function serverProgram(directory: string, cores: string | undefined, streams: string | undefined): Promise<string> {
  const template = join(directory, 'slot.conf');
  await writeFile(template, nginxConfig(directory, nativeUpstream('PORT'), 'slot'));
  const nginx = spawnSync('sh', ['-c', 'command -v nginx']).stdout.toString().trim();
  // The service that starts this program has the core of proxies.
  const run = pinTo(cores).join(' ');
  const ofStreams = streams === undefined ? `"${process.execPath}" "${join(import.meta.dirname, 'upstream.ts')}"` : `"${streams}" serve`;
  return `#!/bin/sh
set -- "$@" --end-of-arguments
while [ "$1" != --end-of-arguments ]; do
  case $1 in
  --port) port=$2 ;;
  --model) model=$2 ;;
  esac
  set -- "$@" "$1"
  shift
done
shift
case $model in
${nginx === '' ? '*' : '*owl*'}) exec ${run} ${ofStreams} "$port" "$@" ;;
esac
sed "s/PORT/$port/g" "${template}" > "${directory}/slot-$port.conf"
${run} "${nginx}" -c "${directory}/slot-$port.conf" -e "${directory}/error.log" &
trap 'kill $!; exit 0' TERM INT
wait $!
`;
}

/** Would answer a large body before it has read it, and then close the connection: mirroring reads it first, and the GIF refuses to be posted to. */
function nativeUpstream(port: number | string): string {
  const json = 'default_type application/json;';
  return `server { listen 127.0.0.1:${port};
    location = /health { ${json} return 200 '{"status":"ok"}'; }
    location = /v1/completions { ${json} return 200 '{"choices":[{"text":"a"}]}'; }
    location / { if ($content_length ~ "[0-9]{5}") { rewrite ^ /whole last; } ${json} return 200 '${ANSWER}'; }
    location = /whole { internal; mirror /drop; client_body_buffer_size 16m; error_page 405 =200 @answer; empty_gif; }
    location = /drop { internal; return 204; }
    location @answer { ${json} return 200 '${ANSWER}'; } }`;
}

function nginxConfig(directory: string, servers: string, name: string | number): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${directory}/${kind};`);
  return `daemon off; master_process off; pid ${directory}/nginx-${name}.pid; error_log ${directory}/error.log;
events { worker_connections 4096; }
http { access_log off; ${temporary.join(' ')} client_max_body_size 0; keepalive_requests 1000000000;
  ${servers} }`;
}

interface NginxServers {
  readonly port: number;
  readonly servers: string;
  readonly cores: string | undefined;
}

async function startNginx({ directory, started }: Bed, { port, servers, cores }: NginxServers): Promise<Started> {
  const file = join(directory, `nginx-${port}.conf`);
  await writeFile(file, nginxConfig(directory, servers, port));
  const [command, ...args] = [...pinTo(cores), 'nginx', '-c', file, '-e', join(directory, 'error.log')];
  return opened(spawn(command, args, { stdio: 'ignore' }), port, started, 'nginx');
}

async function opened(child: ChildProcess, port: number, started: ChildProcess[], name: string): Promise<Started> {
  started.push(child);
  await waitUntil(() => child.exitCode !== null || accepts(port), {
    withinMs: 10_000,
    everyMs: 20,
    failure: () => `${name} did not start`,
  });
  if (child.exitCode !== null) throw new Error(`${name} exited with code ${child.exitCode}`);
  return { process: child, pid: child.pid ?? 0, port };
}
