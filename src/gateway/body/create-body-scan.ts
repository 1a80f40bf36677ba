/** Chooses the scanner for the bodies of a path. */
import type { Settings } from '../../schema/settings/settings.ts';
import type { BodyScan, BodyProblem } from './body-scan.ts';
import { BodyScanner } from './body-scanner.ts';
import type { InferencePath } from '../route/decide/inference-paths.ts';
import { boundaryOf } from './decide/multipart-head.ts';
import { refuseMedia, checkSpeech } from './decide/refuse-body.ts';
import type { RequestHead } from '../upstream/decide/request-head.ts';
import type { FoundUrl } from './media-scanner.ts';
import { MultipartScanner } from './multipart-scanner.ts';

export function createBodyScan(
  { body, capability }: Pick<InferencePath, 'body' | 'capability'>,
  { contentType = '' }: Pick<RequestHead, 'contentType'>,
  { SVC_FETCH_IMAGES: policy, SVC_SPEECH_LIMIT }: Pick<Settings, 'SVC_FETCH_IMAGES' | 'SVC_SPEECH_LIMIT'>,
): BodyScan {
  if (body === 'multipart') return new MultipartScanner(boundaryOf(contentType) ?? '');
  if (capability === 'speech') return new SpeechScanner(SVC_SPEECH_LIMIT);
  if (capability !== 'chat') return new BodyScanner();
  const urls: FoundUrl[] = [];
  return new BodyScanner({
    urls,
    keepsAll: policy !== 'off',
    check(url) {
      const problem = refuseMedia(url, policy, urls.length);
      if (problem === undefined) urls.push(url);
      return problem;
    },
  });
}

/** Reads the whole body of a request for speech, which is short, checks the length of its text, and finds its voice. `model` is found as in other bodies. */

/** `\ud83d\ude00`: the longest way to write one character in JSON. */
const LONGEST_CHARACTER_BYTES = 12;
/** Of all other fields: the recording of a voice is the longest one, with 3 MB in Base64. */
const OTHER_FIELDS_BYTES = 4_000_000 + 64 * 1024;

class SpeechScanner implements BodyScan {
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
