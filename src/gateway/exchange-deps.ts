/** Dependencies of the gateway and of its exchanges, and the seam to everything that only some paths need. */
import type { InferPlan, InferRequest, ProviderRegistry } from '../providers/provider.ts';
import type { RoutedBoard, RoutedView } from '../reconciler/board.ts';
import type { Settings } from '../schema/settings/settings.ts';
import type { RequestCaller } from '../schema/words/caller-limits.ts';
import type { SlotName } from '../schema/words/names.ts';
import type { DenseSet } from '../platform/dense-set.ts';
import type { ClientAnswer } from './client-answer.ts';
import type { WriteBatcher } from './batch-streams.ts';
import type { ClientRequest, ClientResponse } from './client-exchange.ts';
import type { DirectRequest } from './route/decide/route.ts';
import type { ApplyPreset, OutputCap } from './body/apply-preset.ts';
import type { BodyScan } from './body/body-scan.ts';
import type { BodySpool, SpoolOptions } from './body/body-spool.ts';
import type { RequestBody } from './body/request-body.ts';
import type { Attempt, AttemptEvents, Hold } from './request-events.ts';
import type { Move } from './route/decide/fall-back.ts';
import type { InferencePath } from './route/decide/inference-paths.ts';
import type { VisibleTo } from './visible-board.ts';

import type { RequestTrace, StartTrace, TracedRequest } from './trace/request-trace.ts';
import type { AdmitCaller, LimitAccounts } from './traffic/admit-caller.ts';
import type { BufferBudget, GatewayTraffic } from './traffic/traffic.ts';
import type { Media } from './upstream/decide/count-media.ts';
import type { Usage } from './upstream/decide/judge-answer.ts';
import type { RequestHead } from './upstream/decide/request-head.ts';
import type { Upstreams } from './upstream/upstreams.ts';

export interface ExchangeRequest {
  readonly req: ClientRequest;
  readonly res: ClientResponse;
  readonly path: InferencePath;
  readonly head: RequestHead;
  readonly requestId: string;
  /** Undefined for requests of this process itself. */
  readonly caller?: RequestCaller | undefined;
  readonly direct?: DirectRequest;
  /** Undefined where nothing is traced. */
  readonly trace?: RequestTrace | undefined;
}

export interface FinishedRequest {
  /** Undefined if the request did not reach a slot. */
  readonly slot: SlotName | undefined;
  /** Undefined if it was refused before it had one. */
  readonly requestId?: string | undefined;
  /** Undefined if no credential was checked. */
  readonly caller?: string | undefined;
  /** The path of the route as in the route table, never the raw path, so that the number of series is bounded. */
  readonly route: string;
  /** The status sent; 499 if the client disconnected before that. */
  readonly status: number;
  /** The code of the error that the client was sent, which is the gateway's or an upstream's. */
  readonly code?: string | undefined;
  readonly seconds: number;
  /** How long the request was parked, over all its attempts; undefined if it never was. */
  readonly parkedSeconds?: number | undefined;
  /** Time from arrival to the first byte of the answer's body; undefined if the answer was not streamed. */
  readonly ttftSeconds?: number | undefined;
  /** How long the answer waited for the client to read; undefined if it never did. */
  readonly blockedSeconds?: number | undefined;
  readonly tokens?: Usage | undefined;
  /** Undefined where nothing is known of sound or images. */
  readonly media?: Media | undefined;
  /** The moves that led to the slot, the first one first. Default: none. */
  readonly moves?: readonly Move[] | undefined;
  /** Undefined unless its trace is to be sent. */
  readonly trace?: TracedRequest | undefined;
}

/** Called exactly once for each request, on the hot path: must not throw and must not allocate much. */
export type ReportRequest = (finished: FinishedRequest) => void;

export interface GatewayDeps {
  readonly board: RoutedBoard;
  readonly providers: ProviderRegistry;
  readonly traffic: Pick<GatewayTraffic, 'holds' | 'parking' | 'noteFailure'>;
  readonly settings: Settings;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly report: ReportRequest;
  readonly extensions: Extensions;
  /** Default: accounts of this gateway. */
  readonly limitAccounts?: LimitAccounts | undefined;
  /** For requests that come without a trace. Default: they have none. */
  readonly startTrace?: StartTrace | undefined;
  /** `tap` returns what takes the place of `report`; undefined if no capture wants the request. */
  readonly taps?: { tap(request: ExchangeRequest, report: ReportRequest): ReportRequest | undefined } | undefined;
}

