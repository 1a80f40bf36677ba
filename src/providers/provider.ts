/**
 * The provider contract. A provider knows one kind of inference server: how to start it, how to check its health, and which path serves
 * a request. It has no state and starts nothing itself. A new provider is a folder here and a line in `registry.ts`.
 */
import type { ModelId, SlotName } from '../schema/names.ts';
import type { Backend, Capability, ProviderKind } from '../schema/provider-kinds.ts';
import type { SlotSpec } from '../schema/slot-spec.ts';

/** Facts about a model in the store. */
export interface ModelFacts {
  readonly id: ModelId;
  /** Absolute path on the host of the file that the server loads. */
  readonly hostPath: string;
  readonly sizeBytes: number;
  /** GGUF `general.architecture`. */
  readonly architecture?: string | undefined;
  /** GGUF `<arch>.pooling_type`: 0 none, 1 mean, 2 cls, 3 last, 4 rank. */
  readonly poolingType?: number | undefined;
  /** Whether the file has a classifier head (`cls*` tensors). */
  readonly hasClassifier?: boolean;
  /** GGUF `<arch>.context_length`, in tokens. */
  readonly trainedContext?: number | undefined;
  readonly blockCount?: number | undefined;
  readonly embeddingLength?: number | undefined;
  readonly headCount?: number | undefined;
  /** The mean over all layers. */
  readonly headCountKv?: number | undefined;
  /** GGUF `<arch>.attention.key_length` and `value_length`. Default: the embedding length divided by the number of heads. */
  readonly keyLength?: number | undefined;
  readonly valueLength?: number | undefined;
  /** Absolute path on the host of the model's vision projector. */
  readonly projectorPath?: string | undefined;
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

/** Everything from which a provider may compute a workload. */
export interface SlotContext {
  readonly name: SlotName;
  readonly spec: SlotSpec;
  readonly model: ModelFacts;
  /** Path of the model as the server sees it (inside the container, or on the host). */
  readonly modelPath: string;
  /** Path of the vision projector as the server sees it. */
  readonly projectorPath?: string;
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

/** Performs the HTTP requests of health probes. Never throws. */
export interface ProbeIo {
  request(
    endpoint: Endpoint,
    options: {
      readonly method: 'GET' | 'POST';
      readonly path: string;
      readonly body?: string;
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
  | { readonly kind: 'failing'; readonly message: string };

/** The part of a client's request that determines where it is sent. */
export interface InferRequest {
  readonly method: string;
  /** The canonical path of the route, such as `/v1/rerankings` for all of its aliases. */
  readonly path: string;
  readonly capability: Capability;
}

export type InferPlan =
  /** Send the client's body unchanged to this path of the server. */
  | { readonly kind: 'forward'; readonly path: string }
  /** The model does not support the request; the client gets a 4xx with this message. */
  | { readonly kind: 'refuse'; readonly message: string };

export interface Provider {
  readonly kind: ProviderKind;
  /** The program in the toolbox image, and on the `PATH` of a host: `llama-server`. */
  readonly program: string;
  /** The port on which the server listens inside its container. */
  readonly containerPort: number;
  /**
   * `GET` on this path returns 200 as soon as the server accepts requests, and it is answered at once also while the server is busy, so that no answer means
   * that the server is frozen or gone. Probes of Kubernetes use it.
   */
  readonly readyPath: string;
  /**
   * Arguments that may be set through the API, because the server cannot load code or use other files with them. All others can be set only where slots are
   * declared. Default: none.
   */
  readonly safeFlags?: ReadonlySet<string>;
  /** Returns the devices that a backend needs, as paths or CDI names. Pure. */
  devices(backend: Backend): readonly string[];
  /** Returns the environment of the server; the caller adds the `[env]` of the slot, which takes precedence. Pure. */
  buildEnv(slot: SlotContext): Readonly<Record<string, string>>;
  /** Returns the command, starting with `program`. Each element is one argument; no shell is involved. Pure. */
  startCmd(slot: SlotContext): readonly [string, ...string[]];
  /** Returns the bytes that admission counts unless the spec sets more. Pure. */
  estimateMemoryBytes(spec: SlotSpec, model: ModelFacts): number;
  /** Returns what this model serves in this slot, which may be less than its kind `serves`. Pure. */
  capabilities(name: SlotName, spec: SlotSpec, model: ModelFacts): readonly Capability[];
  /**
   * Sends `GET` to `readyPath`, which a busy server answers and a frozen one does not, and then the cheapest request that shows that the model works, and not only that
   * the port is open.
   */
  health(endpoint: Endpoint, io: ProbeIo, slot: Pick<SlotContext, 'name' | 'spec' | 'model'>, signal: AbortSignal): Promise<Health>;
  /** Decides where the gateway forwards a request. Pure. */
  infer(request: InferRequest, capabilities: readonly Capability[]): InferPlan;
}

export type ProviderRegistry = Readonly<Partial<Record<ProviderKind, Provider>>>;
