/**
 * Finds unsafe edits through the API: environment variables and arguments with which a server loads code or accesses
 * files of the editor's choice, and what a pod may reach in a cluster. Editors of slot files and SlotSpecs can run
 * programs anyway; callers of the API may not.
 */
import { isTable, toSnakeCase } from '../../../schema/words/key-case.ts';
import { tableAt, valueAt } from '../../../schema/pod/kube-fields.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { DEFAULT_PROVIDER_OF_SLOT, type ProviderKind } from '../../../schema/slot/provider-kinds.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import type { SpecProblem } from '../../../schema/slot/spec-problem.ts';
import { hideValues } from '../../../auth/decide/decide-access.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';

type Document = Readonly<Record<string, unknown>>;

export interface Edit {
  readonly name: SlotName;
  /** The stored document; undefined for a new slot. */
  readonly before: Document | undefined;
  readonly after: Document;
}

/** The flags that a provider's server may get from anyone. Undefined: none. */
export type SafeFlags = (kind: ProviderKind) => ReadonlySet<string> | undefined;

/** Interpreters, the dynamic linker, and search paths of programs and their settings. In upper case. */
const UNSAFE_NAMES =
  /^(?:LD_|DYLD_|GLIBC_|MALLOC_|NODE_|NPM_|PYTHON|PERL|RUBY|GEM_|BUNDLE_|LUA_|PHP|JAVA_|_JAVA_|JDK_|DOTNET_|CORECLR_|COR_|BASH|ZDOT|GIT_|LLAMA_|OPENSSL_|VK_|OCL_|OPENCL_|ROCP|HSA_TOOLS|CUDA_INJECTION|XDG_|HF_ENDPOINT$|(?:ENV|PATH|HOME|SHELL|SHELLOPTS|PS4|IFS|CDPATH|PROMPT_COMMAND|CLASSPATH|LOCPATH|NLSPATH|GCONV_PATH|HOSTALIASES|SSLKEYLOGFILE|TMPDIR|TMP|TEMP|EDITOR|PAGER|BROWSER)$)/;
/** Whatever else names a file, a directory, a library or options of a program. */
const UNSAFE_ENDINGS =
  /(?:^|_)(?:PATHS?|DIRS?|DIRECTORY|HOME|ROOT|FILES?|FILENAMES?|LIBS?|LIBRARY|LIBRARIES|MODULES?|PLUGINS?|PRELOAD|OPTIONS|OPTS|COMMAND|CMD|STARTUP|HOOKS?|CACHE|CONFIG|LAYERS?|MALLOC_CONF)$/;

/** `what`: with the reason. */
const unsafe = (path: readonly string[], what: string): SpecProblem => ({
  path,
  message: `The API may not set ${what}: set it in the file of the slot, or with "kubectl" in a cluster, or permit it with "SVC_ALLOW_UNSAFE_EDITS"`,
});

/** A variable with which a server can load code or use other files. Case does not matter. Pure. */
export function isUnsafeVariable(name: string): boolean {
  const upper = name.toUpperCase();
  return UNSAFE_NAMES.test(upper) || UNSAFE_ENDINGS.test(upper);
}

/** Returns one problem for each unsafe setting that the edit adds or changes; what was stored before may stay. Pure. */
export function findUnsafeEdits({ name, before, after }: Edit, safeFlags: SafeFlags): readonly SpecProblem[] {
  return [...unsafeVariables(before, after), ...unsafeArguments({ name, before, after }, safeFlags), ...unsafePods(before, after)];
}

/** Tables of a slot with their safe keys. All other keys in them are unsafe, including future ones. */
const SAFE_KEYS: Readonly<Record<string, readonly string[]>> = {
  pod: ['server', 'model', 'affinity', 'topologySpreadConstraints'],
  'pod.server': ['resources'],
  'pod.model': ['resources'],
  storage: ['size', 'className', 'accessModes', 'claimName'],
  remote: ['timeout', 'serves'],
  program: [],
};

const WHAT_TABLES_DECIDE: Readonly<Record<string, string>> = {
  remote: 'where requests of the slot go',
  program: 'which program the slot runs',
};

