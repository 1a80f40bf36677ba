/** Selects the timeline entries that become Events of the cluster, and words them. Pure. */
import type { SlotName } from '../../../schema/words/names.ts';
import { parseReason, type Reason } from '../../../schema/status/reasons.ts';
import type { SlotState, TimelineEntry } from '../../../schema/status/slot-status.ts';
import { shorten } from '../../../schema/shorten.ts';

/** A change of state has the new state as its reason. */
type EventReason = Reason | Capitalize<SlotState>;

export interface SlotEvent {
  readonly slot: SlotName;
  readonly type: 'Normal' | 'Warning';
  readonly reason: EventReason;
  readonly message: string;
  /** Unix milliseconds. */
  readonly at: number;
}

/** The API server takes 1,024 characters, and a message that has been cut ends with one more. */
const LONGEST_MESSAGE = 1023;

const STATE_REASONS = {
  offline: 'Offline',
  pulling: 'Pulling',
  starting: 'Starting',
  warming: 'Warming',
  ready: 'Ready',
  serving: 'Serving',
  idle: 'Idle',
  unloading: 'Unloading',
} as const satisfies Record<SlotState, EventReason>;

/** Undefined for entries that are not useful in the cluster: actions and edits show in their effects, and changes caused by requests are too frequent. */
export function toSlotEvent(entry: TimelineEntry): SlotEvent | undefined {
  switch (entry.kind) {
    case 'state':
      return stateEvent(entry);
    case 'drift':
      return eventWith(entry, 'Warning', 'WorkloadAltered', withoutCondition(entry.message).message);
    case 'swap':
      return eventWith(entry, 'Normal', parseReason(entry.cause) ?? 'Unknown', entry.message);
    case 'failure':
      return eventWith(entry, 'Warning', parseReason(entry.cause) ?? 'Failed', entry.message);
    case 'condition':
      return conditionEvent(entry);
    case 'spec':
    case 'action':
    case 'edit':
      return undefined;
  }
  return entry.kind satisfies never;
}

/** A state without a previous one was only found by a new controller, and is not a change. */
function stateEvent(entry: TimelineEntry): SlotEvent | undefined {
  const { from, to } = entry;
  if (from === undefined || to === undefined || to === 'serving' || to === 'idle') return undefined;
  if (to === 'ready' && (from === 'serving' || from === 'idle')) return undefined;
  // The cause is a reason and its sentence; users read the sentence only.
  const why = entry.cause === undefined ? '' : `: ${entry.cause.replace(/^[a-zA-Z]+: /, '')}`;
  return eventWith(entry, 'Normal', STATE_REASONS[to], `From "${from}" to "${to}"${why}`);
}

function conditionEvent(entry: TimelineEntry): SlotEvent {
  const { condition, message } = withoutCondition(entry.message);
  const bad = condition === 'Stalled=True' || condition === 'SpecValid=False' || condition === 'DriftDetected=True';
  return eventWith(entry, bad ? 'Warning' : 'Normal', parseReason(entry.cause) ?? 'Unknown', message);
}

/** Splits `Stalled is True: It needs …` into the condition and the message. */
function withoutCondition(text: string): { readonly condition: string | undefined; readonly message: string } {
  const [whole, type, status] = /^([A-Z]\w*) is (True|False|Unknown): /.exec(text) ?? [];
  return whole === undefined
    ? { condition: undefined, message: text }
    : { condition: `${type}=${status}`, message: text.slice(whole.length) };
}

function eventWith({ slot, at }: TimelineEntry, type: SlotEvent['type'], reason: EventReason, message: string): SlotEvent {
  return { slot, type, reason, message: shorten(message, LONGEST_MESSAGE), at };
}
