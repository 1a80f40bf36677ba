/** Gives a JSON body the parameters of a preset: only these bytes of it change, and no value is parsed. */
import type { FoundPreset, Preset } from '../../schema/slot/presets.ts';
import type { Remote } from '../../schema/slot/remote-document.ts';
import { jsonFields, JsonScanner, type JsonEvents, type JsonFilter } from '../../schema/words/json-scanner.ts';

type PresetParameters = Pick<Preset, 'set' | 'force'> & {
  /** Numbers that are not exceeded. If the body has none of them, it gets the first one. Default: none. */
  readonly cap?: Readonly<Record<string, number>>;
};
type Edit = readonly [from: number, to: number, bytes: Buffer];

interface Parameter {
  readonly isForced: boolean;
  /** Undefined: it is no cap. */
  readonly most?: number | undefined;
  /** In quotes. */
  readonly key: Buffer;
  readonly value: Buffer;
  /** With its key, behind another field. */
  readonly field: Buffer;
}

interface Prepared {
  readonly parameters: readonly Parameter[];
  /** Tags are indexes of parameters. */
  readonly filter: JsonFilter<number>;
  /** The fields that a body without any of them gets. */
  readonly added: Buffer;
  /** With the end of the object. */
  readonly lastFields: Buffer;
}

/** Searching longer bodies takes longer than scanning them. */
const SEARCHED_BYTES = 16 * 1024;
const ESCAPE = Buffer.from(String.raw`\u`);

export type ApplyPreset = ReturnType<typeof createPresetEditor>;

/** `RequestBody`. */
interface GivenBody {
  readonly model: string | undefined;
  readonly named: string | undefined;
  give(parameters: PresetParameters, whyNot: string, applyPreset: ApplyPreset): boolean;
}

/** Returns false where `RequestBody.give` does. */
export const givePreset = ({ name, preset }: FoundPreset, body: GivenBody, applyPreset: ApplyPreset): boolean =>
  body.give(preset, `The preset "${name}" cannot change a form: send the name of the slot`, applyPreset);

/** A remote has its own name for its model; `direct` requests keep theirs. False where `give` returns it. */
export function isNamed(
  { naming }: Remote,
  direct: object | undefined,
  body: GivenBody,
  { applyPreset }: { readonly applyPreset: ApplyPreset },
): boolean {
  const { model } = naming.force;
  if (direct !== undefined || (body.named ?? body.model) === model) return true;
  return body.give(naming, `A form keeps the name of its model: send "${model}", as the remote calls it`, applyPreset);
}

/** Names of the limit of output tokens, of all APIs: servers read several of them. */
export const OUTPUT_KEYS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens', 'n_predict'] as const;
const OUTPUT_KEY: ReadonlyMap<string, (typeof OUTPUT_KEYS)[number]> = new Map([
  ['/v1/chat/completions', 'max_tokens'],
  ['/v1/completions', 'max_tokens'],
  ['/v1/messages', 'max_tokens'],
  ['/v1/responses', 'max_output_tokens'],
  ['/infill', 'n_predict'],
]);

export type OutputCap = ReturnType<typeof createOutputCap>;

/** Returns parameters that limit the tokens of an answer; undefined for paths whose answers have none. */
export function createOutputCap() {
  /** As many as there are limits in tokens, which people write. */
  const caps = new Map(OUTPUT_KEYS.map((own) => [own, new Map<number, PresetParameters>()] as const));
  return (path: string, most: number): PresetParameters | undefined => {
    const own = OUTPUT_KEY.get(path);
    const known = own && caps.get(own)?.get(most);
    if (own === undefined || known !== undefined) return known;
    const keys = [own, ...OUTPUT_KEYS.filter((key) => key !== own)];
    const cap = { set: {}, force: {}, cap: Object.fromEntries(keys.map((key) => [key, most])) };
    caps.get(own)?.set(most, cap);
    return cap;
  };
}

