/** What the client gets from a translation: an answer that is sent at once, or one that is begun and then written piece by piece. Throws if the translation breaks that order. */
import type { AnswerHead } from '../../providers/translation.ts';
import type { ClientAnswer } from '../answer.ts';
import { AnswerTail } from '../answer-tail.ts';
import type { AttemptRequest } from '../attempt.ts';
import { responseHeadOf } from './decide/translation-heads.ts';

export class TranslatedAnswer {
  ttftMs: number | undefined;
  /** Coarse milliseconds at which the client was last sent something; undefined before the answer has begun. */
  wroteAt: number | undefined;
  readonly #answer: ClientAnswer;
  readonly #tick: () => number;
  readonly #startedAt: number;
  readonly #tail = new AnswerTail();

  constructor({ answer, deps, startedAt }: AttemptRequest) {
    this.#answer = answer;
    this.#tick = deps.tick;
    this.#startedAt = startedAt;
  }

  /** `bytes` undefined: the length of the body is not known. */
  begin(head: AnswerHead, bytes?: number): void {
    if (this.#answer.started) throw new TypeError('Begin an answer once');
    const checked = responseHeadOf(head, bytes);
    this.ttftMs = performance.now() - this.#startedAt;
    this.wroteAt = this.#tick();
    this.#answer.begin(checked, this.ttftMs);
  }

  /** Resolves when the client has read enough. */
  async write(bytes: Buffer): Promise<void> {
    if (!this.#answer.started) throw new TypeError('Begin an answer before writing to it');
    if (bytes.length === 0) return;
    this.wroteAt = this.#tick();
    this.#tail.add(bytes);
    if (this.#answer.write(bytes)) return;
    await new Promise<void>((resolve) => this.#answer.onceDrained(resolve));
    this.wroteAt = this.#tick();
  }

  end(last: Buffer): void {
    if (!this.#answer.started) throw new TypeError('Begin an answer before it ends');
    this.#tail.add(last);
    this.#answer.end(last);
  }

  usage() {
    return this.#tail.usage();
  }
}
