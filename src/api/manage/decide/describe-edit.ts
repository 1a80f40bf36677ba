/** Lists the changes of an edit, key by key, without secrets. Pure. */
import { isTable, toSnakeCase } from '../../../schema/words/key-case.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import { HIDDEN, hideEnvironment } from './slot-view.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';

export interface KeyChange {
  /** `model.default` */
  readonly key: string;
  /** Undefined where there was none. */
  readonly before: unknown;
  /** Undefined where there is none any more. */
  readonly after: unknown;
}

/** A document may have thousands of keys; people read the first ones. */
const MOST_CHANGES = 20;
const MOST_CHARACTERS = 100;

/** Documents have keys in camelCase; undefined: no slot. Values of environment variables are hidden. */
export function listChanges(before: unknown, after: unknown): readonly KeyChange[] {
  return [...changesBelow([], toSnakeCase(before), toSnakeCase(after))];
}

/** One sentence without a subject: `changed model.default from "a" to "b"`. */
export function changesText(changes: readonly KeyChange[]): string {
  const shown = changes.slice(0, MOST_CHANGES).map(({ key, before, after }) => {
    if (before === undefined) return `set ${key} to ${valueText(after)}`;
    return after === undefined
      ? `removed ${key}, which was ${valueText(before)}`
      : `changed ${key} from ${valueText(before)} to ${valueText(after)}`;
  });
  const more = changes.length - shown.length;
  if (more > 0) shown.push(`and ${more} more`);
  return shown.length === 0 ? 'changed nothing' : shown.join(', ');
}

function* changesBelow(path: readonly string[], before: unknown, after: unknown): Generator<KeyChange> {
  if (isSameValue(before, after)) return;
  const tables = [before, after].filter((value) => value !== undefined);
  if (tables.every(isTable)) {
    const keys = new Set(tables.flatMap((table) => Object.keys(table)));
    for (const key of keys) yield* changesBelow([...path, key], childOf(before, key), childOf(after, key));
    return;
  }
  const isSecret = path.includes('env');
  const hide = (value: unknown): unknown => (isSecret && value !== undefined ? HIDDEN : hideEnvironment(value));
  yield { key: path.join('.'), before: hide(before), after: hide(after) };
}

const childOf = (value: unknown, key: string): unknown => (isTable(value) ? value[key] : undefined);

function valueText(value: unknown): string {
  return shorten(JSON.stringify(value) ?? 'nothing', MOST_CHARACTERS);
}