/** Prepares each preset once, which costs more than its use. */
export function createPresetEditor() {
  const prepared = new WeakMap<PresetParameters, Prepared>();
  const remember = (preset: PresetParameters): Prepared => {
    const known = prepare(preset);
    prepared.set(preset, known);
    return known;
  };
  /**
   * Undefined: a body of several chunks is no complete JSON object. It is never empty, as it names the preset.
   * `hasModel`: the object has a string as `model`. `lacksKeys`: it has none of the keys of the preset.
   */
  return (
    body: readonly Buffer[],
    preset: PresetParameters,
    { hasModel = false, lacksKeys = false }: { readonly hasModel?: boolean; readonly lacksKeys?: boolean } = {},
  ): readonly Buffer[] | undefined => {
    const known = prepared.get(preset) ?? remember(preset);
    const { parameters, filter } = known;
    const longer = lacksKeys || lacksAll(body, parameters) ? append(body, known) : undefined;
    if (longer !== undefined) return longer;
    const finder = new ParameterFinder(parameters);
    const renamed = hasModel ? renameModel(body, parameters) : undefined;
    if (renamed !== undefined) return [renamed];
    const scanner = new JsonScanner(filter, finder);
    for (const chunk of body) scanner.feed(chunk);
    if (scanner.status !== 'done') return undefined;
    return splice(body, finder.edits(offsetOfEnd(body), isEmpty(body)));
  };
}

/** A shortcut for small bodies, which were checked as they arrived: false where a key might be there. */
function lacksAll(chunks: readonly Buffer[], parameters: readonly Parameter[]): boolean {
  const [body] = chunks;
  if (body === undefined || chunks.length > 1 || body.length > SEARCHED_BYTES) return false;
  return !hasEscape(body) && parameters.every(({ key }) => !body.includes(key));
}

/** Most bodies have no backslash, which is found out faster. */
const hasEscape = (body: Buffer): boolean => body.includes(BACKSLASH) && body.includes(ESCAPE);

/** Copies nothing. Undefined: the last chunk alone does not tell whether the object has fields. */
function append(body: readonly Buffer[], { added, lastFields }: Prepared): readonly Buffer[] | undefined {
  const last = body.at(-1) ?? EMPTY;
  const end = last[last.length - 1] === CLOSE_BRACE ? last.length - 1 : last.lastIndexOf(CLOSE_BRACE);
  const before = lastMark(last, end);
  if (before === undefined || before === OPEN_BRACE) return undefined;
  const pieces = end === last.length - 1 ? [last.subarray(0, end), lastFields] : [last.subarray(0, end), added, last.subarray(end)];
  return body.length === 1 ? pieces : [...body.slice(0, -1), ...pieces];
}

/** The last byte before `end` that is no space. Undefined: there is none. */
function lastMark(chunk: Buffer, end: number): number | undefined {
  for (let at = end - 1; at >= 0; at -= 1) {
    const byte = chunk[at] ?? 0;
    if (byte > SPACE) return byte;
  }
  return undefined;
}

const EMPTY = Buffer.alloc(0);
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Another shortcut, for what remotes get: the only key `model` of a small body gets another value, without escapes. */
function renameModel([body, ...more]: readonly Buffer[], [parameter, ...others]: readonly Parameter[]): Buffer | undefined {
  if (body === undefined || more.length > 0 || body.length > SEARCHED_BYTES || parameter === undefined || others.length > 0)
    return undefined;
  const { key, value, isForced } = parameter;
  if (!isForced || !key.equals(MODEL_KEY) || hasEscape(body)) return undefined;
  const at = body.indexOf(key);
  if (body.indexOf(key, at + 1) !== -1) return undefined;
  const from = body.indexOf(QUOTE, at + key.length);
  const to = body.indexOf(QUOTE, from + 1) + 1;
  if (from === -1 || to === 0 || body.subarray(from, to).includes(BACKSLASH)) return undefined;
  return Buffer.concat([body.subarray(0, from), value, body.subarray(to)]);
}

const MODEL_KEY = Buffer.from('"model"');

function prepare({ set, force, cap = {} }: PresetParameters): Prepared {
  const all = { ...set, ...force, ...cap };
  const fields = Object.keys(all).map((key, tag) => [key, { tag }] as const);
  const parameters = Object.entries(all).map(([key, value]): Parameter => {
    const text = JSON.stringify(value);
    const quoted = JSON.stringify(key);
    return {
      isForced: Object.hasOwn(force, key),
      most: cap[key],
      key: Buffer.from(quoted),
      value: Buffer.from(text),
      field: Buffer.from(`,${quoted}:${text}`),
    };
  });
  const firstCap = parameters.find(({ most }) => most !== undefined);
  const missing = parameters.filter((parameter) => parameter.most === undefined || parameter === firstCap);
  const added = Buffer.concat(missing.map(({ field }) => field));
  return { parameters, filter: { fields: jsonFields(Object.fromEntries(fields)) }, added, lastFields: Buffer.concat([added, END]) };
}

