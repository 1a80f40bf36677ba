/** The differences between a host and a cluster: inputs of the loop, its reports, and which replica may act. */
import path from 'node:path';
import type { ClusterSources } from '../api/metrics/cluster-series.ts';
import type { ClusterModelStore } from '../cluster/models/cluster-model-store.ts';
import type { KubeObserver } from '../cluster/client/client-observer.ts';
import type { TokenSecret } from '../cluster/token-secret.ts';
import type { ClusterListing } from '../schema/status/cluster-listing.ts';
import type { FailureRecords } from '../schema/status/slot-status.ts';
import type { Log } from '../platform/log.ts';
import type { DirectoryModelStore } from '../models/store.ts';
import type { BoardView } from '../reconciler/board.ts';
import type {
  DesiredState,
  HostProbe,
  ModelStore,
  PromptStore,
  ReadAhead,
  Runtime,
  SlotSource,
  StatusSink,
  Traffic,
  Wake,
} from '../reconciler/ports.ts';
import type { HostProgram, ProviderRegistry } from '../providers/provider.ts';
import type { ProviderKind } from '../schema/slot/provider-kinds.ts';
import { createEngineDirectory } from '../files/engine-directory.ts';
import { enginesOf, rememberEngines, type LiveRegistry } from './engines.ts';
import { createToolboxSource, type ToolboxImages } from '../files/toolbox-manifest.ts';
import type { Settings } from '../schema/settings/settings.ts';
import type { ConfigSource } from '../schema/status/config-source.ts';
import type { ReadEnergy } from '../schema/status/hardware.ts';
import type { ProfileStore } from '../schema/slot/profile-store.ts';
import type { RevisionStore } from '../schema/slot/revision-store.ts';
import type { SlotSpec } from '../schema/slot/slot-spec.ts';
import type { SlotProgram } from '../schema/slot/toolbox-images.ts';
import type { SlotEditor } from '../schema/slot/slot-editor.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import type { Catalogue } from '../models/catalogue/catalogue.ts';
import type { CatalogueSource } from '../models/catalogue/catalogue-source.ts';
import { ok } from '../schema/words/failure.ts';

export interface ServiceOptions {
  readonly settings: Settings;
  readonly version: string;
  readonly log: Log;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Path of the shipped `manifests/toolboxes.toml`. */
  readonly toolboxManifest: string;
  /** Directory of the built dashboard. Undefined or not there: it is not served. */
  readonly dashboard?: string;
  readonly providers: ProviderRegistry;
  /** Takes over engines that files declare. Default: there are none. */
  readonly declare?: LiveRegistry['declare'];
}

export interface OwnProgram extends HostProgram {
  readonly kind: ProviderKind;
  readonly name: string;
}

export interface World {
  readonly runtime: Runtime;
  /** The programs of the providers at present. */
  readonly programs?: () => readonly OwnProgram[];
  readonly source: SlotSource;
  readonly toolboxes: () => ToolboxImages;
  /** The source returns no slots from now on. */
  wantNothing(): void;
  readonly models: ModelStore;
  readonly modelFiles: DirectoryModelStore;
  readonly clusterModels?: ClusterModelStore;
  readonly host: HostProbe;
  /** Undefined where no sensors tell what requests use, as in a cluster. */
  readonly readEnergy?: ReadEnergy;
  readonly prompts?: PromptStore;
  readonly readAhead?: ReadAhead;
  readonly tokens?: TokenSecret;
  readonly records: FailureRecords;
  readonly editor: SlotEditor;
  readonly profiles?: ProfileStore;
  /** Undefined where none are kept. */
  readonly revisions?: RevisionStore;
  /** Undefined where none declares the configuration. */
  readonly repository?: ConfigSource;
  readonly sinks: readonly StatusSink[];
  /** The traffic for the loop, including other replicas'. Call it once, before `start`. */
  shareTraffic(local: Traffic): Traffic;
  readonly leadership: { leads(): boolean; changes(wake: Wake, signal: AbortSignal): void };
  /** Returns the view that this replica publishes instead of the one that its loop derived. */
  publishedView(view: BoardView): BoardView;
  /** Gateways that serve the same slots, with this one. Default: 1. */
  readonly gateways?: () => number;
  readonly cluster?: ClusterSources;
  readonly listCluster?: () => ClusterListing;
  /** Starts what runs beside the loop. In a cluster, it reports to the observer. */
  start(observer: KubeObserver): void;
  resign(): Promise<void>;
  stop(): Promise<void>;
}

