/** Which lines of a timeline become Events of the cluster, and in which words. Pure. */
import type { SlotName } from '../../../schema/names.ts';
import { parseReason, type Reason } from '../../../schema/reasons.ts';
import type { SlotState, TimelineEntry } from '../../../schema/slot-status.ts';

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

/** What the API server takes. */
const LONGEST_MESSAGE = 1024;

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

/** Undefined: nobody who looks at the cluster needs it. Actions and edits show in what they bring about; requests come and go too often. */
export function eventOf(entry: TimelineEntry): SlotEvent | undefined {
  switch (entry.kind) {
    case 'state':
      return stateEvent(entry);
    case 'drift':
      return eventWith(entry, 'Warning', 'WorkloadAltered', withoutCondition(entry.message).message);
    case 'failure':
      return eventWith(entry, 'Warning', parseReason(entry.cause) ?? 'Failed', entry.message);
    case 'condition':
      return conditionEvent(entry);
    case 'spec':
    case 'action':
      return undefined;
  }
  return entry.kind satisfies never;
}

/** A slot that was found in some state is no news: the controller is. */
function stateEvent(entry: TimelineEntry): SlotEvent | undefined {
  const { from, to } = entry;
  if (from === undefined || to === undefined || to === 'serving' || to === 'idle') return undefined;
  if (to === 'ready' && (from === 'serving' || from === 'idle')) return undefined;
  // The cause is a reason and its sentence; people read the sentence only.
  const why = entry.cause === undefined ? '' : `: ${entry.cause.replace(/^[a-zA-Z]+: /, '')}`;
  return eventWith(entry, 'Normal', STATE_REASONS[to], `From "${from}" to "${to}"${why}`);
}

function conditionEvent(entry: TimelineEntry): SlotEvent {
  const { condition, message } = withoutCondition(entry.message);
  const bad = condition === 'Stalled=True' || condition === 'SpecValid=False' || condition === 'DriftDetected=True';
  return eventWith(entry, bad ? 'Warning' : 'Normal', parseReason(entry.cause) ?? 'Unknown', message);
}

/** `Stalled is True: The slot needs …` */
function withoutCondition(text: string): { readonly condition: string | undefined; readonly message: string } {
  const [whole, type, status] = /^([A-Z]\w*) is (True|False|Unknown): /.exec(text) ?? [];
  return whole === undefined
    ? { condition: undefined, message: text }
    : { condition: `${type}=${status}`, message: text.slice(whole.length) };
}

function eventWith({ slot, at }: TimelineEntry, type: SlotEvent['type'], reason: EventReason, message: string): SlotEvent {
  return { slot, type, reason, message: message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE - 1)}…` : message, at };
}
