/**
 * Finds `model` at the top level of a JSON object that arrives in chunks. Nested text is left to the upstream. The last
 * one of repeated keys counts, as in `JSON.parse`; a caller that stops early uses the first, which is harmless: an
 * upstream serves one model.
 */
import { jsonFields, JsonScanner, type JsonEvents, type JsonFilter } from '../../schema/words/json-scanner.ts';
import { decodeJsonString } from '../../schema/words/json-skipper.ts';
import { OUTPUT_KEYS } from './apply-preset.ts';
import { CONVERSATION_FIELDS, ConversationStart, isConversationTag, type ConversationTag } from './conversation-start.ts';
import type { BodyProblem, BodyScan } from './body-scan.ts';

export type JsonTag = 'model' | 'stream' | 'dimensions' | 'image' | 'audio' | 'type' | 'other' | 'output' | ConversationTag;

export interface JsonBodyExtra extends Pick<BodyScan, 'keepsAll' | 'delaysRouting' | 'media'> {
  /** Default: only fields of the top level. */
  readonly filter?: JsonFilter<JsonTag>;
  /** Returns the problem with a string of media. `from` and `to`: its offsets in the body, with the quotes. */
  readonly check?: (scanner: Pick<JsonScanner<JsonTag>, 'path' | 'raw'>, string: FoundString) => BodyProblem | undefined;
  /** An object with a tag begins. */
  readonly onObject?: (tag: JsonTag, scanner: Pick<JsonScanner<JsonTag>, 'path'>) => void;
}

type FoundString = Readonly<{ tag: Exclude<JsonTag, 'model' | 'stream' | 'output' | ConversationTag>; from: number; to: number }>;

/** Far longer than a slot, alias or model id; keeps a hostile name out of memory and messages. */
const MODEL_LIMIT = 4096;
/** Fields of the top level that each filter contains. */
export const COMMON_FIELDS: Readonly<Record<string, JsonFilter<JsonTag>>> = {
  model: { tag: 'model' },
  stream: { tag: 'stream' },
  ...Object.fromEntries(OUTPUT_KEYS.map((key) => [key, { tag: 'output' }] as const)),
  ...CONVERSATION_FIELDS,
};
const PLAIN: JsonFilter<JsonTag> = {
  fields: jsonFields<JsonTag>({
    ...COMMON_FIELDS,
    dimensions: { tag: 'dimensions' },
  }),
};

const WRONG_MODEL: BodyProblem = { message: `"model" is not a string of at most ${MODEL_LIMIT} bytes`, param: 'model' };
const VALUE = 'The body is not valid JSON: expected a value';
const KEY = 'The body is not valid JSON: expected a quoted key';
const MESSAGES: Readonly<Partial<Record<JsonScanner<JsonTag>['place'], string>>> = {
  start: 'The body is not a JSON object',
  'first-key': KEY,
  key: KEY,
  colon: 'The body is not valid JSON: expected a colon after a key',
  value: VALUE,
  'after-value': 'The body is not valid JSON: expected a comma or the end of the object',
  end: 'The body continues after its JSON object: send one object',
};

export class JsonBody implements BodyScan, JsonEvents<JsonTag> {
  status: BodyScan['status'] = 'more';
  /** `null` counts as a missing model. */
  modelSeen = false;
  model: string | undefined = undefined;
  problem: BodyProblem | undefined = undefined;
  isStreamed = false;
  dimensions: number | undefined = undefined;
  readonly isForm = false;
  readonly readsAll: boolean;
  readonly keepsAll: boolean;
  readonly media: BodyScan['media'];
  readonly unfinished = 'The body ends inside its JSON object';
  readonly #start = new ConversationStart();
  readonly #scanner: JsonScanner<JsonTag>;
  readonly #extra: JsonBodyExtra | undefined;
  #isRefused = false;
  #limitsOutput = false;

  constructor(extra?: JsonBodyExtra) {
    this.#extra = extra;
    this.readsAll = extra !== undefined;
    this.keepsAll = extra?.keepsAll === true;
    this.media = extra?.media;
    this.#scanner = new JsonScanner(extra?.filter ?? PLAIN, this);
  }

  get conversation(): string | undefined {
    return this.#start.key;
  }

  get lacksLimit(): boolean {
    return this.status === 'done' && !this.#limitsOutput;
  }

  feed(chunk: Buffer): void {
    const scanner = this.#scanner;
    if (!this.#isRefused) scanner.feed(chunk);
    if (this.#isRefused) return;
    if (scanner.status === 'invalid') this.refuse({ message: MESSAGES[scanner.place] ?? VALUE, param: null });
    else if (scanner.status === 'done') this.status = this.problem === undefined ? 'done' : 'invalid';
  }

  delaysRouting(...[body, events]: Parameters<NonNullable<BodyScan['delaysRouting']>>): boolean {
    return this.#extra?.delaysRouting?.(body, events) === true;
  }

  onString(tag: JsonTag, from: number, to: number): void {
    if (tag === 'model') {
      const bytes = to - from - 2;
      return this.#setModel(bytes > MODEL_LIMIT ? undefined : decodeJsonString(this.#scanner.raw(MODEL_LIMIT)));
    }
    if (tag === 'stream') return void (this.isStreamed = false);
    if (tag === 'output') return void (this.#limitsOutput = true);
    if (isConversationTag(tag)) return this.#start.note(tag, this.#scanner, to - from);
    const problem = this.#isRefused ? undefined : this.#extra?.check?.(this.#scanner, { tag, from, to });
    if (problem !== undefined) this.refuse(problem);
  }

  onScalar(tag: JsonTag, raw: string): void {
    if (tag === 'model') this.#setModel(undefined, raw === 'null');
    else if (tag === 'stream') this.isStreamed = raw === 'true';
    else if (tag === 'output') this.#limitsOutput = true;
    else if (tag === 'dimensions' && raw !== 'null') this.dimensions = Number(raw);
  }

  onOpen(tag: JsonTag): void {
    if (tag === 'model') this.#setModel(undefined);
    else if (tag === 'stream') this.isStreamed = false;
    else if (tag === 'output') this.#limitsOutput = true;
    else if (tag === 'message') this.#start.nextMessage();
    else this.#extra?.onObject?.(tag, this.#scanner);
  }

  /** A wrong model is not final: a later valid one replaces it, as in `JSON.parse`. */
  #setModel(model: string | undefined, isMissing = false): void {
    if (this.#isRefused) return;
    this.modelSeen = true;
    this.model = model;
    this.problem = model === undefined && !isMissing ? WRONG_MODEL : undefined;
  }

  refuse(problem: BodyProblem): void {
    this.#isRefused = true;
    this.status = 'invalid';
    this.problem = problem;
  }
}
