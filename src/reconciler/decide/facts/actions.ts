/** Every action a plan may contain. `ActionArgs` is the one list: the action union and the executors derive from it. */
import type { Endpoint, ModelFacts } from '../../../providers/provider.ts';
import type { EvaluationReport } from '../../../evaluation/decide/evaluation-report.ts';
import type { Checks, Settlement, Verdict } from '../../../evaluation/decide/rollout-state.ts';
import type { Rules } from '../../../evaluation/decide/verdict.ts';
import type { Finding } from '../../../schema/words/failure.ts';
import type { ModelId, SlotName, WorkloadId } from '../../../schema/words/names.ts';
import type { EvaluationCase } from '../../../schema/slot/evaluation-case.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import type { ImageReference, PromptServer, Workload } from '../../ports.ts';
import type { PoolBytes } from './memory-pools.ts';

/** The operation that failed. `withdrawn`: admission let the workload start, and took its memory before it answered. */
export type AttemptKind = 'crash' | 'vanish' | 'apply' | 'pull-image' | 'pull-model' | 'start-timeout' | 'probe' | 'withdrawn';

/** A failure that stops a workload or counts. `drift`: altered from outside and replaced, counted as a repair. */
export interface Fault extends Finding {
  readonly kind: AttemptKind | 'drift';
  /** The host port of a workload that was never ready. */
  readonly port?: number | undefined;
}

/** The spec and model a workload was started with. Probes and memory use these, even if the slot has changed since. */
export interface Origin {
  readonly spec: SlotSpec;
  readonly model: ModelFacts;
  /** Memory reserved by admission, by pool. */
  readonly memory: PoolBytes;
}

/** `usedAt`: when its last request ended, in monotonic milliseconds. */
export type SavedServer = PromptServer & { readonly usedAt: number };

/** A server to be asked, as it was started. */
export interface AskedServer {
  readonly slot: SlotName;
  readonly workload: WorkloadId;
  readonly endpoints: readonly Endpoint[];
  readonly spec: SlotSpec;
  readonly model: ModelFacts;
}

/** A model that answers the cases of its slot. */
interface Evaluated extends AskedServer {
  /** `baseline`: the accepted one, with which a new one is compared. */
  readonly as: 'baseline' | 'candidate';
  readonly generation: number;
  readonly revision: string;
  readonly checks: Checks;
  readonly rules: Rules;
  /** What its verdict is if it fails. */
  readonly onFailure: Verdict['outcome'];
}

/** Asks one server of a slot for the answers to cases, whichever of its servers gets requests. */
export type Evaluation = (server: AskedServer, cases: readonly EvaluationCase[], signal: AbortSignal) => Promise<EvaluationReport>;

type Sleeper = AskedServer & { readonly withinMs: number };

