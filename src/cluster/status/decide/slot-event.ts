/** Which lines of a timeline become Events of the cluster, and in which words. Pure. */
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

/** What the API server takes. */
const LONGEST_MESSAGE = 1024;
const LONGEST_REASON = 128;

/** Undefined: nobody who looks at the cluster needs it. Actions and edits show in what they bring about; requests come and go too often. */
export function eventOf(entry: TimelineEntry): SlotEvent | undefined {
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

/** A slot that was found in some state is no news: the controller is. */
function stateEvent(entry: TimelineEntry): SlotEvent | undefined {
  const { from, to } = entry;
  if (from === undefined || to === undefined || to === 'serving' || to === 'idle') return undefined;
  if (to === 'ready' && (from === 'serving' || from === 'idle')) return undefined;
  // A finding's name, which is for programs, and its sentence.
  const why = entry.cause === undefined ? '' : `: ${entry.cause.replace(/^[a-zA-Z]+: /, '')}`;
  return eventWith(entry, 'Normal', camelCase(to), `From "${from}" to "${to}"${why}`);
}

function conditionEvent(entry: TimelineEntry): SlotEvent {
  const { condition, message } = withoutCondition(entry.message);
  const bad = condition === 'Stalled=True' || condition === 'SpecValid=False' || condition === 'DriftDetected=True';
  return eventWith(entry, bad ? 'Warning' : 'Normal', camelCase(entry.cause ?? 'Changed'), message);
}

/** `Stalled is True: It needs …` */
function withoutCondition(text: string): { readonly condition: string | undefined; readonly message: string } {
  const [whole, type, status] = /^([A-Z]\w*) is (True|False|Unknown): /.exec(text) ?? [];
  return whole === undefined
    ? { condition: undefined, message: text }
    : { condition: `${type}=${status}`, message: text.slice(whole.length) };
}

/** Kinds of failures that have no reason of their own. */
const FAILURE_REASONS: Readonly<Record<string, string>> = { crash: 'Crashed', probe: 'ProbeFailing', drift: 'DriftDetected' };

function failureReason(cause: string | undefined): string {
  return cause === undefined ? 'Failed' : (FAILURE_REASONS[cause] ?? camelCase(cause));
}

function eventWith({ slot, at }: TimelineEntry, type: SlotEvent['type'], reason: string, message: string): SlotEvent {
  return { slot, type, reason, message: message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE - 1)}…` : message, at };
}

/** `StartTimeout` of `start-timeout`. */
function camelCase(text: string): string {
  const words = text.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const joined = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  return joined === '' ? 'Changed' : joined.slice(0, LONGEST_REASON);
}
