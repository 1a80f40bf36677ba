/** A scan of a request body finds, while the body arrives, whatever the gateway needs from it. */
import type { RoutedSlot } from '../../reconciler/board.ts';
import type { RequestEvents } from '../request-events.ts';

export interface BodyPart {
  readonly name: string;
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

/** What a chat contains besides text, each with the first place, such as `messages[0].content[1].image_url`. */
export type UsedMedia = ReadonlyMap<'vision' | 'audio', string>;

export interface BodyScan {
  /** `more`: the body is not complete yet. */
  readonly status: 'more' | 'done' | 'invalid';
  /** A `model` with its value was read. */
  readonly modelSeen: boolean;
  readonly model: string | undefined;
  readonly problem: BodyProblem | undefined;
  readonly isForm: boolean;
  /** A request without a body is as good. Default: false. */
  readonly mayLack?: true;
  /** The body is checked to its end, also while it flows to the upstream. */
  readonly readsAll: boolean;
  /** The body must be complete before the request is routed. Default: false. */
  readonly keepsAll?: boolean;
  readonly parts?: readonly BodyPart[];
  /** As far as the body was read. Default: nothing. */
  readonly media?: UsedMedia | undefined;
  /** The client asks for a stream, as far as the body was read. Default: it does not. */
  readonly isStreamed?: boolean;
  /** The body was read to its end, and the client does not limit the tokens of the answer. Default: not known. */
  readonly lacksLimit?: boolean;
  /** Length of embeddings that the request asks for. */
  readonly dimensions?: number | undefined;
  /** What identifies the conversation, the same in each of its turns, as far as the body was read. */
  readonly conversation?: string | undefined;
  /** The problem with a body that ends while the status is `more`. */
  readonly unfinished: string;
  feed(chunk: Buffer): void;
  /** Changes a complete body before the request is routed. Returns true if `onRoutable` or `fail` follows. */
  delaysRouting?(body: EditableBody, events: BodyEvents): boolean;
  /** The same, before each attempt at an open slot. */
  delaysAttempt?(slot: RoutedSlot, body: EditableBody, events: BodyEvents): boolean;
}

/** A body that is for the server alone, where the path has said the name of the slot. */
export const opaqueBody = (model: string | undefined): BodyScan => ({
  status: 'done',
  modelSeen: true,
  model,
  problem: undefined,
  isForm: false,
  mayLack: true,
  readsAll: false,
  unfinished: '',
  feed: () => undefined,
});

export type BodyEvents = Pick<RequestEvents, 'onProgress' | 'onRoutable' | 'fail'>;

/** A complete body in memory. */
export interface EditableBody {
  readonly chunks: readonly Buffer[];
  readonly received: number;
  readonly isReleased: boolean;
  onRelease: (() => void) | undefined;
  /** Reserves memory until the body is released. Returns false if there is none left. */
  reserve(bytes: number): boolean;
  /** Replaces the body; the caller has reserved memory for it. */
  replace(pieces: readonly Buffer[]): void;
  /** Replaces the body by an edited one. Returns false if there is no memory for what is longer. */
  edit(pieces: readonly Buffer[]): boolean;
}
