/**
 * The provider contract: how to start, probe and query one kind of inference server. A provider has no state and starts
 * nothing itself. A new provider is a folder here and a line in `registry.ts`.
 */
import type { Result } from '../schema/words/failure.ts';
import type { Machine, ProgramBackends } from '../schema/status/hardware.ts';
import type { ModelAbility, Backend, Capability, ProviderKind } from '../schema/slot/provider-kinds.ts';
import type { ModelId, SlotName } from '../schema/words/names.ts';
import type { SlotSpec } from '../schema/slot/slot-spec.ts';
import type { Translate } from './translation.ts';

/** Contents of a model's files in terms of its provider: plain data, compared by value, read by nobody else. */
export type ModelContents = Readonly<Record<string, unknown>>;

/** Properties of a model for users, independent of the provider. Absent: unknown. */
export interface ModelTraits {
  /** Quantisation as written in file names, e.g. `Q4_K_M`. */
  readonly quantization?: string | undefined;
  readonly parameters?: number | undefined;
  /** Trained context length, in tokens. */
  readonly context?: number | undefined;
  /** How token vectors become one vector or score, e.g. `mean`. */
  readonly pooling?: string | undefined;
  /** Mixture of experts: number of experts, and of those active per token. */
  readonly experts?: { readonly total: number; readonly active: number | undefined } | undefined;
  /** Undefined: unknown. Empty: none. */
  readonly abilities?: readonly ModelAbility[] | undefined;
}

/** Facts about a model in the store. */
export interface ModelFacts {
  readonly id: ModelId;
  /** Absolute host path of the file or directory that the server loads; the name of a provider's own model. */
  readonly hostPath: string;
  readonly sizeBytes: number;
  /** Undefined if no provider recognises the files, or if they cannot be read from here. */
  readonly provider?: ProviderKind | undefined;
  /** Undefined: unknown. Providers must tolerate missing fields and models of other providers. */
  readonly contents?: ModelContents | undefined;
  /** Kind of model for lists, e.g. `llama`. */
  readonly family?: string | undefined;
  /** Changes when its files are replaced. Undefined: unknown. */
  readonly version?: string | undefined;
  /** Set where pods of a cluster fetch the model: the pin that lists its files. */
  readonly pinnedBy?: PinReference | undefined;
}

/** The object that lists the files of a fetched model. */
export interface PinReference {
  readonly object: string;
  /** Changes with each version of the model. */
  readonly digest: string;
}

/** Candidate for a model: a file or directory of the store. */
export interface StoreEntry {
  /** Base name. */
  readonly name: string;
  /** Entries of the directory; undefined for a file. */
  readonly names?: readonly string[] | undefined;
}

/**
 * Reads the files of one model: those in its directory or, if it is a file, those beside it; names are relative to that
 * directory. Rejects for files that are missing, unreadable or outside the store, and for reading far more than any
 * model needs. The caller reports which file failed.
 */
export interface ModelFiles {
  names(): Promise<readonly string[]>;
  sizeOf(name: string): Promise<number>;
  /** Returns fewer bytes only at the end of the file. */
  read(name: string, offset: number, length: number): Promise<Uint8Array>;
}

export type ModelReading =
  | {
      readonly kind: 'model';
      /** Total of all files that the server loads. */
      readonly sizeBytes: number;
      readonly contents: ModelContents;
      readonly family?: string | undefined;
    }
  /** Incomplete, damaged or not a model. The message names the file and says what to do. */
  | { readonly kind: 'unusable'; readonly message: string };

/** File format of a provider's models. */
export interface ModelFormat {
  readonly kind: ProviderKind;
  /** `model`: users may name it. `part`: belongs to a model. Undefined: not of this provider. Pure. */
  recognize(entry: StoreEntry): 'model' | 'part' | undefined;
  /** Returns the names of all files of the model that one file name stands for. Pure. */
  filesOf(name: string): readonly string[];
  /** Reads a recognised model, only through `files`. Remembered until a file that was looked at changes. */
  read(model: { readonly id: ModelId; readonly entry: StoreEntry }, files: ModelFiles): Promise<ModelReading>;
  /** Contents stated by the catalogue, completed by file names relative to the store; the first is loaded. Pure. */
  contentsFrom(stated: ModelContents | undefined, files: readonly string[]): ModelContents | undefined;
  /** Whether only a gateway that has read the file can serve the model. Default: never. Pure. */
  mustBeRead?(name: string): boolean;
  /** Returns properties for users. Contents may be of another version. Default: nothing. Pure. */
  describe?(contents: ModelContents): ModelTraits;
}