/** Everything that a chat without images does not need. `create-gateway.ts` creates it. */
export interface Extensions {
  /** Returns the scan of a body for paths that need more of it than `model`. */
  scanBody(path: InferencePath, head: RequestHead): BodyScan | undefined;
  /** Opens a file for bodies that are too large for memory. */
  openSpool(options: SpoolOptions): BodySpool;
  /** Creates an attempt that answers by a translation of the provider. */
  translate(request: TranslatedRequest, events: AttemptEvents): Attempt;
}

export interface AttemptRequest {
  readonly deps: Pick<ExchangeDeps, 'upstreams' | 'tick' | 'settings' | 'budget'>;
  readonly hold: Hold;
  readonly requestId: string;
  readonly requestBody: RequestBody;
  readonly answer: ClientAnswer;
  /** `performance.now()` of the request's arrival. */
  readonly startedAt: number;
}

export interface TranslatedRequest extends AttemptRequest {
  readonly plan: Extract<InferPlan, { kind: 'translate' }>;
  /** Header lines of each request to the server. */
  readonly traceLines: string;
  readonly head: Pick<RequestHead, 'host' | 'forwarded'>;
  readonly asked: InferRequest;
}

export interface ActiveExchange {
  /** Ends the exchange if a time limit has passed. Called about once a second with the coarse clock. */
  checkTimeouts(now: number): void;
  /** Ends the exchange without an answer, because the gateway is closing. */
  abandon(): void;
  /** Ends it with an error for the client. */
  cancel(): void;
  look(): RunningRequest;
}

/** A request that has not ended. */
export interface RunningRequest extends Pick<FinishedRequest, 'slot' | 'caller' | 'route'> {
  readonly requestId: string;
  /** Its body is read; it waits for its slot; its server has sent nothing yet; the answer has begun. */
  readonly state: 'reading' | 'waiting' | 'computing' | 'answering';
  readonly seconds: number;
}

export function describeRunning(
  { requestId, caller, path }: Pick<ExchangeRequest, 'requestId' | 'caller' | 'path'>,
  startedAt: number,
  now: { readonly slot: SlotName | undefined; readonly isRead: boolean; readonly attempt: Pick<Attempt, 'ttftMs'> | undefined },
): RunningRequest {
  const begun = now.attempt?.ttftMs === undefined ? 'computing' : 'answering';
  const state = now.attempt === undefined ? (now.isRead ? 'waiting' : 'reading') : begun;
  const seconds = (performance.now() - startedAt) / 1000;
  return { requestId, slot: now.slot, caller: caller?.key, route: path.path, state, seconds };
}

export const secondsOf = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000);

/** Never sent, only reported: nginx's code for a client that disconnected before the answer. */
export const CLIENT_GONE = 499;
export const [LEAST_ERROR, LEAST_SERVER_ERROR] = [400, 500] as const;
export const STOPPED = 'The workload was stopped before the answer was complete: send the request again';

/** Requests that have not ended, in all processes. */
export interface RunningRequests {
  /** The oldest first. */
  list(): Promise<readonly RunningRequest[]>;
  /** Ends those with this id, and returns whether there were any. */
  cancel(id: string): Promise<boolean>;
}

export interface ExchangeDeps extends GatewayDeps {
  readonly upstreams: Upstreams;
  readonly applyPreset: ApplyPreset;
  readonly outputCap: OutputCap;
  readonly visibleTo: VisibleTo<RoutedView>;
  readonly admitCaller: AdmitCaller;
  readonly budget: BufferBudget;
  readonly spoolBudget: BufferBudget;
  readonly batcher: WriteBatcher;
  readonly active: DenseSet<ActiveExchange>;
  /** Milliseconds of a clock that advances once a second, which is cheaper than the real one. */
  readonly tick: () => number;
}
