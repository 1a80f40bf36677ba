/** What the API needs of the rest of the program, beside the board, dispatch and the specs. `src/main.ts` supplies it. */
import type { SlotName } from '../schema/names.ts';
import type { SlotEditor } from '../schema/slot-editor.ts';
import type { SlotDocument } from '../schema/slot-spec.ts';
import type { TimelineEntry } from '../schema/slot-status.ts';

/** Who may call a route; deny by default. `read`: GET probes. `v1`: the OpenAI routes. `all`: what scope "all" grants. */
export type Access = 'open' | 'read' | 'v1' | 'all' | 'admin';

export interface EventFeed {
  /** Entries with a greater `seq`, oldest first, as far back as they are kept; `gap` says that older ones are gone. */
  since(seq: number): { readonly entries: readonly TimelineEntry[]; readonly gap: boolean };
  /** Last `seq` given out. */
  last(): number;
  subscribe(listener: (entry: TimelineEntry) => void): () => void;
  /** The whole timeline of a slot from its file, oldest first, at most `limit` from the end. */
  timeline(slot: SlotName, limit: number): Promise<readonly TimelineEntry[]>;
}

/** What a plan would do, for people and programs. */
export interface PlanPreview {
  /** `explain(plan)` as text. */
  readonly text: string;
  readonly changes: readonly {
    readonly slot: SlotName;
    readonly action: string;
    readonly because: string;
    readonly message: string;
  }[];
}

export interface Planner {
  /** Plans with these documents laid over the present ones (undefined: remove the slot) and carries nothing out. */
  preview(overlay: ReadonlyMap<SlotName, SlotDocument | undefined>): Promise<PlanPreview>;
}

export interface LogSource {
  /** Undefined when the slot has no workload. */
  open(
    slot: SlotName,
    options: { readonly tail: number; readonly follow: boolean },
    signal: AbortSignal,
  ): AsyncIterable<{ readonly stream: string; readonly text: string }> | undefined;
}

export interface ProviderListing {
  readonly kind: string;
  readonly serves: readonly string[];
  readonly backends: readonly string[];
  readonly defaultBackend: string;
  readonly available: boolean;
  readonly reason: string;
}

export interface ModelListing {
  readonly id: string;
  readonly provider: string;
  readonly family: string;
  readonly present: boolean;
  readonly sizeBytes: number | undefined;
  readonly memoryBytes: number | undefined;
  readonly minVramBytes: number | undefined;
  readonly license: string | undefined;
  readonly licenseUrl: string | undefined;
  readonly selectable: boolean;
  readonly reason: string | undefined;
}

export interface Manage {
  readonly version: string;
  readonly runtime: string;
  readonly startedAt: number;
  readonly editor: SlotEditor;
  readonly planner: Planner;
  readonly events: EventFeed;
  readonly logs: LogSource;
  /** Milliseconds since the last finished pass; liveness of the loop. */
  lastPassAgeMs(): number;
  providers(): Promise<readonly ProviderListing[]>;
  models(): Promise<readonly ModelListing[]>;
  hardware(): Promise<{ readonly memoryTotalBytes: number | undefined; readonly memoryAvailableBytes: number | undefined }>;
  installState(): Promise<{
    readonly complete: boolean;
    readonly steps: readonly { readonly id: string; readonly done: boolean; readonly hint: string }[];
  }>;
  completeInstall(): Promise<void>;
}
