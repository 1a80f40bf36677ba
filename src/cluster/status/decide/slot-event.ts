/** Selects the timeline entries that become Events of the cluster, and words them. Pure. */
import type { SlotName } from '../../../schema/names.ts';
import type { TimelineEntry } from '../../../schema/slot-status.ts';

export interface SlotEvent {
  readonly slot: SlotName;
  readonly type: 'Normal' | 'Warning';
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
  /** Unix milliseconds. */
  readonly at: number;
}

/** Limits of the API server. */
const LONGEST_MESSAGE = 1024;
const LONGEST_REASON = 128;

/** Undefined for entries that are not useful in the cluster: actions and edits show in their effects, and changes caused by requests are too frequent. */
export function toSlotEvent(entry: TimelineEntry): SlotEvent | undefined {
  switch (entry.kind) {
    case 'state':
      return stateEvent(entry);
    case 'drift':
      return eventWith(entry, 'Warning', 'DriftDetected', withoutCondition(entry.message).message);
    case 'failure':
      return eventWith(entry, 'Warning', failureReason(entry.cause), entry.message);
    case 'condition':
      return conditionEvent(entry);
    case 'spec':
    case 'action':
      return undefined;
  }
  return entry.kind satisfies never;
}

/** A state without a previous one was only found by a new controller, and is not a change. */
function stateEvent(entry: TimelineEntry): SlotEvent | undefined {
  const { from, to } = entry;
  if (from === undefined || to === undefined || to === 'serving' || to === 'idle') return undefined;
  if (to === 'ready' && (from === 'serving' || from === 'idle')) return undefined;
  // The cause is a finding's name, which is for programs, and its sentence.
  const why = entry.cause === undefined ? '' : `: ${entry.cause.replace(/^[a-zA-Z]+: /, '')}`;
  return eventWith(entry, 'Normal', camelCase(to), `From "${from}" to "${to}"${why}`);
}

function conditionEvent(entry: TimelineEntry): SlotEvent {
  const { condition, message } = withoutCondition(entry.message);
  const bad = condition === 'Stalled=True' || condition === 'SpecValid=False' || condition === 'DriftDetected=True';
  return eventWith(entry, bad ? 'Warning' : 'Normal', camelCase(entry.cause ?? 'Changed'), message);
}

/** Splits `Stalled is True: It needs …` into the condition and the message. */
function withoutCondition(text: string): { readonly condition: string | undefined; readonly message: string } {
  const [whole, type, status] = /^([A-Z]\w*) is (True|False|Unknown): /.exec(text) ?? [];
  return whole === undefined
    ? { condition: undefined, message: text }
    : { condition: `${type}=${status}`, message: text.slice(whole.length) };
}

/** Reasons for kinds of failures that do not name one. */
const FAILURE_REASONS: Readonly<Record<string, string>> = { crash: 'Crashed', probe: 'ProbeFailing', drift: 'DriftDetected' };

function failureReason(cause: string | undefined): string {
  return cause === undefined ? 'Failed' : (FAILURE_REASONS[cause] ?? camelCase(cause));
}

function eventWith({ slot, at }: TimelineEntry, type: SlotEvent['type'], reason: string, message: string): SlotEvent {
  return { slot, type, reason, message: message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE - 1)}…` : message, at };
}

/** `start-timeout` becomes `StartTimeout`. */
function camelCase(text: string): string {
  const words = text.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const joined = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  return joined === '' ? 'Changed' : joined.slice(0, LONGEST_REASON);
}
