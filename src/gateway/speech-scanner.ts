/** Reads the whole body of a request for speech, which is short, checks the length of its text, and finds its voice. `model` is found as in other bodies. */
import type { BodyProblem, BodyScan } from './body/body-scan.ts';
import { BodyScanner } from './body/body-scanner.ts';
import { checkSpeech } from './decide/check-speech.ts';

/** `\ud83d\ude00`: the longest way to write one character in JSON. */
const LONGEST_CHARACTER_BYTES = 12;
/** Of all other fields: the recording of a voice is the longest one, with 3 MB in Base64. */
const OTHER_FIELDS_BYTES = 4_000_000 + 64 * 1024;

export class SpeechScanner implements BodyScan {
  readonly isForm = false;
  readonly readsAll = true;
  readonly keepsAll = true;
  readonly #fields = new BodyScanner();
  readonly #limit: number;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #checked = false;
  #voice: string | undefined;
  #problem: BodyProblem | undefined;

  /** `limit` in characters. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get status(): BodyScan['status'] {
    return this.#problem === undefined ? this.#fields.status : 'invalid';
  }

  get problem(): BodyProblem | undefined {
    return this.#problem ?? this.#fields.problem;
  }

  get modelSeen(): boolean {
    return this.#fields.modelSeen;
  }

  get model(): string | undefined {
    return this.#fields.model;
  }

  get voice(): string | undefined {
    return this.#voice;
  }

  get unfinished(): string {
    return this.#fields.unfinished;
  }

  feed(chunk: Buffer): void {
    if (this.status === 'invalid') return;
    this.#fields.feed(chunk);
    if (this.#checked) return;
    this.#bytes += chunk.length;
    if (this.#bytes > this.#limit * LONGEST_CHARACTER_BYTES + OTHER_FIELDS_BYTES) {
      this.#end({ message: `Send at most ${this.#limit} characters of text ("SVC_SPEECH_LIMIT")`, param: 'input' });
      return;
    }
    this.#pieces.push(chunk);
    if (this.#fields.status !== 'done') return;
    const { problem, voice } = checkSpeech(Buffer.concat(this.#pieces).toString('utf8'), this.#limit);
    this.#voice = voice;
    this.#end(problem);
  }

  #end(problem: BodyProblem | undefined): void {
    this.#checked = true;
    this.#problem = problem;
    this.#pieces = [];
  }
}
