/** The end of an answer is kept for its token counts, and its sound or images are counted. */
import type { Capability } from '../../schema/slot/provider-kinds.ts';
import {
  COMPLETED_MARK,
  durationIn,
  IMAGE_MARKS,
  mediaKindOf,
  MOST_IMAGES,
  secondsIn,
  secondsInHead,
  soundFormOf,
  type AnswerCounts,
  type Media,
  type MediaKind,
  type SoundForm,
} from './decide/count-media.ts';
import { estimateUsage, findUsage, type Usage } from './decide/judge-answer.ts';
import type { ResponseHead } from './decide/response-head.ts';

/** The token counts are among the last bytes of an answer. */
const TAIL_BYTES = 4096;
const BEGIN_BYTES = 1024;
const LEAST_ERROR = 300;
/** The first letter of `event: …`. */
const LETTER_E = 0x65;

/** The last pieces of an answer, which hold its token counts. */
export class AnswerTail {
  #last: Buffer | undefined;
  #beforeLast: Buffer | undefined;
  #begun: Usage | undefined;
  #bytes = 0;
  readonly #media: AnswerMedia | undefined;

  constructor(capability?: Capability) {
    const kind = capability && mediaKindOf(capability);
    if (kind !== undefined) this.#media = new AnswerMedia(kind);
  }

  add(bytes: Buffer, head?: ResponseHead): void {
    if (bytes.length === 0) return;
    this.#media?.add(bytes, head);
    // Only streams of named events count the prompt at their beginning.
    if (this.#last === undefined && bytes[0] === LETTER_E) this.#begun = findUsage(bytes.toString('latin1', 0, TAIL_BYTES));
    this.#beforeLast = this.#last;
    this.#last = bytes;
    this.#bytes += bytes.length;
  }

  counts(isTextStream = false): AnswerCounts {
    return { tokens: this.#tokens(isTextStream), media: this.#sums() };
  }

  /** Counts from the last piece, or the one before if that is only `[DONE]`; else an estimate for a text stream. */
  #tokens(isTextStream: boolean): Usage | undefined {
    if (this.#last === undefined) return undefined;
    const last = textOfEnd(this.#last);
    const before = this.#beforeLast === undefined ? '' : textOfEnd(this.#beforeLast);
    const counted = findUsage(last, this.#begun) ?? findUsage(before, this.#begun);
    if (counted !== undefined || !isTextStream) return counted;
    const estimated = estimateUsage(this.#bytes, before + last);
    return estimated && { ...estimated, ...this.#begun, output: estimated.output };
  }

  /** Undefined if nothing is known. */
  #sums(): Media | undefined {
    if (this.#media === undefined || this.#last === undefined) return undefined;
    const before = this.#beforeLast === undefined ? '' : textOfEnd(this.#beforeLast);
    return this.#media.media(secondsIn(before + textOfEnd(this.#last)));
  }
}

const textOfEnd = (bytes: Buffer): string => bytes.toString('latin1', Math.max(0, bytes.length - TAIL_BYTES));

/** Counts the sound or the images of one answer while it is passed on. Nothing of it is kept. */
class AnswerMedia {
  readonly #kind: MediaKind;
  #head: Pick<ResponseHead, 'status' | 'headers' | 'contentType'> | undefined;
  #bytes = 0;
  #form: SoundForm | undefined;
  #duration: number | undefined;
  readonly #images = IMAGE_MARKS.map((mark) => new MarkCount(mark));
  readonly #completed = new MarkCount(COMPLETED_MARK);

  constructor(kind: MediaKind) {
    this.#kind = kind;
  }

  add(bytes: Buffer, head: Pick<ResponseHead, 'status' | 'headers' | 'contentType'> | undefined): void {
    this.#head = head;
    if (this.#kind === 'drawn') {
      if (this.#isStream()) this.#completed.add(bytes);
      else for (const mark of this.#images) mark.add(bytes);
    } else if (this.#bytes === 0) {
      if (this.#kind === 'heard') this.#duration = durationIn(bytes.toString('latin1', 0, BEGIN_BYTES));
      else this.#form = soundFormOf(this.#head?.contentType ?? '', bytes);
    }
    this.#bytes += bytes.length;
  }

  /** `seconds`: those that the end of the answer tells. Undefined if nothing is known. */
  media(seconds: number | undefined): Media | undefined {
    if (this.#head === undefined || this.#head.status >= LEAST_ERROR) return undefined;
    if (this.#kind === 'drawn') {
      // Events name themselves in a line of their own too, without a quote behind it.
      const images = this.#isStream() ? this.#completed.count : Math.max(...this.#images.map(({ count }) => count));
      return images === 0 || images > MOST_IMAGES ? undefined : { images };
    }
    const audioSeconds = seconds ?? secondsInHead(this.#head.headers) ?? this.#duration ?? this.#soundSeconds();
    return audioSeconds === undefined ? undefined : { audioSeconds };
  }

  #isStream(): boolean {
    return this.#head?.contentType?.startsWith('text/event-stream') === true;
  }

  #soundSeconds(): number | undefined {
    return this.#form === undefined ? undefined : Math.max(0, this.#bytes - this.#form.headBytes) / this.#form.bytesPerSecond;
  }
}

/** How often a mark occurs in pieces, also across their borders. */
class MarkCount {
  count = 0;
  readonly #mark: string;
  #rest = '';

  constructor(mark: string) {
    this.#mark = mark;
  }

  add(bytes: Buffer): void {
    const most = this.#mark.length - 1;
    const border = this.#rest + bytes.toString('latin1', 0, most);
    if (border.includes(this.#mark)) this.count += 1;
    for (let at = bytes.indexOf(this.#mark); at !== -1; at = bytes.indexOf(this.#mark, at + this.#mark.length)) this.count += 1;
    this.#rest = (bytes.length < most ? this.#rest + bytes.toString('latin1') : bytes.toString('latin1', bytes.length - most)).slice(-most);
  }
}