/** Finds the values that the body has. The last one of repeated keys counts, and `null` stands for none. */
class ParameterFinder implements JsonEvents<number> {
  readonly #parameters: readonly Parameter[];
  readonly #found: { readonly tag: number; readonly from: number; to: number; readonly raw?: string }[] = [];

  constructor(parameters: readonly Parameter[]) {
    this.#parameters = parameters;
  }

  onString(tag: number, from: number, to: number): void {
    this.#found.push({ tag, from, to });
  }

  onScalar(tag: number, raw: string, from: number, to: number): void {
    this.#found.push({ tag, from, to, raw });
  }

  onOpen(tag: number, _isArray: boolean, from: number): void {
    this.#found.push({ tag, from, to: from });
  }

  onClose(_tag: number, to: number): void {
    const last = this.#found.at(-1);
    if (last !== undefined) last.to = to;
  }

  /**
   * In their order. New fields come last, where every parser of servers prefers them. `end`: of the object.
   * `hasNone`: it has no field.
   */
  edits(end: number, hasNone: boolean): readonly Edit[] {
    const replaced = this.#found.flatMap((place): readonly Edit[] => {
      const parameter = this.#parameters[place.tag];
      if (parameter === undefined) return [];
      const isMissing = place.raw === 'null' && this.#found.findLast(({ tag }) => tag === place.tag) === place;
      const isOver = parameter.most !== undefined && !isWithin(place.raw, parameter.most);
      return parameter.isForced || isMissing || isOver ? [[place.from, place.to, parameter.value]] : [];
    });
    const hasCap = this.#found.some(({ tag }) => this.#parameters[tag]?.most !== undefined);
    const firstCap = hasCap ? undefined : this.#parameters.find(({ most }) => most !== undefined);
    const missing = this.#parameters.filter(
      (parameter, index) => (parameter.most === undefined || parameter === firstCap) && !this.#found.some(({ tag }) => tag === index),
    );
    return [...replaced, ...missing.map(({ field }, index): Edit => [end, end, hasNone && index === 0 ? field.subarray(1) : field])];
  }
}

const isWithin = (raw = '', most: number): boolean => /^\d/.test(raw) && Number(raw) <= most;

/** The body is one object. */
function isEmpty(body: readonly Buffer[]): boolean {
  let isInside = false;
  for (const chunk of body.toReversed()) {
    const end: number = isInside ? chunk.length : chunk.lastIndexOf(CLOSE_BRACE);
    isInside ||= end !== -1;
    const before = lastMark(chunk, end);
    if (before !== undefined) return before === OPEN_BRACE;
  }
  return true;
}

function offsetOfEnd(body: readonly Buffer[]): number {
  let begin = body.reduce((bytes, { length }) => bytes + length, 0);
  for (let index = body.length - 1; index >= 0; index -= 1) {
    const at = body[index]?.lastIndexOf(CLOSE_BRACE) ?? -1;
    begin -= body[index]?.length ?? 0;
    if (at !== -1) return begin + at;
  }
  return 0;
}

const SPACE = 0x20;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const END = Buffer.from('}');

/** The edits do not overlap. */
function splice(body: readonly Buffer[], edits: readonly Edit[]): readonly Buffer[] {
  const pieces: Buffer[] = [];
  let next = 0;
  let begin = 0;
  /** Offset up to which the body was taken over or replaced. */
  let done = 0;
  for (const chunk of body) {
    const end = begin + chunk.length;
    for (let edit = edits[next]; edit !== undefined && edit[0] < end; edit = edits[next]) {
      const [from, to, bytes] = edit;
      if (from > done) pieces.push(chunk.subarray(done - begin, from - begin));
      pieces.push(bytes);
      done = to;
      next += 1;
    }
    if (done < end) {
      pieces.push(chunk.subarray(done - begin));
      done = end;
    }
    begin = end;
  }
  return pieces;
}
