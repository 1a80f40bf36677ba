/** The contract of providers: no state, nothing that they start. A new one is a folder and a line of the registry. */
import type { Machine } from '../schema/status/hardware.ts';
import type { EngineDefinition } from '../schema/slot/engine-document.ts';
import type { ModelAbility, Backend, Capability, ChatAbilities, ProviderKind } from '../schema/slot/provider-kinds.ts';
import type { ModelId, SlotName } from '../schema/words/names.ts';
import type { SlotSpec } from '../schema/slot/slot-spec.ts';
import type { ExpressedKeys, HostProgram, ProgramHelp, ProgramHost, ProgramOptions } from './provider-program.ts';
import type { Endpoint, ProbeIo, ProbeResponse, ServerAbilities } from './provider-servers.ts';
import type { Translate } from './translation.ts';

export type { ExpressedKeys, HostProgram, ProgramHelp, ProgramHost, ProgramOptions };
export type { Endpoint, ProbeIo, ProbeResponse };

/** Contents of a model's files in terms of its provider: plain data, compared by value, read only by its provider. */
export type ModelContents = Readonly<Record<string, unknown>>;

export interface ModelTraits {
  /** Quantisation as written in file names, e.g. `Q4_K_M`. */
  readonly quantization?: string | undefined;
  readonly parameters?: number | undefined;
  readonly context?: number | undefined;
  /** Length of its embeddings. */
  readonly dimensions?: number | undefined;
  /** How token vectors become one vector or score, e.g. `mean`. */
  readonly pooling?: string | undefined;
  /** Mixture of experts, per token. */
  readonly experts?: { readonly total: number; readonly active: number | undefined } | undefined;
  readonly abilities?: readonly ModelAbility[] | undefined;
}

export interface ModelFacts {
  readonly id: ModelId;
  /** Absolute host path of the file or directory that the server loads; the name of a provider's own model. */
  readonly hostPath: string;
  /** Undefined where the files cannot be read, as in a gateway that does not mount them. */
  readonly sizeBytes?: number | undefined;
  /** Undefined if no provider recognises the files, or if they cannot be read from here. */
  readonly provider?: ProviderKind | undefined;
  /** Undefined: unknown. Providers must tolerate missing fields and models of other providers. */
  readonly contents?: ModelContents | undefined;
  readonly family?: string | undefined;
  /** Changes when its files are replaced. Undefined: unknown. */
  readonly version?: string | undefined;
  /** Set where pods of a cluster fetch the model: the pin that lists its files. */
  readonly pinnedBy?: PinReference | undefined;
  /** Set where its server loads more models, such as adapters: with their paths in the workload. */
  readonly companions?: readonly ModelFacts[];
}

export type Sized<Model extends Pick<ModelFacts, 'sizeBytes'> = ModelFacts> = Model & { readonly sizeBytes: number };

export interface PinReference {
  readonly object: string;
  /** Changes with each version of the model. */
  readonly digest: string;
}

export type StoreEntry = Readonly<{ name: string; names?: readonly string[] | undefined }>;

/**
 * The files in the directory of a model or, if it is a file, those beside it; names are relative to that directory.
 * Rejects for files that are missing, unreadable or outside the store, and for reading far more than any model needs.
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
      readonly sizeBytes: number;
      readonly contents: ModelContents;
      readonly family?: string | undefined;
    }
  /** Incomplete, damaged or not a model. The message names the file and says what to do. */
  | { readonly kind: 'unusable'; readonly message: string };

export interface ModelFormat {
  readonly kind: ProviderKind;
  /** `model`: users may name it. `part`: belongs to a model. Undefined: not of this provider. Pure. */
  recognize(entry: StoreEntry): 'model' | 'part' | undefined;
  /** Names of all files of a model, such as its shards. Default: the one file. Pure. */
  filesOf?(name: string): readonly string[];
  /** Reads a recognised model, only through `files`. Remembered until a file that was looked at changes. */
  read(model: { readonly id: ModelId; readonly entry: StoreEntry }, files: ModelFiles): Promise<ModelReading>;
  /** Contents stated by the catalogue, completed by file names relative to the store; the first is loaded. Pure. */
  contentsFrom(stated: ModelContents | undefined, files: readonly string[]): ModelContents | undefined;
  /** Whether only a gateway that has read the file can serve the model. Default: never. Pure. */
  mustBeRead?(name: string): boolean;
  describe?(contents: ModelContents): ModelTraits;
}

/** With unified memory, the sum counts. */
export interface MemoryDemand {
  readonly hostBytes: number;
  readonly deviceBytes: number;
}

/** A server that the CPU helps, for a model that does not fit on the devices. */
export interface MemorySplit {
  readonly demand: MemoryDemand;
  /** Variables with which it is started so; also seen by `startCmd`. */
  readonly env: Readonly<Record<string, string>>;
  /** What the CPU computes, as a clause: `12 of 48 layers`. */
  readonly onHost: string;
}

