/** What a plan may ask for. `ActionArgs` is the one list: the action union and the executors derive from it. */
import type { Endpoint, ModelFacts } from '../../../providers/provider.ts';
import type { ModelId, SlotName, WorkloadId } from '../../../schema/names.ts';
import type { SlotSpec } from '../../../schema/slot-spec.ts';
import type { ImageReference, Workload } from '../../ports.ts';
import type { Fault, Finding, Origin } from './finding.ts';

export interface ActionArgs {
  pullImage: { readonly image: ImageReference };
  pullModel: { readonly model: ModelId };
  /** Ends a pull that nobody wants any more. */
  cancelPull: { readonly key: string };
  apply: {
    readonly workload: Workload;
    readonly origin: Origin;
    /** What it inPlace in place; undefined: it starts something. */
    readonly inPlace?: { readonly workload: WorkloadId; /** It was altered from outside. */ readonly altered: boolean };
  };
  probe: {
    readonly slot: SlotName;
    readonly workload: WorkloadId;
    readonly endpoints: readonly Endpoint[];
    readonly spec: SlotSpec;
    readonly model: ModelFacts;
    /** Keep trying for this long until it passes; 0: once. */
    readonly patienceMs: number;
    /** Since when this workload is being waited for: tries grow rarer with its age. */
    readonly since: number;
  };
  /** Its runtime starts it again by itself: all there is to do is to count. */
  noteCrash: {
    readonly slot: SlotName;
    readonly workload: WorkloadId;
    readonly exitId: string;
    /** Undefined: it is nobody's failure. */
    readonly failure: Finding | undefined;
    /** It is let start again. */
    readonly startsAgain: boolean;
  };
  stop: {
    readonly slot: SlotName;
    readonly workload: WorkloadId;
    readonly graceMs: number;
    /** Its drain time is over: end its requests first. */
    readonly abort: boolean;
    /** Why it must go, when it is its own fault: recorded once, with its last log lines. */
    readonly failure: Fault | undefined;
  };
}

export type ActionName = keyof ActionArgs;

export type Action = {
  [Name in ActionName]: { readonly name: Name; readonly args: ActionArgs[Name]; readonly because: Finding; readonly slot: SlotName };
}[ActionName];

/** Whether it is for the controller that leads to carry it out. */
export function changesWorld({ name }: Action): boolean {
  return name !== 'probe' && name !== 'noteCrash';
}

/** Two actions of one key never run at the same time. */
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
const applyKey = (slot: SlotName): string => `apply:${slot}`;
export const probeKey = (workload: WorkloadId): string => `probe:${workload}`;
export const noteCrashKey = (workload: WorkloadId): string => `noteCrash:${workload}`;
const stopKey = (workload: WorkloadId): string => `stop:${workload}`;
