/**
 * The provider contract. A provider knows one kind of inference server: how to start it, how to check its health, and which path serves
 * a request. It has no state and starts nothing itself. A new provider is a folder here and a line in `registry.ts`.
 */
import type { Result } from '../schema/words/failure.ts';
import type { Machine, ProgramBackends } from '../schema/status/hardware.ts';
import type { ModelAbility, Backend, Capability, ProviderKind } from '../schema/slot/provider-kinds.ts';
import type { ModelId, SlotName } from '../schema/words/names.ts';
import type { SlotSpec } from '../schema/slot/slot-spec.ts';
import type { OwnModels } from './own-models.ts';
import type { Translate } from './translation.ts';

/** What the files of a model say, in the terms of its provider: plain data, compared by value. Nobody but that provider reads it. */
export type ModelContents = Readonly<Record<string, unknown>>;

/** What the contents of a model say, for users, in terms that do not depend on the provider. What is not known is absent. */
export interface ModelTraits {
  /** How its weights are stored, as the names of files have it: `Q4_K_M`. */
  readonly quantization?: string | undefined;
  /** Number of weights. */
  readonly parameters?: number | undefined;
  /** Longest context that it was trained for, in tokens. */
  readonly context?: number | undefined;
  /** How it makes one vector of those of its tokens, or scores: `mean`. */
  readonly pooling?: string | undefined;
  /** Of a mixture of experts: how many there are, and how many of them compute a token. */
  readonly experts?: { readonly total: number; readonly active: number | undefined } | undefined;
  /** Undefined if that is not known; empty if it has none. */
  readonly abilities?: readonly ModelAbility[] | undefined;
}

/** Facts about a model in the store. */
export interface ModelFacts {
  readonly id: ModelId;
  /** Absolute path on the host of the file, or of the directory, that the server loads. Of an own model of a provider: its name. */
  readonly hostPath: string;
  readonly sizeBytes: number;
  /** Whose model it is. Undefined if no provider knows files like these, or if they cannot be read from here. */
  readonly provider?: ProviderKind | undefined;
  /** Undefined if it is not known. A provider must cope with what is missing in it, and with models of other providers. */
  readonly contents?: ModelContents | undefined;
  /** What kind of model it is, for lists: `llama`. */
  readonly family?: string | undefined;
  /** Set where the pods of a cluster fetch the model: its files are then those of this pin. */
  readonly pinnedBy?: PinReference | undefined;
}

/** Where the list of the files of a model is kept that others fetch. */
export interface PinReference {
  /** Name of the object that has it. */
  readonly object: string;
  /** Another digest is another version of the model. */
  readonly digest: string;
}

/** A file or a directory of the store that may be a model. */
export interface StoreEntry {
  /** Without the directory it is in. */
  readonly name: string;
  /** What is in the directory; undefined for a file. */
  readonly names?: readonly string[] | undefined;
}

/**
 * Reads the files of one model: those in its directory, if the model is one, otherwise those beside it. Names are relative to that directory. A file that is missing or
 * cannot be read, or that leads out of the store, rejects; so does reading far more than any model needs. The caller of the provider says what was wrong with which file.
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
      /** Of all files that the server loads. */
      readonly sizeBytes: number;
      readonly contents: ModelContents;
      readonly family?: string | undefined;
    }
  /** It is not complete, damaged, or not a model. The message names the file, and says what to do. */
  | { readonly kind: 'unusable'; readonly message: string };

/** How the models of a provider look on disk, and what their files say. */
export interface ModelFormat {
  readonly kind: ProviderKind;
  /** `model`: a user may name it. `part`: belongs to such a model. Undefined: not of this provider. Pure. */
  recognize(entry: StoreEntry): 'model' | 'part' | undefined;
  /** Returns the names of all files of the model that a user means with the name of one file. Pure. */
  filesOf(name: string): readonly string[];
  /** Reads a model that `recognize` knows, only through `files`. The result is remembered until one of the files that were looked at has changed. */
  read(model: { readonly id: ModelId; readonly entry: StoreEntry }, files: ModelFiles): Promise<ModelReading>;
  /**
   * Returns the contents of a model whose files cannot be read from here: what the catalogue states, with what the names of its files tell. The first file is the one
   * that the server loads; all are relative to the root of the store. Pure.
   */
  contentsFrom(stated: ModelContents | undefined, files: readonly string[]): ModelContents | undefined;
  /** Whether a model of this name can only be served by a gateway that has read its file. Default: no model is so. Pure. */
  mustBeRead?(name: string): boolean;
  /** Returns what these contents say to users. They may come from another version, so anything may be missing or odd. Default: nothing. Pure. */
  describe?(contents: ModelContents): ModelTraits;
}