export interface SlotContext {
  readonly name: SlotName;
  readonly spec: SlotSpec;
  readonly model: ModelFacts;
  readonly modelPath: string;
  readonly listen: Endpoint;
  /** The environment of the server, where it is decided. */
  readonly env?: Readonly<Record<string, string>>;
  /** Flags of the program, where they are known. No part of a revision: an update of the program restarts nothing. */
  readonly options?: ProgramOptions;
}

export interface Voice {
  readonly id: string;
  /** BCP 47 tag, e.g. `en-us`. Undefined: unknown. */
  readonly language?: string | undefined;
}

export type AskHealth = (
  endpoint: Endpoint,
  io: ProbeIo,
  slot: Pick<SlotContext, 'name' | 'spec' | 'model'>,
  signal: AbortSignal,
) => Promise<Health>;

export type Health =
  | { readonly kind: 'passing' }
  /** It was put to sleep, answers no request of its model, and can be woken. */
  | { readonly kind: 'asleep'; readonly message: string }
  /** The server answers, its model does not: loading, or busy with other requests. */
  | { readonly kind: 'loading'; readonly message: string }
  /** Not even the cheapest request is answered: nothing listens, or the process is frozen. */
  | { readonly kind: 'silent'; readonly message: string }
  | { readonly kind: 'failing'; readonly message: string }
  /** No sound model computes such an answer. Only `readiness` finds this. */
  | { readonly kind: 'nonsense'; readonly message: string };

export interface InferRequest {
  readonly method: string;
  /** Canonical path of the route, e.g. `/v1/rerankings` for all of its aliases. */
  readonly path: string;
  readonly capability: Capability;
}

export type ServedSlot = { readonly spec: SlotSpec; readonly model: ModelFacts | undefined };

/** An error that a client can fix, so it is answered with 400, whatever the status of the server. */
export interface ClientMistake {
  /** Beginning of the message, or the whole type, as the server writes them. */
  readonly message?: RegExp;
  readonly type?: string;
  readonly code: string;
}

export type InferPlan =
  /** Send the body unchanged to this path of the server. `mistakes`: errors of the server that its client made. */
  | { readonly kind: 'forward'; readonly path: string; readonly mistakes?: readonly ClientMistake[] }
  /** Run this translation after the body was read. `maxJsonBytes` limits JSON, not forms. Default: 1 MiB. */
  | { readonly kind: 'translate'; readonly run: Translate; readonly maxJsonBytes?: number; readonly mistakes?: readonly ClientMistake[] }
  | { readonly kind: 'refuse'; readonly message: string };

export interface BackendVerdict {
  readonly backend: Backend;
  /** Reason why the machine cannot run it, as a clause: `this machine has no NPU`. Undefined: it can, or unknown. */
  readonly missing?: string | undefined;
}

/** How a server saves the prompts that it has computed, and restores them: one file for each of its places. */
export interface PromptCache {
  /** The variable that names the directory of the files. A server that does not know it ignores it. */
  readonly variable: string;
  /** Whether the server of this slot has prompts to keep, and its own settings do not say where. Pure. */
  appliesTo(name: SlotName, spec: SlotSpec, model: ModelFacts): boolean;
  /** Returns what tells builds apart, and the number of places; undefined if the server cannot say. */
  identify(endpoint: Endpoint, io: ProbeIo, signal: AbortSignal): Promise<PromptIdentity | undefined>;
  /** `file`: a name in the directory. `problem` continues a sentence. */
  move(endpoint: Endpoint, io: ProbeIo, what: PromptMove, signal: AbortSignal): Promise<PromptMoved>;
}

type PromptMove = Pick<Parameters<ProbeIo['request']>[1], 'timeoutMs'> &
  Readonly<{ direction: 'save' | 'restore'; place: number; file: string }>;
/** `problem`: why it does not answer. */
type PromptIdentity = Readonly<{ build: string; places: number } | { problem: string }>;
type PromptMoved = { readonly ok: true; readonly tokens: number } | { readonly ok: false; readonly problem: string };

/** Model of a program or its toolbox image: named there, without a file in the store. */
export interface OwnModel extends Pick<Sized, 'id' | 'sizeBytes' | 'family'> {
  readonly contents: ModelContents;
  /** Reason why it cannot be served, and the fix. Undefined: it can. */
  readonly missing?: string | undefined;
}

export interface OwnModels {
  /** Arguments with which the program prints its list and exits, also on a machine without its device. */
  readonly listArguments: readonly string[];
  parse(output: string): readonly OwnModel[] | undefined;
}