function unsafePods(before: Document | undefined, after: Document): readonly SpecProblem[] {
  const inTables = Object.entries(SAFE_KEYS).flatMap(([table, safe]) => {
    const path = table.split('.');
    const stored = tableAt(before, ...path);
    return Object.entries(tableAt(after, ...path))
      .filter(([key, value]) => !safe.includes(key) && !isSameValue(stored[key], value))
      .map(([key]) => [...path, key]);
  });
  const account = after['serviceAccountName'];
  const isNewAccount = account !== undefined && account !== before?.['serviceAccountName'];
  return [...(isNewAccount ? [['serviceAccountName']] : []), ...inTables].map((path) =>
    unsafe(path, WHAT_TABLES_DECIDE[path[0] ?? ''] ?? 'this key, which decides what the pods of the slot can reach'),
  );
}

function unsafeVariables(before: Document | undefined, after: Document): readonly SpecProblem[] {
  const stored = tableAt(before, 'env');
  return Object.entries(tableAt(after, 'env'))
    .filter(([key, value]) => isUnsafeVariable(key) && stored[key] !== value)
    .map(([key]) => unsafe(['env', key], `the variable "${key}", which can make a server load code or use other files`));
}

function unsafeArguments({ name, before, after }: Edit, safeFlags: SafeFlags): readonly SpecProblem[] {
  const kind = kindOf(name, after);
  const safe = (kind === undefined ? undefined : safeFlags(kind)) ?? new Set<string>();
  const stored = new Set(before !== undefined && kindOf(name, before) === kind ? groupsIn(before).map(({ text }) => text) : []);
  return groupsIn(after)
    .filter(({ flag, text }) => !safe.has(flag) && !stored.has(text))
    .map(({ flag }) => unsafe(['model', 'args'], `the argument "${flag}", which is not known to be safe`));
}

type Group = Readonly<{ flag: string; text: string }>;

/** Splits arguments at the flags. A value before the first flag counts as a flag of its own. */
function groupsIn(document: Document): readonly Group[] {
  const listed: unknown = valueAt(document, 'model', 'args');
  const words = Array.isArray(listed) ? listed.map(String) : [];
  const groups: { flag: string; text: string }[] = [];
  for (const word of words) {
    const last = groups.at(-1);
    if (last === undefined || isFlag(word)) groups.push({ flag: word.split('=', 1)[0] ?? word, text: JSON.stringify(word) });
    else last.text += ` ${JSON.stringify(word)}`;
  }
  return groups;
}

/** Negative numbers are values. */
const isFlag = (word: string): boolean => word.startsWith('-') && !/^-\d/.test(word);

function kindOf(name: SlotName, document: Document): ProviderKind | undefined {
  const written = document['provider'];
  return typeof written === 'string' ? written : DEFAULT_PROVIDER_OF_SLOT[name];
}

/** Lists the changes of an edit, key by key, without the values that `hideValues` hides. Pure. */

interface KeyChange {
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

/** Documents have keys in camelCase; undefined: no slot. */
export function listChanges(before: unknown, after: unknown, shows: 'all' | 'public' = 'public'): readonly KeyChange[] {
  return [...changesBelow([], { before: toSnakeCase(before), after: toSnakeCase(after), shows })];
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

type Compared = Readonly<{ before: unknown; after: unknown; shows: 'all' | 'public' }>;

function* changesBelow(path: readonly string[], { before, after, shows }: Compared): Generator<KeyChange> {
  if (isSameValue(before, after)) return;
  const tables = [before, after].filter((value) => value !== undefined);
  if (tables.every(isTable)) {
    const keys = new Set(tables.flatMap((table) => Object.keys(table)));
    for (const key of keys) yield* changesBelow([...path, key], { before: valueAt(before, key), after: valueAt(after, key), shows });
    return;
  }
  // Only its place in the document tells what must be hidden.
  const hide = (value: unknown): unknown => {
    const document = path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
    return value === undefined || shows === 'all' ? value : valueAt(hideValues(document), ...path);
  };
  yield { key: path.join('.'), before: hide(before), after: hide(after) };
}

const valueText = (value: unknown): string => shorten(JSON.stringify(value) ?? 'nothing', MOST_CHARACTERS);
