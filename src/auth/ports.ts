/** The tokens that the replicas in a cluster share. The adapter is `cluster/token-secret.ts`. */
import type { Result } from '../schema/words/failure.ts';

export interface SharedText {
  /** Empty where nothing was stored yet. */
  readonly text: string;
  /** Changes with each write of anybody. Empty: it does not exist. */
  readonly version: string;
}

export interface SharedTokenText {
  /** Name in messages: `the Secret "svc-tokens" in namespace "svc"`. */
  readonly name: string;
  /** No more bytes of text can be stored. */
  readonly limitBytes: number;
  /** This replica's copy, without a request. Undefined until the first read. The same object while nothing changes. */
  copy(): SharedText | undefined;
  /** The newest text. Fails with `NotFound` if it does not exist. */
  read(signal: AbortSignal): Promise<Result<SharedText>>;
  /** Replaces the text, and the copy with it. Fails with `Conflict` if the text changed since `before` was read. */
  write(before: SharedText, text: string, signal: AbortSignal): Promise<Result<void>>;
}