export interface Provider extends ServerAbilities {
  readonly kind: ProviderKind;
  /** Set for a declared engine. */
  readonly engine?: EngineDefinition;
  /** Its images by backend. Default: as the manifest of toolboxes says. */
  readonly images?: Readonly<Partial<Record<Backend, string>>>;
  /** Program in the toolbox image and on a machine without containers, e.g. `llama-server`. Unique per provider. */
  readonly program: string;
  /** A folder in `toolboxes/`, shared by providers that name it; `byBackend`: one image for each. Default: none. */
  readonly toolbox?: { readonly folder: string; readonly backends: readonly Backend[]; readonly byBackend?: true };
  readonly containerPort: number;
  /** `GET` returns 200 once the server accepts requests, also while busy: no response means frozen or gone. */
  readonly readyPath: string;
  /** Paths of its servers that are no part of OpenAI's API: path here → path there. Default: none. */
  readonly nativePaths?: Readonly<Record<string, string>>;
  /** Arguments that cannot load code or use other files, and may be set through the API. Default: none. */
  readonly safeFlags?: ReadonlySet<string>;
  /** Default: the program is not asked for its flags. */
  readonly help?: ProgramHelp;
  /** Default: its slots have no keys that become flags. */
  readonly keys?: ExpressedKeys<Sized>;
  readonly models: ModelFormat;
  /** Whether its server loads a model that is here. Default: those of its own kind, and unknown ones. Pure. */
  accepts?(model: ModelFacts): boolean;
  /** Its server fetches the models by name, so they are not looked up in the store. Default: no. */
  readonly fetchesModels?: true;
  /** Its servers run on other machines: they take no image and no memory here. Default: no. */
  readonly runsElsewhere?: true;
  readonly ownModels?: OwnModels;
  /** Called once if workloads run without containers. Only the result looks at the machine. */
  openProgram(host: ProgramHost): HostProgram;
  /** Judges each backend on this machine, the default first. Unknown hardware counts as present. Pure. */
  rankBackends(hardware: Machine | undefined): readonly BackendVerdict[];
  /** Returns device paths or CDI names of a backend. Pure. */
  devices(backend: Backend): readonly string[];
  /** Returns the environment of the server. The `[env]` of the slot takes precedence. Pure. */
  buildEnv(slot: SlotContext): Readonly<Record<string, string>>;
  /** Variables that earlier versions did not set; a pod without them serves the same. Default: none. Pure. */
  addedVariables?(spec: SlotSpec): readonly string[];
  /** Returns the command, starting with `program`; no shell is involved. Pure. */
  startCmd(slot: SlotContext): readonly [string, ...string[]];
  estimateMemory(name: SlotName, spec: SlotSpec, model: Sized): MemoryDemand;
  /** Servers with less on devices, the fastest first, where the slot allows them. Default: none. Pure. */
  splits?(name: SlotName, spec: SlotSpec, model: Sized): readonly MemorySplit[];
  /** Least total memory of a discrete device; undefined: any. Shared memory has no minimum. Default: any. Pure. */
  leastDeviceBytes?(name: SlotName, spec: SlotSpec, model: ModelFacts): number | undefined;
  /** Reason not to serve the model with settings that its server accepts, and the fix. Default: none. Pure. */
  objection?(name: SlotName, spec: SlotSpec, model: ModelFacts): string | undefined;
  /** Returns the capabilities in this slot, which may be fewer than its kind `serves`. Pure. */
  capabilities(name: SlotName, spec: SlotSpec, model: ModelFacts): readonly Capability[];
  /** Returns what chats of this slot may use. Default: unknown. Pure. */
  abilities?(name: SlotName, spec: SlotSpec, model: ModelFacts): ChatAbilities;
  /** Returns the voices in the order of the model, also while it is not loaded. Default: none. Pure. */
  voices?(model: ModelFacts): readonly Voice[];
  /** Whether requests bring a recording of the voice in `ref_audio`. Default: no. Pure. */
  imitates?(model: ModelFacts): boolean;
  /** Default: its servers cannot save what they have computed. */
  readonly promptCache?: PromptCache;
  /** Sends `GET` to `readyPath`, then the cheapest request that proves that the model works. */
  readonly health: AskHealth;
  /**
   * Replaces `health` until a server, in a cluster each pod, passes for the first time. Asks for each capability and
   * judges the results. Must never refuse a sound model. Default: `health`.
   */
  readonly readiness?: AskHealth;
  /** Decides where the gateway forwards a request. `slot`: set where the request depends on the model. Pure. */
  infer(request: InferRequest, capabilities: readonly Capability[], slot?: ServedSlot): InferPlan;
}

/** Built-in providers, and the declared engines as they are now: looked up by each use, and not copied. */
export type ProviderRegistry = Readonly<Record<ProviderKind, Provider>>;

/** A model that cannot be served. */
export const unusable = (message: string): ModelReading => ({ kind: 'unusable', message });
