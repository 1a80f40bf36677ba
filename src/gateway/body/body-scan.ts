/** What routing needs of a request body, and how a scanner finds it while the body arrives. */
import type { FoundUrl } from './media-scanner.ts';

/** Of a form. */
export interface BodyPart {
  /** Name of the field. */
  readonly name: string;
  /** Undefined for an ordinary field. */
  readonly fileName: string | undefined;
  readonly contentType: string | undefined;
  /** Offset of the content in the body, in bytes. */
  readonly from: number;
  readonly bytes: number;
}

export interface BodyProblem {
  readonly message: string;
  readonly param: string | null;
}

/** Reads a body in the pieces in which it arrives, and keeps no more of it than it reports. */
export interface BodyScan {
  /** `more`: the body is not complete yet. */
  readonly status: 'more' | 'done' | 'invalid';
  /** A `model` with its value was read. */
  readonly modelSeen: boolean;
  readonly model: string | undefined;
  /** What is wrong; set with `invalid`. */
  readonly problem: BodyProblem | undefined;
  /** A form and not JSON. */
  readonly isForm: boolean;
  /** The body is checked to its end, also while it flows. */
  readonly readsAll: boolean;
  /** The body must be whole before the request is routed. Default: false. */
  readonly keepsAll?: boolean;
  /** URLs of images that are to be replaced by the images. */
  readonly urls?: readonly FoundUrl[];
  /** What may be the name of a stored voice, in a request for speech. */
  readonly voice?: string | undefined;
  /** The complete parts of a form. */
  readonly parts?: readonly BodyPart[];
  /** What to say about a body that ends while the status is `more`. */
  readonly unfinished: string;
  feed(chunk: Buffer): void;
}