/** A mistake in the entry of its model is one of the slot: an earlier version of the entry may still be in force. */
function withMistakes(slots: DesiredState['slots'], catalogue: Catalogue): DesiredState['slots'] {
  const faulty = [...slots.values()].flatMap((slot) => {
    const problems = catalogue.problemsOf?.(slot.spec.model.default) ?? [];
    return problems.length === 0 ? [] : [[slot.name, { ...slot, problems: [...slot.problems, ...problems] }] as const];
  });
  return faulty.length === 0 ? slots : new Map([...slots, ...faulty]);
}

/** Reads all inputs together, so each pass sees the latest version. `lastGoodFile` keeps the last `toolboxes.toml`. */
export async function createDesiredInputs(
  { settings, toolboxManifest, log, providers, declare }: ServiceOptions,
  slots: SlotSource,
  { catalogue, ...keep }: { readonly catalogue: CatalogueSource; readonly lastGoodFile?: string; readonly enginesFile?: string },
): Promise<Pick<World, 'source' | 'toolboxes' | 'wantNothing'> & { programsOf(kind: ProviderKind): readonly SlotProgram[] }> {
  const local = path.join(settings.SVC_CONFIG_DIR, 'toolboxes.toml');
  const manifest = createToolboxSource({ shipped: toolboxManifest, local, log, ...keep });
  let toolboxes = await manifest.read();
  const engines = createEngineDirectory({ directory: path.join(settings.SVC_CONFIG_DIR, 'engines'), log, lastGoodFile: keep.enginesFile });
  const complete = rememberEngines();
  let wantsNothing = false;
  let specs: readonly SlotSpec[] = [];
  return {
    /** The builds that slots of this provider name themselves. */
    programsOf: (kind) => specs.flatMap(({ provider, program }) => (provider === kind && program !== undefined ? [program] : [])),
    toolboxes: () => ({
      ...toolboxes,
      find(kind, backend) {
        const reference = providers[kind]?.images?.[backend];
        return reference === undefined ? toolboxes.find(kind, backend) : { reference };
      },
    }),
    wantNothing: () => void (wantsNothing = true),
    source: {
      async read(signal) {
        if (wantsNothing) return ok({ slots: new Map(), refused: new Map() });
        toolboxes = await manifest.read();
        await catalogue.read();
        const read = await slots.read(signal);
        if (!read.ok) return read;
        specs = [...read.value.slots.values()].flatMap(({ spec }) => (spec.program === undefined ? [] : [spec]));
        const declared = await engines.read(enginesOf(read.value.slots.values()));
        declare?.(declared.definitions.values(), true);
        const problems = [...(read.value.problems ?? []), ...[...declared.problems.values()].flat()];
        return ok({ ...read.value, problems, slots: complete(withMistakes(read.value.slots, catalogue.catalogue), declared) });
      },
      settle: (slot, settlement) => slots.settle?.(slot, settlement),
      changes(wake, signal) {
        slots.changes(wake, signal);
        catalogue.changes(wake, signal);
        const own = { directory: path.dirname(local), names: [path.basename(local)], quietPeriodMs: settings.SVC_QUIET_PERIOD, log };
        watchDirectory(own, () => wake(), signal);
        watchDirectory(
          { directory: path.join(settings.SVC_CONFIG_DIR, 'engines'), quietPeriodMs: settings.SVC_QUIET_PERIOD, log },
          () => wake(),
          signal,
        );
      },
    },
  };
}
