/** What the gateway and its exchanges are given. */
import type { RoutedBoard } from '../reconciler/board.ts';
import type { ProviderRegistry } from '../providers/provider.ts';
import type { KeptImage } from '../providers/translation.ts';
import type { SlotName } from '../schema/words/names.ts';
import type { Settings } from '../schema/settings/settings.ts';
import type { VoiceStore } from '../schema/slot/voice-store.ts';
import type { BufferBudget, GatewayTraffic } from './traffic/traffic.ts';
import type { WriteBatcher } from '../platform/write-batcher.ts';
import type { Usage } from './upstream/decide/judge-answer.ts';
import type { DenseSet } from '../platform/dense-set.ts';
import type { FetchImage } from './translate/fetch-image.ts';
import type { Upstreams } from './upstream/upstreams.ts';

export interface FinishedRequest {
  /** Undefined if the request did not reach a slot. */
  readonly slot: SlotName | undefined;
  /** The path of the route as in the route table, never the raw path, so that the number of series is bounded. */
  readonly route: string;
  /** The status sent; 499 if the client disconnected before that. */
  readonly status: number;
  readonly seconds: number;
  /** How long the request was parked, over all its attempts; undefined if it never was. */
  readonly parkedSeconds?: number | undefined;
  /** Time from arrival to the first byte of the answer's body; undefined if the answer was not streamed. */
  readonly ttftSeconds?: number | undefined;
  readonly tokens?: Usage | undefined;
}

/**
 * Puts an image that comes in pieces into the cache; undefined after the last piece. `status`: of the answer that it is in. Rejects if `next` does, and if the disk fails.
 * Nothing is left of an image that is not complete.
 */
export type KeepImage = (next: () => Promise<Uint8Array | undefined>, status: number) => Promise<KeptImage>;

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
  /** Called with what a translation of a provider threw. */
  readonly onFault: (fault: unknown, requestId: string) => void;
  /** Default: a translation cannot keep images. */
  readonly keepImage?: KeepImage;
  /** The stored voices. Default: there are none. */
  readonly voices?: Pick<VoiceStore, 'find' | 'read'> | undefined;
  /** Default: from the public internet, within the limits of the settings. */
  readonly fetchImage?: FetchImage;
}

export interface ActiveExchange {
  /** Ends the exchange if a time limit has passed. Called about once a second with the coarse clock. */
  checkTimeouts(now: number): void;
  /** Ends the exchange without an answer, because the gateway is closing. */
  abandon(): void;
}

export interface ExchangeDeps extends GatewayDeps {
  readonly fetchImage: FetchImage;
  readonly keepImage: KeepImage;
  readonly upstreams: Upstreams;
  /** Bytes of bodies in memory. */
  readonly budget: BufferBudget;
  /** Bytes of bodies on disk. */
  readonly spoolBudget: BufferBudget;
  readonly batcher: WriteBatcher;
  readonly active: DenseSet<ActiveExchange>;
  /** Milliseconds of a clock that advances about once a second: precise enough for time limits, and cheaper than reading the real one. */
  readonly tick: () => number;
}