/** The memory that a server needs. On machines where both are one memory, it is their sum that counts. */
export interface MemoryDemand {
  /** Bytes of the memory of the host. */
  readonly hostBytes: number;
  /** Bytes of the memory of its devices, over all of them. 0 where it computes with the CPU only. */
  readonly deviceBytes: number;
}

/** Everything from which a provider may compute a workload. */
export interface SlotContext {
  readonly name: SlotName;
  readonly spec: SlotSpec;
  readonly model: ModelFacts;
  /** Path of the model as the server sees it (inside the container, or on the host). */
  readonly modelPath: string;
  /** Where the server must listen. */
  readonly listen: Endpoint;
}

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

export interface ProbeResponse {
  /** 0 if there was no response. */
  readonly status: number;
  readonly body: string;
  readonly error?: string;
}

/** A voice of a model that speaks. */
export interface Voice {
  /** As requests name it. */
  readonly id: string;
  /** A BCP 47 tag: `en-us`. Undefined if the model does not say it. */
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
      /** Of the body. Default: JSON. */
      readonly contentType?: string;
      readonly timeoutMs: number;
      readonly signal: AbortSignal;
    },
  ): Promise<ProbeResponse>;
}

export type Health =
  | { readonly kind: 'passing' }
  /** It answers, but its model does not: it is loading, or busy with other requests. */
  | { readonly kind: 'loading'; readonly message: string }
  /** Not even the cheapest request was answered: nothing listens, or the process is frozen. */
  | { readonly kind: 'silent'; readonly message: string }
  | { readonly kind: 'failing'; readonly message: string }
  /** It answers, and what its model computed cannot come from a sound model. Only `readiness` finds this. */
  | { readonly kind: 'nonsense'; readonly message: string };

/** The part of a client's request that determines where it is sent. */
export interface InferRequest {
  readonly method: string;
  /** The canonical path of the route, such as `/v1/rerankings` for all of its aliases. */
  readonly path: string;
  readonly capability: Capability;
}

/** The slot that a request goes to. */
export interface ServedSlot {
  readonly spec: SlotSpec;
  /** The model that its server was started for; undefined if that is not known. */
  readonly model: ModelFacts | undefined;
}

export type InferPlan =
  /** Send the client's body unchanged to this path of the server. */
  | { readonly kind: 'forward'; readonly path: string }
  /**
   * The server does not know the shape of the request: run this translation. The body is read completely before; one of JSON has at most `maxJsonBytes` (default 1 MiB),
   * a form as many bytes as any upload.
   */
  | { readonly kind: 'translate'; readonly run: Translate; readonly maxJsonBytes?: number }
  /** The model does not support the request; the client gets a 4xx with this message. */
  | { readonly kind: 'refuse'; readonly message: string };

/** Whether this machine can run a backend. */
export interface BackendVerdict {
  readonly backend: Backend;
  /** Why it cannot: a clause, such as `this machine has no NVIDIA device`. Undefined: it can, or that is not known. */
  readonly missing?: string | undefined;
}

/** What a provider may use of a machine to find its program, or to install it. */
export interface ProgramHost {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Absolute path of the state directory of the service. A provider may create one directory in it, with a name of its own. */
  readonly stateDir: string;
  /** Called with a message when something takes long. */
  readonly onProgress: (message: string) => void;
}

/** The program of a provider on a machine where it runs without a container. */
export interface HostProgram {
  /** Returns its path, and the arguments that come first. May install it, which may take minutes. Fails with reason `ProgramMissing`, and says what to install. */
  resolve(signal: AbortSignal): Promise<Result<readonly [string, ...string[]]>>;
  /** Returns what `resolve` would use, without installing anything. Fails as `resolve` would. */
  describe(): Promise<
    Result<{
      /** For messages: `"/usr/bin/llama-server"`. */
      readonly name: string;
      /** What `resolve` would install first: a clause. */
      readonly installs?: string;
    }>
  >;
  /** Asks the program what it can compute with; undefined if it does not say. `devices` is a text that changes whenever the devices of the machine do. Default: it does not say. */
  reportBackends?(devices: string): Promise<ProgramBackends | undefined>;
}

