/** The API's interfaces to the program, besides board and gateway. `wiring/create-api.ts` implements them. */
import type { Readable } from 'node:stream';
import type { z } from 'zod';
import type { ClusterListing } from '../schema/status/cluster-listing.ts';
import type { Failure, Result } from '../schema/words/failure.ts';
import type { HostFacts } from '../schema/status/hardware.ts';
import type { Backend } from '../schema/slot/provider-kinds.ts';
import type { ModelId, SlotName } from '../schema/words/names.ts';
import type { ProfileStore } from '../schema/slot/profile-store.ts';
import type { RevisionStore } from '../schema/slot/revision-store.ts';
import type { SlotEditor } from '../schema/slot/slot-editor.ts';
import type { SlotDocument } from '../schema/slot/slot-spec.ts';
import type * as answers from '../schema/status/answers.ts';
import type { ModelSearch } from '../schema/status/resource-answers.ts';
import type { ConfigSource } from '../schema/status/config-source.ts';
import type { SlotStatus, TimelineEntry } from '../schema/status/slot-status.ts';
import type { Facts, Immutable } from './server/answer.ts';

type Progress = NonNullable<SlotStatus['progress']>;

export interface ImageSource {
  /** Undefined: it does not exist. `read` closes the file at its end, `close` without reading. */
  open(id: string): Promise<{ readonly sizeBytes: number; read(from: number, to: number): Readable; close(): Promise<void> } | undefined>;
}

export interface EventFeed {
  /** Returns the retained entries with a greater `seq`, oldest first. `gap`: some of them are no longer retained. */
  since(seq: number): { readonly entries: readonly TimelineEntry[]; readonly gap: boolean };
  last(): number;
  subscribe(listener: (entry: TimelineEntry) => void): () => void;
  /** Reads the newest `limit` entries of a slot's timeline from its file, oldest first. */
  timeline(slot: SlotName, limit: number): Promise<readonly TimelineEntry[]>;
}

export type ProviderListing = Facts<z.output<typeof answers.ProviderEntry>>;

export type ModelListing = Facts<z.output<typeof answers.ModelEntry>>;
export type ModelDetail = Facts<z.output<typeof answers.ModelDetail>>;

export type WorkloadListing = Facts<z.output<typeof answers.WorkloadEntry>>;

export interface PullListing {
  readonly id: string;
  readonly progress: Progress | undefined;
  /** Why a requested pull has ended without the model. */
  readonly failure: Failure | undefined;
}

interface PullOptions {
  readonly acceptLicense: boolean;
  /** Accept what the publisher has now at a rolling source. */
  readonly acceptNew?: boolean;
  /** Download address; requires `sha256`. */
  readonly url: string | undefined;
  readonly sha256: string | undefined;
}

export interface PullStarted {
  /** Files that are accepted from now on. */
  readonly accepted: readonly { readonly url: string; readonly sizeBytes: number }[];
}

export interface FitRequest {
  readonly model: ModelId;
  /** Tokens. Default: the model's. */
  readonly context: number | undefined;
  /** Default: the best one that this machine can run. */
  readonly backend: Backend | undefined;
}

export interface FitListing extends Omit<Facts<z.output<typeof answers.FitAnswer>>, 'model' | 'context' | 'neededBytes' | 'placement'> {
  /** Bytes needed per memory. */
  readonly placement: Readonly<Record<string, number>>;
}

export type SearchListing = Facts<z.output<typeof ModelSearch>>;

export interface SearchRequest {
  readonly text: string;
  /** Repositories. */
  readonly limit: number;
  readonly cursor: string | undefined;
}

export interface Manage {
  readonly version: string;
  readonly runtime: string;
  /** The loop's clock. */
  readonly startedAt: number;
  readonly editor: SlotEditor;
  /** Undefined in a cluster. */
  readonly profiles: ProfileStore | undefined;
  /** Undefined where none are kept. */
  readonly revisions: RevisionStore | undefined;
  /** Undefined where no repository declares the configuration. */
  readonly source?: ConfigSource | undefined;
  readonly events: EventFeed;
  /** Plans as if these documents replaced the current ones (undefined: removed), and requests waited for `asked`. */
  preview(
    overlay: ReadonlyMap<SlotName, SlotDocument | undefined>,
    asked?: ReadonlySet<SlotName>,
  ): Promise<Immutable<z.output<typeof answers.Plan>>>;
  /** Loads an enabled slot that rests until its next request, as such a request does, and keeps it until then. */
  ask(slot: SlotName): void;
  /** Resolves to undefined if the slot has no workload. */
  logs(
    slot: SlotName,
    options: { readonly tail: number; readonly follow: boolean },
    signal: AbortSignal,
  ): Promise<AsyncIterable<{ readonly text: string }> | undefined>;
  workloads(slot: SlotName): readonly WorkloadListing[];
  lastPassAgeMs(): number;
  providers(): Promise<readonly ProviderListing[]>;
  models(): Promise<readonly ModelListing[]>;
  /** Fails if nothing provides the model. */
  model(id: ModelId): Promise<Result<ModelDetail>>;
  /** Downloads of models under way, and those that were asked for and failed. */
  pulls(): readonly PullListing[];
  /** Begins to download a model. Resolves as soon as it is clear what will be downloaded, and that it may be. */
  pullModel(id: ModelId, options: PullOptions): Promise<Result<PullStarted | undefined>>;
  /** Removes a model unless a slot wants or uses it. */
  removeModel(id: ModelId): Promise<Result<'removed' | 'absent' | { readonly usedBy: readonly string[] }>>;
  /** Fails if nothing is known of the model. */
  fit(question: FitRequest): Promise<Result<FitListing>>;
  /** Searches the Hugging Face Hub. */
  searchModels(request: SearchRequest): Promise<Result<SearchListing>>;
  hardware(): Promise<HostFacts>;
  /** Undefined if the service does not run in a cluster. */
  cluster(): ClusterListing | undefined;
  installState(): Promise<{
    readonly complete: boolean;
    readonly steps: readonly { readonly id: string; readonly done: boolean; readonly hint: string }[];
  }>;
  completeInstall(): Promise<void>;
}
