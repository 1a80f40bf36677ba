/**
 * Tells a client that waits for a stream what it waits for: a comment in its stream once it has waited for
 * `SVC_WAIT_PROGRESS`, and again each time that it has waited for so long. Proxies and clients that end silent
 * connections keep it open then. Only while the request is in a queue.
 */
import type { SlotName } from '../../schema/words/names.ts';
import type { ExchangeDeps } from '../exchange-deps.ts';
import { waitText } from './decide/wait-text.ts';
import type { Ticket } from './parking.ts';

/** `ClientAnswer`. */
export interface CommentedAnswer {
  comment(text: string): void;
}

type ProgressDeps = Pick<ExchangeDeps, 'board' | 'now' | 'settings'>;

export class WaitProgress {
  readonly #deps: ProgressDeps;
  readonly #answer: () => CommentedAnswer | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Monotonic milliseconds of the next comment; undefined before the first wait. */
  #dueAt: number | undefined;

  /** `answer` returns undefined while the client is not known to expect a stream. */
  constructor(deps: ProgressDeps, answer: () => CommentedAnswer | undefined) {
    this.#deps = deps;
    this.#answer = answer;
  }

  /** The request waits in a queue. */
  start(slot: SlotName | undefined, ticket: Pick<Ticket, 'outlook'>): void {
    const { now, settings } = this.#deps;
    const { SVC_WAIT_PROGRESS: everyMs } = settings;
    if (everyMs === 'off') return;
    this.#dueAt ??= now() + everyMs;
    const tell = (): void => {
      this.#dueAt = now() + everyMs;
      this.#timer = setTimeout(tell, everyMs);
      const known = slot === undefined ? undefined : this.#deps.board.current().slots.get(slot);
      const { position, ...more } = ticket.outlook();
      this.#answer()?.comment(waitText(known, { position: position + 1, ...more }));
    };
    clearTimeout(this.#timer);
    this.#timer = setTimeout(tell, Math.max(0, this.#dueAt - now()));
  }

  /** It has left the queue. */
  stop(): void {
    clearTimeout(this.#timer);
  }
}
