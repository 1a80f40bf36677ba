/** What differs between a host and a cluster: all that the loop senses and tells, and who may act. Made whole for one of the two. */
import type { DirectoryModelStore } from '../models/store.ts';
import type { BoardView } from '../reconciler/board.ts';
import type { HostProbe, ModelStore, Runtime, SlotSource, StatusSink, Traffic, Wake } from '../reconciler/ports.ts';
import type { ToolboxImages } from '../files/toolbox-manifest.ts';
import type { SlotEditor } from '../schema/slot-editor.ts';

export interface World {
  readonly runtime: Runtime;
  readonly source: SlotSource;
  /** As of the last reading of the source. */
  toolboxes(): ToolboxImages;
  /** From now on nothing is wanted, whatever the slots say. */
  wantNothing(): void;
  readonly models: ModelStore;
  /** For the list of models. */
  readonly modelFiles: DirectoryModelStore;
  readonly host: HostProbe;
  readonly editor: SlotEditor;
  readonly sinks: readonly StatusSink[];
  /** The gateway's traffic as the loop is to see it: with that of other replicas, where there are any. To be called once, before `start`. */
  shareTraffic(local: Traffic): Traffic;
  /** Whether this replica carries plans out. */
  readonly leadership: { leads(): boolean; changes(wake: Wake, signal: AbortSignal): void };
  /** What this replica shows of what its loop found. */
  show(view: BoardView): BoardView;
  /** Begins what runs beside the loop. `requestSent` hears of each request to the API server of a cluster. */
  start(requestSent: (request: { readonly verb: string; readonly resource: string }) => void): void;
  /** Lets another replica lead. Everything else goes on. */
  resign(): Promise<void>;
  /** Ends it: nothing is sensed any more. */
  stop(): Promise<void>;
}

/** Of a world with one replica. */
export const ALWAYS_LEADS: World['leadership'] = { leads: () => true, changes: () => undefined };
