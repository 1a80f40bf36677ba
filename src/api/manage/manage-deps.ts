/** What the management routes stand on. `src/main.ts` supplies it. */
import type { Board } from '../../reconciler/board.ts';
import type { SlotName } from '../../schema/names.ts';
import type { Settings } from '../../schema/settings.ts';
import type { Metrics, SlotTraffic } from '../metrics.ts';
import type { Manage } from '../ports.ts';

export interface ManageDeps {
  readonly manage: Manage;
  readonly board: Pick<Board, 'current'>;
  readonly metrics: Pick<Metrics, 'text' | 'contentType'>;
  readonly traffic: (slot: SlotName) => SlotTraffic;
  readonly settings: Pick<Settings, 'SVC_AUTH_ENABLED' | 'SVC_PUBLIC_URL' | 'SVC_TRUSTED_PROXIES' | 'SVC_RESYNC'>;
  /** What this build and host can do, by name. */
  readonly features: () => Readonly<Record<string, boolean>>;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Ends streams when the service stops, so that stopping does not wait for their readers. */
  readonly stopping: AbortSignal;
  /** Time between heartbeats of an event stream; for tests. */
  readonly heartbeatMs?: number;
}