export interface ActionArgs {
  pullImage: { readonly image: ImageReference };
  pullModel: { readonly model: ModelId };
  /** Ends a pull that no slot needs any more. */
  cancelPull: { readonly key: string };
  apply: {
    readonly workload: Workload;
    readonly origin: Origin;
    /** The workload to update in place; undefined: start a new one. `altered`: from outside, so this is a repair. */
    readonly updatesInPlace?: { readonly workload: WorkloadId; readonly altered: boolean };
  };
  /** Puts a server to sleep that gets no requests. */
  sleep: Sleeper;
  /** `memory`: what it takes in addition. */
  wake: Sleeper & { readonly memory: PoolBytes };
  /** Asks a server for the answers to the cases, and settles the verdict. */
  evaluate: Evaluated;
  /** Tells the source of the slot which of its texts counts. */
  settle: { readonly settlement: Settlement };
  /** Counts the requests of clients that the gateway does not know. */
  countRequests: AskedServer;
  probe: AskedServer & {
    /** How long to keep trying until it passes; 0: try once. */
    readonly patienceMs: number;
    /** Start of the wait for the first pass, in monotonic milliseconds; pauses between attempts grow with this age. */
    readonly since: number;
    /** Endpoints that have passed before; any other endpoint gets the readiness check. */
    readonly passedEndpoints: readonly Endpoint[];
    /** It has passed before: no answer then means frozen, not starting. */
    readonly passed: boolean;
    /** Whether the model is queried even if the endpoint has passed before. */
    readonly asksModel: boolean;
    /** Set where prompts are restored once it passes. */
    readonly restores?: PromptServer | undefined;
    /** Set where prompts are saved before, because the probe takes their place in the server. */
    readonly saves?: SavedServer | undefined;
  };
  /** Counts a crash of a workload that its runtime restarts automatically. */
  noteCrash: {
    readonly slot: SlotName;
    readonly workload: WorkloadId;
    readonly exitId: string;
    /** Undefined where the crash does not count against the slot. */
    readonly failure: Finding | undefined;
    /** False where the crash completes a crash loop, so that the workload is about to be stopped. */
    readonly startsAgain: boolean;
  };
  stop: {
    readonly slot: SlotName;
    readonly workload: WorkloadId;
    readonly graceMs: number;
    /** The drain time is over: end its requests first. */
    readonly abort: boolean;
    /** Set where the workload is stopped for a fault of its own, which is recorded once, with its last log lines. */
    readonly failure: Fault | undefined;
    /** Set where its prompts are saved before. */
    readonly saves?: SavedServer | undefined;
  };
}

export type ActionName = keyof ActionArgs;

export type Action = {
  [Name in ActionName]: {
    readonly name: Name;
    readonly args: ActionArgs[Name];
    readonly because: Finding;
    readonly slot: SlotName;
    /** Key of the caller whose request loads the slot, or another one that this one gives way to. */
    readonly causedBy?: string | undefined;
  };
}[ActionName];

/** Whether only the leader may execute it. */
export const changesWorld = ({ name }: Action): boolean => name !== 'probe' && name !== 'noteCrash' && name !== 'countRequests';

export type Pull = Extract<Action, { name: 'pullImage' | 'pullModel' }>;
export const isPull = (action: Action): action is Pull => action.name === 'pullImage' || action.name === 'pullModel';

/** Two actions with the same key never run at the same time. */
export function keyOfAction(action: Action): string {
  switch (action.name) {
    case 'pullImage':
      return pullImageKey(action.args.image);
    case 'pullModel':
      return pullModelKey(action.args.model);
    case 'cancelPull':
      return `cancelPull:${action.args.key}`;
    case 'apply':
      return applyKey(action.args.workload.slot);
    case 'sleep':
    case 'wake':
      return sleepKey(action.args.workload);
    case 'evaluate':
      return evaluateKey(action.slot);
    case 'settle':
      return settleKey(action.slot);
    case 'countRequests':
      return countKey(action.args.workload);
    case 'probe':
      return probeKey(action.args.workload);
    case 'noteCrash':
      return noteCrashKey(action.args.workload);
    case 'stop':
      return stopKey(action.args.workload);
    default:
      return action satisfies never;
  }
}

export const pullImageKey = (image: ImageReference): string => `pullImage:${image.reference}`;
export const pullModelKey = (model: ModelId): string => `pullModel:${model}`;
export const probeKey = (workload: WorkloadId): string => `probe:${workload}`;
export const sleepKey = (workload: WorkloadId): string => `sleep:${workload}`;
export const evaluateKey = (slot: SlotName): string => `evaluate:${slot}`;
export const settleKey = (slot: SlotName): string => `settle:${slot}`;
export const countKey = (workload: WorkloadId): string => `countRequests:${workload}`;
export const noteCrashKey = (workload: WorkloadId): string => `noteCrash:${workload}`;
export const applyKey = (slot: SlotName): string => `apply:${slot}`;
export const stopKey = (workload: WorkloadId): string => `stop:${workload}`;