/** Memory demand of a server. With unified memory, the sum counts. */
export interface MemoryDemand {
  readonly hostBytes: number;
  /** Over all devices. 0 if it computes with the CPU only. */
  readonly deviceBytes: number;
}

/** Input for the decisions about a workload. */
export interface SlotContext {
  readonly name: SlotName;
  readonly spec: SlotSpec;
  readonly model: ModelFacts;
  /** Path that the server sees: inside the container, or on the host. */
  readonly modelPath: string;
  readonly listen: Endpoint;
}

export type Endpoint = { readonly host: string; readonly port: number };

export interface ProbeResponse {
  /** 0: no response. */
  readonly status: number;
  readonly body: string;
  readonly error?: string;
}

/** Voice of a text-to-speech model. */
export interface Voice {
  readonly id: string;
  /** BCP 47 tag, e.g. `en-us`. Undefined: unknown. */
  readonly language?: string | undefined;
}

/** Performs the HTTP requests of health probes. Never throws. */
export interface ProbeIo {
  request(
    endpoint: Endpoint,
    options: {
      readonly method: 'GET' | 'POST';
      readonly path: string;
      readonly body?: string | Uint8Array;
      /** Default: JSON. */
      readonly contentType?: string;
      readonly timeoutMs: number;
      readonly signal: AbortSignal;
    },
  ): Promise<ProbeResponse>;
}

export type Health =
  | { readonly kind: 'passing' }
  /** The server answers, its model does not: loading, or busy with other requests. */
  | { readonly kind: 'loading'; readonly message: string }
  /** Not even the cheapest request is answered: nothing listens, or the process is frozen. */
  | { readonly kind: 'silent'; readonly message: string }
  | { readonly kind: 'failing'; readonly message: string }
  /** No sound model computes such an answer. Only `readiness` finds this. */
  | { readonly kind: 'nonsense'; readonly message: string };

/** Routing facts of a client's request. */
export interface InferRequest {
  readonly method: string;
  /** Canonical path of the route, e.g. `/v1/rerankings` for all of its aliases. */
  readonly path: string;
  readonly capability: Capability;
}

/** Destination of a request. */
export interface ServedSlot {
  readonly spec: SlotSpec;
  /** Model that the server was started for; undefined: unknown. */
  readonly model: ModelFacts | undefined;
}

export type InferPlan =
  /** Send the body unchanged to this path of the server. */
  | { readonly kind: 'forward'; readonly path: string }
  /** Run this translation after the body was read. `maxJsonBytes` limits JSON, not forms. Default: 1 MiB. */
  | { readonly kind: 'translate'; readonly run: Translate; readonly maxJsonBytes?: number }
  /** The model does not support the request: 4xx with this message. */
  | { readonly kind: 'refuse'; readonly message: string };

export interface BackendVerdict {
  readonly backend: Backend;
  /** Reason why the machine cannot run it, as a clause: `this machine has no NPU`. Undefined: it can, or unknown. */
  readonly missing?: string | undefined;
}

/** Access to a machine for finding or installing a program. */
export interface ProgramHost {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** State directory of the service. A provider may create one directory of its own in it. */
  readonly stateDir: string;
  /** Reports slow work. */
  readonly onProgress: (message: string) => void;
}

/** Program of a provider on a machine where it runs without a container. */
export interface HostProgram {
  /** Returns its path and first arguments. May install it. Fails with `ProgramMissing`, which says what to install. */
  resolve(signal: AbortSignal): Promise<Result<readonly [string, ...string[]]>>;
  /** Describes the result of `resolve` without installing anything. Fails as `resolve` would. */
  describe(): Promise<
    Result<{
      /** Quoted path for messages. */
      readonly name: string;
      /** Installation that `resolve` would do first, as a clause. */
      readonly installs?: string;
    }>
  >;
  /** Returns the program's backends; undefined: unknown. `devices` changes with the devices of the machine. */
  reportBackends?(devices: string): Promise<ProgramBackends | undefined>;
}

