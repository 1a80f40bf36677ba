/** Dependencies of the management routes. */
import type { TokenManager } from '../../auth/manage-tokens.ts';
import type { RunningRequests } from '../../gateway/exchange-deps.ts';
import type { GatewayTraffic, SlotTraffic } from '../../gateway/traffic/traffic.ts';
import type { Board } from '../../reconciler/board.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { CallerCounting } from '../../schema/words/caller-limits.ts';
import type { CaptureStore, Change } from '../../schema/status/resource-answers.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { ImageSource, Manage } from '../ports.ts';
import type { UsageRecorder } from '../../usage/usage-recorder.ts';
import type { ChangePlans } from '../mcp/change-plans.ts';
import type { RequestRecord } from './request-record.ts';

export interface ManageDeps {
  readonly manage: Manage;
  readonly images: ImageSource;
  readonly board: Pick<Board, 'current'>;
  readonly metrics: Pick<Metrics, 'text' | 'formatFor' | 'totalsOf'>;
  readonly requests: Pick<RequestRecord, 'list'>;
  readonly running: RunningRequests;
  /** Undefined where usage is not recorded. */
  readonly usage: Pick<UsageRecorder, 'query' | 'sources'> | undefined;
  /** Undefined where agents cannot use the service (`SVC_MCP`). */
  readonly plans?: ChangePlans | undefined;
  /** Undefined in a cluster. */
  readonly captures: CaptureStore | undefined;
  /** Who changed what, oldest first. */
  readonly changes: { list(): Promise<readonly Change[]> };
  /** How limits of callers are counted. */
  readonly limits: () => CallerCounting;
  readonly traffic: (slot: SlotName) => SlotTraffic;
  readonly watchProgress: GatewayTraffic['watchProgress'];
  readonly settings: Pick<
    Settings,
    'SVC_AUTH_ENABLED' | 'SVC_CAPTURE' | 'SVC_CHAT_URL' | 'SVC_HARDWARE_FILE' | 'SVC_PUBLIC_URL' | 'SVC_RESYNC'
  >;
  readonly tokens: TokenManager;
  readonly isProxy: (address: string | undefined) => boolean;
  /** False while no token can be accepted, since the tokens were not read yet. Default: always true. */
  readonly accessIsReady?: () => boolean;
  readonly features: () => Readonly<Record<string, boolean>>;
  /** Milliseconds on the clock of the loop. */
  readonly now: () => number;
  /** Unix milliseconds. */
  readonly wallNow: () => number;
  /** Aborted when the service stops; ends streams, so that stopping does not wait for their readers. */
  readonly stopping: AbortSignal;
  /** Time between heartbeats of an event stream; set by tests only. */
  readonly heartbeatMs?: number;
}
