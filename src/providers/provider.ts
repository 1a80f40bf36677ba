/**
 * The provider contract. A provider knows one kind of inference server: how to start it, how to see that it answers, and
 * where a request goes. It holds no state and starts nothing. A new provider is one folder here and one line in `registry.ts`.
 */
import type { ModelId, SlotName } from '../schema/names.ts';
import type { Backend, Capability, ProviderKind } from '../schema/provider-kinds.ts';
import type { SlotSpec } from '../schema/slot-spec.ts';

/** What is known of a model that lies in the store. */
export interface ModelFacts {
  readonly id: ModelId;
  /** Absolute path on the host of the file the server is given. */
  readonly hostPath: string;
  readonly sizeBytes: number;
  /** GGUF `general.architecture`, when it is a GGUF file that could be read. */
  readonly architecture?: string;
  /** GGUF `<arch>.pooling_type`: 0 none, 1 mean, 2 cls, 3 last, 4 rank. */
  readonly poolingType?: number;
  /** Whether the file carries a classifier head (`cls*` tensors). */
  readonly hasClassifier?: boolean;
  /** GGUF `<arch>.context_length`, in tokens. */
  readonly trainedContext?: number;
  readonly blockCount?: number;
  readonly embeddingLength?: number;
  readonly headCount?: number;
  /** The mean over the layers, where they differ. */
  readonly headCountKv?: number;
  /** GGUF `<arch>.attention.key_length` and `value_length`; default: the embedding's length over the number of heads. */
  readonly keyLength?: number;
  readonly valueLength?: number;
  /** Absolute host path of a vision projector that lies beside the model. */
  readonly projectorPath?: string;
}

/** Everything a provider may look at to compute a workload. */
export interface SlotContext {
  readonly name: SlotName;
  readonly spec: SlotSpec;
  readonly model: ModelFacts;
  /** The model's path as the server will see it (inside the container, or on the host). */
  readonly modelPath: string;
  /** As `ModelFacts.projectorPath`, as the server will see it. */
  readonly projectorPath?: string;
  /** Where the server must listen. */
  readonly listen: { readonly host: string; readonly port: number };
}

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** The I/O a health probe may do: one bounded HTTP exchange. Never throws; `status` 0 says that no answer came. */
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
  ): Promise<{ readonly status: number; readonly body: string; readonly error?: string }>;
}

export type Health =
  | { readonly kind: 'passing' }
  /** Alive, not yet able to answer. */
  | { readonly kind: 'loading'; readonly message: string }
  | { readonly kind: 'failing'; readonly message: string };

/** The part of a client's request that may decide where it goes. */
export interface InferRequest {
  readonly method: string;
  /** The route's canonical path: `/v1/rerankings` for each of its aliases. */
  readonly path: string;
  readonly capability: Capability;
}

export type InferPlan =
  /** Send the client's bytes untouched to this path of the upstream. */
  | { readonly kind: 'forward'; readonly path: string }
  /** This model cannot do that, and why: becomes a clear 4xx. */
  | { readonly kind: 'refuse'; readonly message: string };

/** What the slot can do with the model it has: narrower than the kind's `serves`. */
export interface Provider {
  readonly kind: ProviderKind;
  /** The program of the toolbox image and of the host's PATH: `llama-server`. */
  readonly program: string;
  /** The port the server listens on inside its container. */
  readonly containerPort: number;
  /** `GET` on this path answers 200 as soon as the server takes requests: what a cluster's own probes ask. */
  readonly readyPath: string;
  /** The device nodes a backend needs, as paths or CDI names. Pure. */
  devices(backend: Backend): readonly string[];
  /** The environment of the server. Pure; the slot's own `[env]` is laid over it by the caller. */
  buildEnv(slot: SlotContext): Readonly<Record<string, string>>;
  /** The argument vector, `program` first. Pure; each element one argument, never a shell string. */
  startCmd(slot: SlotContext): readonly [string, ...string[]];
  /** What admission counts when the spec names no more, in bytes. Pure. */
  estimateMemoryBytes(spec: SlotSpec, model: ModelFacts): number;
  /** What this model in this slot serves. Pure. */
  capabilities(name: SlotName, spec: SlotSpec, model: ModelFacts): readonly Capability[];
  /** The cheapest request that shows that the model answers, not only that the port does. */
  health(endpoint: Endpoint, io: ProbeIo, slot: Pick<SlotContext, 'name' | 'spec' | 'model'>, signal: AbortSignal): Promise<Health>;
  /** The request path the dispatcher proxies to. Pure. */
  infer(request: InferRequest, capabilities: readonly Capability[]): InferPlan;
}

export type ProviderRegistry = Readonly<Partial<Record<ProviderKind, Provider>>>;