export interface Provider {
  readonly kind: ProviderKind;
  /** The program in the toolbox image, and on a machine without containers: `llama-server`. No two providers have the same one. */
  readonly program: string;
  /** Image from a folder in `toolboxes/`, shared by providers that name it; `byBackend`: one for each. Default: none. */
  readonly toolbox?: { readonly folder: string; readonly backends: readonly Backend[]; readonly byBackend?: true };
  /** The port on which the server listens inside its container. */
  readonly containerPort: number;
  /**
   * `GET` on this path returns 200 as soon as the server accepts requests, and it is answered at once also while the server is busy, so that no answer means
   * that the server is frozen or gone. Probes of Kubernetes use it, and those of gateways that do not lead.
   */
  readonly readyPath: string;
  /**
   * Arguments that may be set through the API, because the server cannot load code or use other files with them. All others can be set only where slots are
   * declared. Default: none.
   */
  readonly safeFlags?: ReadonlySet<string>;
  readonly models: ModelFormat;
  /**
   * Set if no file of the store is a model of this provider: its program lists them, its image contains them, and its containers do not see the store. It is advertised only
   * where its image is on the machine. Default: its models are in the store.
   */
  readonly ownModels?: OwnModels;
  /** Called once, if workloads run without containers. Only what it returns looks at the machine. */
  openProgram(host: ProgramHost): HostProgram;
  /**
   * Judges each backend of its kind on this machine: the one that a slot gets that names none first. What is not known of the machine counts as there; what `reportBackends`
   * has said is in `hardware.programs`. Pure.
   */
  rankBackends(hardware: Machine | undefined): readonly BackendVerdict[];
  /** Returns the devices that a backend needs, as paths or CDI names. Pure. */
  devices(backend: Backend): readonly string[];
  /** Returns the environment of the server; the caller adds the `[env]` of the slot, which takes precedence. Pure. */
  buildEnv(slot: SlotContext): Readonly<Record<string, string>>;
  /** Returns the command, starting with `program`. Each element is one argument; no shell is involved. Pure. */
  startCmd(slot: SlotContext): readonly [string, ...string[]];
  /** Returns what the server of a slot needs, computed before it is started; its backend is known. The same for the same arguments. Pure. */
  estimateMemory(name: SlotName, spec: SlotSpec, model: ModelFacts): MemoryDemand;
  /**
   * Returns how much memory a discrete device of the machine must have in total, in use or not, for this model to run at all; undefined if any will do. With devices that
   * share the memory of the host, nothing is required. Default: any will do. Pure.
   */
  leastDeviceBytes?(name: SlotName, spec: SlotSpec, model: ModelFacts): number | undefined;
  /**
   * Returns why this model must not be served with these settings, although the server would accept them, and what to do: a message. Undefined: it may be. Default: any
   * may be. Pure.
   */
  objection?(name: SlotName, spec: SlotSpec, model: ModelFacts): string | undefined;
  /** Returns what this model serves in this slot, which may be less than its kind `serves`. Pure. */
  capabilities(name: SlotName, spec: SlotSpec, model: ModelFacts): readonly Capability[];
  /** Returns the voices of a model that speaks, in its own order: what clients may choose from, also while the model is not loaded. Default: none. Pure. */
  voices?(model: ModelFacts): readonly Voice[];
  /** Whether the model speaks with the voice of a recording that comes with each request, in `ref_audio`. Default: no. Pure. */
  imitates?(model: ModelFacts): boolean;
  /**
   * Sends `GET` to `readyPath`, which a busy server answers and a frozen one does not, and then the cheapest request that shows that the model works, and not only that
   * the port is open.
   */
  health(endpoint: Endpoint, io: ProbeIo, slot: Pick<SlotContext, 'name' | 'spec' | 'model'>, signal: AbortSignal): Promise<Health>;
  /**
   * Asked instead of `health` until a server has passed once, so once for each start of a server, and in a cluster for each pod. Sends one request for each thing that the
   * slot serves, at the same time, and judges what the model computed. It must never refuse a sound model. Default: `health`.
   */
  readiness?(endpoint: Endpoint, io: ProbeIo, slot: Pick<SlotContext, 'name' | 'spec' | 'model'>, signal: AbortSignal): Promise<Health>;
  /** Decides where the gateway forwards a request. `slot`: where what is sent to the server depends on its model. Pure. */
  infer(request: InferRequest, capabilities: readonly Capability[], slot?: ServedSlot): InferPlan;
}

export type ProviderRegistry = Readonly<Partial<Record<ProviderKind, Provider>>>;
