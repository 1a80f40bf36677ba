/** What the gateway and each exchange in it are given. */
import type { Board } from '../reconciler/board.ts';
import type { ProviderRegistry } from '../providers/provider.ts';
import type { SlotName } from '../schema/names.ts';
import type { Settings } from '../schema/settings.ts';
import type { BufferBudget } from './buffer-budget.ts';
import type { WriteBatcher } from './write-batcher.ts';
import type { Usage } from './decide/read-usage.ts';
import type { Holds } from './hold.ts';
import type { Parking } from './parking.ts';
import type { DenseSet } from './dense-set.ts';
import type { GatewayTraffic } from './traffic.ts';
import type { Upstreams } from './upstreams.ts';

export type GatewaySettings = Pick<
  Settings,
  'SVC_BODY_LIMIT' | 'SVC_BUFFER_LIMIT' | 'SVC_PARK_LIMIT' | 'SVC_PARK_TIMEOUT' | 'SVC_FIRST_BYTE_TIMEOUT' | 'SVC_STREAM_TIMEOUT'
>;

export interface FinishedExchange {
  readonly slot: SlotName | undefined;
  readonly path: string;
  /** The status sent; 499 when the client left before one was. */
  readonly status: number;
  readonly seconds: number;
  readonly ttftSeconds: number | undefined;
  readonly tokens: Usage | undefined;
}

export interface GatewayDeps {
  readonly board: Board;
  readonly providers: ProviderRegistry;
  readonly traffic: GatewayTraffic;
  readonly settings: GatewaySettings;
  readonly now: () => number;
  /** Called once for each request. */
  readonly report: (finished: FinishedExchange) => void;
}

export interface ActiveExchange {
  checkTime(now: number): void;
  abandon(): void;
}

/** What an exchange needs of the gateway. */
export interface ExchangeDeps extends GatewayDeps {
  readonly holds: Holds;
  readonly parking: Parking;
  readonly upstreams: Upstreams;
  readonly budget: BufferBudget;
  readonly batcher: WriteBatcher;
  readonly active: DenseSet<ActiveExchange>;
  readonly suspect: () => void;
  /** Milliseconds of a clock that moves about once a second: enough for time limits, and free. */
  readonly tick: () => number;
}