/** Model of a program or its toolbox image: named there, without a file in the store. */
export interface OwnModel {
  readonly id: ModelId;
  readonly sizeBytes: number;
  /** Like `ModelContents`: plain data that only the provider reads. */
  readonly contents: Readonly<Record<string, unknown>>;
  readonly family?: string | undefined;
  /** Reason why it cannot be served, and the fix. Undefined: it can. */
  readonly missing?: string | undefined;
}

export interface OwnModels {
  /** Arguments with which the program prints its list and exits, also on a machine without its device. */
  readonly listArguments: readonly string[];
  /** Undefined if the output is not a list. Pure. */
  parse(output: string): readonly OwnModel[] | undefined;
}

export interface Provider {
  readonly kind: ProviderKind;
  /** Program in the toolbox image and on a machine without containers, e.g. `llama-server`. Unique per provider. */
  readonly program: string;
  /**
   * Image from a folder in `toolboxes/`, shared by providers that name it; `byBackend`: one for each. Default: none.
   */
  readonly toolbox?: { readonly folder: string; readonly backends: readonly Backend[]; readonly byBackend?: true };
  /** Port inside the container. */
  readonly containerPort: number;
  /** `GET` returns 200 once the server accepts requests, also while busy: no response means frozen or gone. */
  readonly readyPath: string;
  /** Arguments that cannot load code or use other files, and may be set through the API. Default: none. */
  readonly safeFlags?: ReadonlySet<string>;
  readonly models: ModelFormat;
  /** Set if the program brings its models. Advertised only where its image is present. */
  readonly ownModels?: OwnModels;
  /** Called once if workloads run without containers. Only the result looks at the machine. */
  openProgram(host: ProgramHost): HostProgram;
  /** Judges each backend on this machine, the default first. Unknown hardware counts as present. Pure. */
  rankBackends(hardware: Machine | undefined): readonly BackendVerdict[];
  /** Returns device paths or CDI names of a backend. Pure. */
  devices(backend: Backend): readonly string[];
  /** Returns the environment of the server. The `[env]` of the slot takes precedence. Pure. */
  buildEnv(slot: SlotContext): Readonly<Record<string, string>>;
  /** Returns the command, starting with `program`; no shell is involved. Pure. */
  startCmd(slot: SlotContext): readonly [string, ...string[]];
  /** Estimates the memory demand before the start. Deterministic. Pure. */
  estimateMemory(name: SlotName, spec: SlotSpec, model: ModelFacts): MemoryDemand;
  /** Least total memory of a discrete device; undefined: any. Shared memory has no minimum. Default: any. Pure. */
  leastDeviceBytes?(name: SlotName, spec: SlotSpec, model: ModelFacts): number | undefined;
  /** Reason not to serve the model with settings that its server accepts, and the fix. Default: none. Pure. */
  objection?(name: SlotName, spec: SlotSpec, model: ModelFacts): string | undefined;
  /** Returns the capabilities in this slot, which may be fewer than its kind `serves`. Pure. */
  capabilities(name: SlotName, spec: SlotSpec, model: ModelFacts): readonly Capability[];
  /** Returns the voices in the order of the model, also while it is not loaded. Default: none. Pure. */
  voices?(model: ModelFacts): readonly Voice[];
  /** Whether requests bring a recording of the voice in `ref_audio`. Default: no. Pure. */
  imitates?(model: ModelFacts): boolean;
  /** Sends `GET` to `readyPath`, then the cheapest request that proves that the model works. */
  health(endpoint: Endpoint, io: ProbeIo, slot: Pick<SlotContext, 'name' | 'spec' | 'model'>, signal: AbortSignal): Promise<Health>;
  /**
   * Replaces `health` until a server passes for the first time; in a cluster, for each pod. Sends one request for each
   * capability at the same time and judges the results. Must never refuse a sound model. Default: `health`.
   */
  readiness?(endpoint: Endpoint, io: ProbeIo, slot: Pick<SlotContext, 'name' | 'spec' | 'model'>, signal: AbortSignal): Promise<Health>;
  /** Decides where the gateway forwards a request. `slot`: set where the request depends on the model. Pure. */
  infer(request: InferRequest, capabilities: readonly Capability[], slot?: ServedSlot): InferPlan;
}

export type ProviderRegistry = Readonly<Partial<Record<ProviderKind, Provider>>>;

/** Formats of all providers. A file that several recognise belongs to the first. Pure. */
export const modelFormats = (providers: ProviderRegistry): readonly ModelFormat[] => Object.values(providers).map(({ models }) => models);
