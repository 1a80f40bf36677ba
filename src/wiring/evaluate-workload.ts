/**
 * Asks one workload of a slot for the answers to cases, through a gateway like that of clients: same translations, same
 * limits in time, counted as requests in flight. Its board has the workload in the place of those that serve the slot.
 */
import { Socket } from 'node:net';
import { basename, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import { askGateway } from '../api/v1/ask-gateway.ts';
import type { Answer, AskModel, encodeRequest, ModelRequest, Recording } from '../evaluation/run-cases.ts';
import { readRegularBytes } from '../files/regular-file.ts';
import { createGateway } from '../gateway/create-gateway.ts';
import { INFERENCE_PATHS } from '../gateway/route/decide/inference-paths.ts';
import type { GatewayTraffic } from '../gateway/traffic/traffic.ts';
import type { Board, RoutedSlot, RoutedView } from '../reconciler/board.ts';
import type { AskedServer, Evaluation } from '../reconciler/decide/facts/actions.ts';
import { isConfigPath } from '../schema/slot/scaling.ts';
import type { SlotName } from '../schema/words/names.ts';
import type { ServiceOptions } from './world.ts';

interface EvaluationDeps extends Pick<ServiceOptions, 'settings' | 'providers' | 'log'> {
  readonly board: Pick<Board, 'current' | 'subscribe'>;
  readonly traffic: GatewayTraffic;
  readonly now: () => number;
}

/** A recording of an hour, compressed. */
const MOST_RECORDED_BYTES = 32 * 2 ** 20;

export function createEvaluation(deps: EvaluationDeps): Evaluation {
  const { settings, providers, log, board, traffic, now } = deps;
  const asked = new Map<SlotName, RoutedSlot>();
  let gateway: ReturnType<typeof createGateway> | undefined;
  /** What a case misses is judged by the rules of the slot, and not again as a failed request (`rollout.watch`). */
  const acquireUnjudged: GatewayTraffic['holds']['acquire'] = (...asked) => {
    const hold = traffic.holds.acquire(...asked);
    return hold && { ...hold, release: () => hold.release() };
  };
  const open = () =>
    createGateway({
      board: { current: () => withAsked(board.current(), asked), subscribe: board.subscribe },
      providers,
      traffic: { ...traffic, holds: { ...traffic.holds, acquire: acquireUnjudged } },
      settings,
      now,
      report: () => undefined,
      onFault: (fault, requestId) =>
        log.error({ requestId, error: String(fault) }, 'A request of an evaluation failed; report this as a bug'),
    });

  async function readRecording(file: string): Promise<Recording> {
    if (!isConfigPath(file)) throw new Error(`"${file}" is no path below the configuration directory`);
    return { name: basename(file), bytes: await readRegularBytes(join(settings.SVC_CONFIG_DIR, file), { mostBytes: MOST_RECORDED_BYTES }) };
  }

  return async (server, cases, signal) => {
    // What judges patterns and JSON Schemas is large, and few services have cases.
    const { runCases, encodeRequest: encode } = await import('../evaluation/run-cases.ts');
    gateway ??= open();
    const ask = askThrough(gateway, server.slot, encode);
    asked.set(server.slot, routedTo(server, providers));
    try {
      return await runCases(cases, ask, { signal, readRecording, now });
    } finally {
      asked.delete(server.slot);
    }
  };
}

/** Limits and fallbacks are for clients. */
function routedTo({ slot: name, workload, endpoints, spec, model }: AskedServer, providers: ServiceOptions['providers']): RoutedSlot {
  const { limits: _limits, fallback: _fallback, ...own } = spec;
  const provider = providers[spec.provider];
  return {
    name,
    capabilities: provider?.capabilities(name, spec, model) ?? [],
    model,
    voices: provider?.voices?.(model) ?? [],
    admission: { kind: 'open' },
    targets: endpoints.map((endpoint) => ({ workload, endpoint })),
    spec: { ...own, limits: undefined, fallback: undefined },
  };
}

function withAsked(view: RoutedView, asked: ReadonlyMap<SlotName, RoutedSlot>): RoutedView {
  const names = new Map([...view.names, ...[...asked.keys()].map((name) => [name, [name]] as const)]);
  return { ...view, slots: new Map([...view.slots, ...asked]), names };
}

const askThrough =
  (gateway: ReturnType<typeof createGateway>, own: SlotName, encode: typeof encodeRequest): AskModel =>
  async (request: ModelRequest, signal): Promise<Answer> => {
    const path = INFERENCE_PATHS.find((each) => each.path === request.path);
    if (path === undefined) throw new Error(`There is no path "${request.path}"`);
    const { type: contentType, bytes } = await encode(request, own);
    const arriving = new PassThrough();
    const begun = Promise.withResolvers<void>();
    const onPiece = async (piece: Buffer): Promise<void> => {
      begun.resolve();
      if (!arriving.write(piece)) await once(arriving, 'drain', { signal });
    };
    const requestId = `evaluation-${randomUUID()}`;
    const ended = askGateway({ gateway, socket: new Socket(), requestId }, { path, onPiece, contentType, body: [bytes] }, signal);
    ended.then(
      () => arriving.end(),
      (error: unknown) => arriving.destroy(error instanceof Error ? error : new Error(String(error))),
    );
    // Read by `runCases`, or not at all.
    arriving.on('error', () => undefined);
    const failed = await Promise.race([begun.promise, ended.then((answer) => (answer.status === 200 ? undefined : answer))]);
    if (failed !== undefined) return { status: failed.status, contentType: 'application/json', body: bytesOf(Buffer.from(failed.text)) };
    return { status: 200, contentType: request.body['stream'] === true ? 'text/event-stream' : 'application/json', body: arriving };
  };

async function* bytesOf(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
