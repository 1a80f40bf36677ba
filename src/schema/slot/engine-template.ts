/**
 * What a declared engine writes instead of code: words of its command with placeholders in braces, and formulas for its
 * memory. Words are filled in once, so a value that contains braces stays as it is, and each word stays one argument:
 * no shell is involved. Formulas are parsed and never run. Pure.
 */
import { nearestWord } from '../words/nearest-word.ts';
import { parseSizeBytes } from '../words/quantities.ts';

/**
 *     model     path of the model, or its name where the engine fetches it
 *     model_parent, model_base   directory of the model, and its name in it
 *     model_id  id of the model in the slot
 *     slot      name of the slot
 *     names     all names of the model: the slot, the id and the aliases; as a word of its own, one argument each
 *     host      address to listen on
 *     port      port to listen on
 *     context   context length that the slot sets
 *     gpus      number of GPUs that the slot sets
 */
const PLACEHOLDERS = {
  model: 'text',
  model_parent: 'text',
  model_base: 'text',
  model_id: 'text',
  slot: 'text',
  names: 'list',
  host: 'text',
  port: 'text',
  context: 'optional',
  gpus: 'optional',
} as const satisfies Record<string, 'text' | 'list' | 'optional'>;

export type Placeholder = keyof typeof PLACEHOLDERS;
export const PLACEHOLDER_NAMES = Object.keys(PLACEHOLDERS).filter((name): name is Placeholder => name in PLACEHOLDERS);
export type PlaceholderValues = Readonly<Record<Placeholder, string | readonly string[] | undefined>>;

/** `{{` and `}}` are braces. */
const PARTS = /\{\{|\}\}|\{([^{}]*)\}|[{}]/g;

