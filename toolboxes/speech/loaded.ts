/** What the server has once the model is known. */
import type { ModelFacts } from './decide/describe-model.ts';
import type { Engine } from './engine.ts';
import type { FormParserClass } from './native.ts';

export interface Loaded {
  readonly facts: ModelFacts;
  readonly engine: Engine;
  /** The program, if it was found. */
  readonly ffmpeg: string | undefined;
  readonly Parser: FormParserClass;
  /** Directory for uploads. */
  readonly directory: string;
}
