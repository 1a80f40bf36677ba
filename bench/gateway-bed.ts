/** What the benchmark of the gateway compares, started once: all proxies in front of the same upstreams, and warmed. */
import { createTokenFile } from './auth-tokens.ts';
import type { Run } from './decide/summarise.ts';
import { driveAndCount, writeScript, type Server } from './load.ts';
import { warmByMixedShapes } from './mixed-shapes.ts';
import { hasProgram, startLlamaSwap, startNginxProxy, startNode, startRealService, type Bed, type RealService } from './proxies.ts';
import { workersOf } from '../test/turbo/workers/support/worker-processes.ts';

/** Of requests of all kinds, to warm each gateway. */
const MIXED_SECONDS = 5;
/** Of the load itself, afterwards. Two processes share it, and each has its own code to compile. */
const LOAD_SECONDS = 4;

export interface Load {
  /** How it is called in titles, without the upstream. */
  readonly name: string;
  readonly bytes: number;
  readonly connections: number;
  readonly stream?: boolean;
  /** So many times the rounds of others, where what is measured is close to its goal. Default: 1. */
  readonly moreRounds?: number;
}

export const SHORT: Load = { name: '600 B, 32 connections', bytes: 600, connections: 32, moreRounds: 2 };
/** The same from services with other settings, which are not compared that closely. */
export const SHORT_OTHERWISE: Load = { name: '600 B, 32 connections, with other settings', bytes: 600, connections: 32 };

export interface Measured extends Server {
  readonly token?: string;
}

export interface GatewayBed {
  /** For files. */
  readonly directory: string;
  readonly upstream: 'nginx' | 'Node';
  /** What the titles of tables say about the cores. */
  readonly sharing: string;
  /** The upstream itself. */
  readonly bare: Server;
  readonly proxies: ReadonlyMap<string, Measured>;
  /** In front of the upstream of streams. */
  readonly streams: ReadonlyMap<string, Measured>;
}

export async function runOnce(
  directory: string,
  { token, ...server }: Measured,
  { bytes, connections, stream = false }: Load,
  seconds: number,
): Promise<Run> {
  const model = stream ? 'streams' : 'primary';
  const script = await writeScript(directory, { bytes, model, stream, ...(token === undefined ? {} : { token }) });
  return driveAndCount(server, { script, connections, seconds });
}

/** Adds the services to `services`, which the caller stops. */
export async function startGateways(bed: Bed, services: RealService[]): Promise<GatewayBed> {
  const real = await startRealService(bed);
  services.push(real);
  const { tokens, text } = await createTokenFile({ known: 1, total: 1 });
  const [token = ''] = tokens;
  const settings = { SVC_AUTH_ENABLED: '1', SVC_PORT_RANGE: '18980-19079' };
  const guarded = await startRealService(bed, { settings, tokens: text, token });
  services.push(guarded);
  const slow = await startRealService(bed, { settings: { SVC_FAST_PATH: '0', SVC_PORT_RANGE: '19080-19179' } });
  services.push(slow);
  const double = await startRealService(bed, { settings: { SVC_WORKERS: '2', SVC_PORT_RANGE: '19180-19279' } });
  services.push(double);
  const other = await startRealService(bed, { settings: { SVC_PORT_RANGE: '19280-19379' } });
  services.push(other);
  const { primary, streams } = real.upstreams;
  const stripped = await startNode(bed, 'gateway-process.ts', [String(primary), '1', String(streams)]);
  const hasNginx = hasProgram('nginx');
  const swap = await startLlamaSwap(bed, primary);
  const realServer = { pid: real.service.pid, port: real.port };
  const guardedServer = { pid: guarded.service.pid, port: guarded.port, token };
  const slowServer = { pid: slow.service.pid, port: slow.port };
  const doubleServer = { pid: double.service.pid, morePids: await workersOf(double.service.pid), port: double.port };
  const otherServer = { pid: other.service.pid, port: other.port };
  const gateways: readonly Measured[] = [stripped, realServer, slowServer, guardedServer, doubleServer, otherServer];
  for (const gateway of gateways) await warmByMixedShapes(gateway.port, MIXED_SECONDS, gateway.token);
  const proxies = new Map<string, Measured>([
    ...(hasNginx ? [['nginx', await startNginxProxy(bed, primary)] as const] : []),
    ['bare forwarder', await startNode(bed, 'bare-forwarder.ts', [String(primary)])],
    ['stripped process', stripped],
    ['real service', realServer],
    ['without the fast path', slowServer],
    ['with authentication', guardedServer],
    ['two services', { ...realServer, morePids: [otherServer.pid], morePorts: [otherServer.port] }],
    ['two processes', doubleServer],
    ...(swap === undefined ? [] : [['llama-swap', swap] as const]),
  ]);
  for (const proxy of proxies.values()) await runOnce(bed.directory, proxy, SHORT, LOAD_SECONDS);
  return {
    directory: bed.directory,
    upstream: hasNginx ? 'nginx' : 'Node',
    sharing: bed.cores === undefined ? ', all on the same cores' : '',
    bare: { pid: undefined, port: primary },
    proxies,
    streams: new Map<string, Measured>([
      ['upstream alone', { pid: undefined, port: streams }],
      ...(hasNginx ? [['nginx', await startNginxProxy(bed, streams)] as const] : []),
      ['real service', realServer],
    ]),
  };
}