/** Why a word cannot be used; undefined if it can. */
export function problemInWord(word: string): string | undefined {
  for (const [text, inner] of word.matchAll(PARTS)) {
    if (text === '{{' || text === '}}') continue;
    if (inner === undefined) return `Close the brace, or write "${text}${text}" for a brace: "${text}" stands alone`;
    const problem = problemInPlaceholder(inner, word);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function problemInPlaceholder(inner: string, word: string): string | undefined {
  const { name, isOptional } = readPlaceholder(inner);
  if (!isPlaceholder(name)) {
    const meant = nearestWord(name, PLACEHOLDER_NAMES);
    const known = PLACEHOLDER_NAMES.map((each) => `"{${each}${PLACEHOLDERS[each] === 'optional' ? '?' : ''}}"`).join(', ');
    return `Unknown placeholder "{${inner}}"; ${meant === undefined ? `known: ${known}` : `did you mean "{${meant}}"?`}`;
  }
  const type = PLACEHOLDERS[name];
  if (type === 'optional' && !isOptional) return `Write "{${name}?}": a slot need not set it, and the argument is then left out`;
  if (type !== 'optional' && isOptional) return `Write "{${name}}" without "?": it always has a value`;
  return type === 'list' && word !== `{${inner}}` ? `Write "{${name}}" as a word of its own: it may become several arguments` : undefined;
}

function readPlaceholder(inner: string): { readonly name: string; readonly isOptional: boolean } {
  const isOptional = inner.endsWith('?');
  return { name: isOptional ? inner.slice(0, -1) : inner, isOptional };
}

const isPlaceholder = (name: string): name is Placeholder => Object.hasOwn(PLACEHOLDERS, name);

/** The placeholders of a valid word. */
export function placeholdersIn(word: string): readonly Placeholder[] {
  return [...word.matchAll(PARTS)].flatMap(([, inner]) => (inner === undefined ? [] : [readPlaceholder(inner).name].filter(isPlaceholder)));
}

/** Fills in valid words. A word with a value that is not set is left out, and so is the flag before it. */
export function fillWords(words: readonly string[], values: PlaceholderValues): readonly string[] {
  const filled: string[] = [];
  for (const word of words) {
    const missing = placeholdersIn(word).some((name) => values[name] === undefined);
    if (missing && word.startsWith('{') && filled.at(-1)?.startsWith('-') === true) filled.pop();
    if (missing) continue;
    const list = word.startsWith('{') ? values[placeholdersIn(word)[0] ?? 'slot'] : undefined;
    if (Array.isArray(list)) filled.push(...list.map(String));
    else filled.push(fillWord(word, values));
  }
  return filled;
}

/** Fills in a valid word whose values are set. */
export function fillWord(word: string, values: PlaceholderValues): string {
  return word.replace(PARTS, (text, inner?: string) => {
    if (inner === undefined) return text.slice(0, 1);
    const { name } = readPlaceholder(inner);
    const value = isPlaceholder(name) ? values[name] : undefined;
    return typeof value === 'string' ? value : (value?.join(',') ?? '');
  });
}

/** `weights`: bytes of the model's files. `context`: tokens that the slot sets, else 0. `gpus`: devices, at least 1. */
export const FORMULA_NAMES = ['weights', 'context', 'gpus'] as const;
export type FormulaValues = Readonly<Record<(typeof FORMULA_NAMES)[number], number>>;

/** A formula has a few terms; each level of parentheses takes stack. */
export const MAX_FORMULA = 200;

const TOKEN = /\s*([0-9]+(?:\.[0-9]+)?(?:Ki|Mi|Gi|Ti|k|M|G|T)?(?![A-Za-z0-9.])|[A-Za-z_][A-Za-z0-9_]*|[-+*/()])/y;
const SAMPLES: readonly FormulaValues[] = [0, 4096, 131_072].map((context) => ({ weights: 2 ** 30, context, gpus: 1 }));

/** Why a text is no formula, or gives no size for an ordinary model; undefined if it is one. */
export function problemInFormula(text: string): string | undefined {
  try {
    for (const values of SAMPLES) computeBytes(text, values);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Throws for a text that is no formula, and where it gives no size. */
export function computeBytes(text: string, values: FormulaValues): number {
  const bytes = compute(text, values);
  if (Number.isFinite(bytes) && bytes >= 0) return Math.ceil(bytes);
  const given = FORMULA_NAMES.map((name) => `${name} = ${values[name]}`).join(', ');
  const why = Number.isFinite(bytes) ? 'it is negative' : 'it divides by zero or is too large';
  throw new Error(`The formula "${text}" gives no size for ${given}: ${why}`);
}

/** `sum = product { (+|-) product }`, `product = value { (*|/) value }`, `value = number | name | (sum) | -value`. */
function compute(text: string, values: FormulaValues): number {
  const tokens = tokensOf(text);
  const take = (...signs: readonly string[]): string | undefined => (signs.includes(tokens[0] ?? '') ? tokens.shift() : undefined);
  const sum = (): number => {
    let left = product();
    for (let sign = take('+', '-'); sign !== undefined; sign = take('+', '-')) left += (sign === '+' ? 1 : -1) * product();
    return left;
  };
  const product = (): number => {
    let left = value();
    for (let sign = take('*', '/'); sign !== undefined; sign = take('*', '/')) left *= sign === '*' ? value() : 1 / value();
    return left;
  };
  const value = (): number => {
    if (take('-') !== undefined) return -value();
    if (take('(') === undefined) return valueOf(tokens.shift(), values);
    const inner = sum();
    if (take(')') === undefined) throw new Error('Close the parenthesis with ")"');
    return inner;
  };
  const result = sum();
  if (tokens[0] !== undefined) throw new Error(`Write + - * or / before "${tokens[0]}"`);
  return result;
}

function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  const rest = text.trimEnd();
  for (let from = 0; from < rest.length; from = TOKEN.lastIndex) {
    TOKEN.lastIndex = from;
    const token = TOKEN.exec(rest)?.[1];
    if (token === undefined) throw new Error(`Write numbers, sizes such as "2Gi", names and + - * / ( ), not "${rest.slice(from).trim()}"`);
    tokens.push(token);
  }
  return tokens;
}

function valueOf(token: string | undefined, values: FormulaValues): number {
  if (token === undefined) throw new Error('Write a number, a size or a name at the end');
  if (/^[0-9]/.test(token)) return /[A-Za-z]$/.test(token) ? parseSizeBytes(token) : Number(token);
  const name = FORMULA_NAMES.find((each) => each === token);
  if (name !== undefined) return values[name];
  if (!/^[A-Za-z_]/.test(token)) throw new Error(`Write a number, a size or a name before "${token}"`);
  throw new Error(`Use one of ${FORMULA_NAMES.map((each) => `"${each}"`).join(', ')}, not "${token}"`);
}
