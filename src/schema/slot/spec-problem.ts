/** Validates a slot document, toolbox manifest or settings with zod, and explains how to fix each problem. */
import { z } from 'zod';
import { pathToSnakeCase, renameKey, writeKeys, type KeyStyle } from '../words/key-case.ts';
import { nearestWord, shorten } from '../words/nearest-word.ts';

/** `path` uses the schema's camelCase keys; sources add file, line and column. */
export interface SpecProblem {
  readonly path: readonly (string | number)[];
  /** What is wrong and how to fix it. */
  readonly message: string;
  readonly file?: string;
  /** Counted from 1. */
  readonly line?: number;
  /** Counted from 1. */
  readonly column?: number;
  /** How keys are written in the source of the problem. Default: snake_case. */
  readonly style?: KeyStyle;
}

export type CheckedDocument<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly SpecProblem[] };

/** Finding similar words takes time, and one megabyte may hold 100,000 unknown keys: the rest is only counted. */
const MAX_UNKNOWN_KEYS = 50;
/** Keeps a quoted value within one line. */
const MAX_QUOTED_CHARACTERS = 80;

/** Formats a problem as `img.toml:3:1: model.default: Write a string in quotes, not 5`. Pure. */
export function formatProblem(problem: SpecProblem, style: KeyStyle = problem.style ?? 'snake_case'): string {
  const place = [problem.file, problem.line, problem.column].filter((part) => part !== undefined).join(':');
  const path = pathIn(style, problem.path)
    .map((part) => shorten(String(part), MAX_QUOTED_CHARACTERS))
    .join('.');
  return [place, path, problem.message].filter((part) => part !== '').join(': ');
}

/** Validates a document and returns all of its problems at once. `style` determines how messages name keys. Pure. */
export function checkDocument<T>(schema: z.ZodType<T>, document: unknown, style: KeyStyle): CheckedDocument<T> {
  const parsed = schema.safeParse(document, { reportInput: true });
  if (parsed.success) return { ok: true, value: parsed.data };
  return { ok: false, problems: parsed.error.issues.flatMap((issue) => problemsOf(issue, schema, style)) };
}

function problemsOf(issue: z.core.$ZodIssue, schema: z.ZodType, style: KeyStyle): readonly SpecProblem[] {
  const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
  if (issue.code !== 'unrecognized_keys') return [{ path, message: describeIssue(issue, path, style) }];
  const named = issue.keys.slice(0, MAX_UNKNOWN_KEYS);
  const problems = named.map((key) => ({ path: [...path, key], message: describeUnknownKey(key, path, schema, style) }));
  const more = issue.keys.length - named.length;
  return more === 0 ? problems : [...problems, { path, message: `${more} more unknown keys: remove them` }];
}

function describeIssue(issue: z.core.$ZodIssue, path: SpecProblem['path'], style: KeyStyle): string {
  const value = issue.input;
  if (value === undefined && issue.code !== 'custom') {
    const verb = issue.code === 'invalid_type' && issue.expected === 'object' ? 'Add the table' : 'Set';
    return `${verb} "${pathIn(style, path).join('.')}": it is required`;
  }
  const secret = mayBeSecret(path);
  const notThis = secret ? '' : `, not ${quote(value)}`;
  switch (issue.code) {
    case 'invalid_type':
      return `Write ${EXPECTED[issue.expected] ?? issue.expected}, not ${secret && typeof value !== 'object' ? `a ${typeof value}` : quote(value)}`;
    case 'invalid_value': {
      const meant = typeof value === 'string' ? nearestWord(value, issue.values.map(String)) : undefined;
      const hint = meant === undefined ? '' : `; did you mean "${meant}"?`;
      return `Use one of ${issue.values.map((allowed) => `"${String(allowed)}"`).join(', ')}${notThis}${hint}`;
    }
    case 'too_small':
      return `Use at least ${issue.minimum}${UNITS[issue.origin] ?? ''}, not ${sizeOf(value)}`;
    case 'too_big':
      return `Use at most ${issue.maximum}${UNITS[issue.origin] ?? ''}, not ${sizeOf(value)}`;
    case 'invalid_key':
      return issue.issues[0]?.message ?? issue.message;
    case 'invalid_format':
      return `${issue.format === 'datetime' ? 'Write a time in UTC such as "2026-01-31T12:00:00Z"' : issue.message}${notThis}`;
    default:
      // Braces are placeholders in an engine, and keys elsewhere.
      return issue.code === 'custom' && issue.params?.['isPlain'] === true ? issue.message : writeKeys(issue.message, style);
  }
}

/** Messages end up in logs and responses. Environment variables and arguments of a slot may contain secrets. */
function mayBeSecret(path: SpecProblem['path']): boolean {
  return path.includes('env') || (path[0] === 'model' && path[1] === 'args') || /secret|password|token/i.test(String(path.at(-1)));
}

const EXPECTED: Readonly<Record<string, string>> = {
  boolean: 'true or false',
  string: 'a string in quotes',
  number: 'a number',
  int: 'a whole number',
  object: 'a table',
  record: 'a table',
  array: 'a list in brackets',
};

const UNITS: Readonly<Record<string, string>> = { string: ' characters', array: ' entries' };

const sizeOf = (value: unknown): string => (typeof value === 'string' || Array.isArray(value) ? String(value.length) : quote(value));

/** Formats a value for a message. The contents of tables and lists are left out: they may hold secrets. */
function quote(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(shorten(value, MAX_QUOTED_CHARACTERS));
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Date) return 'a date or time without quotes';
  return typeof value === 'object' && value !== null ? 'a table' : String(value);
}

const pathIn = (style: KeyStyle, path: SpecProblem['path']): SpecProblem['path'] => (style === 'snake_case' ? pathToSnakeCase(path) : path);

function describeUnknownKey(key: string, path: SpecProblem['path'], schema: z.ZodType, style: KeyStyle): string {
  const text = (name: string) => shorten(style === 'snake_case' ? renameKey(name) : name, MAX_QUOTED_CHARACTERS);
  const owned = whyOwned(path, key);
  if (owned !== undefined) return writeKeys(`Key "${text(key)}" is not allowed: ${owned}`, style);
  const known = keysAt(schema, path);
  const meant = nearestWord(key, known);
  if (meant !== undefined) return `Unknown key "${text(key)}"; did you mean "${text(meant)}"?`;
  const table = tableWith(schema, key);
  if (table === undefined) return `Unknown key "${text(key)}"; known here: ${known.map((name) => `"${text(name)}"`).join(', ')}`;
  const advice = table === '' ? 'move it to the top, before the first table' : `move it to [${text(table)}]`;
  return `Unknown key "${text(key)}" here; ${advice}`;
}

/** Returns the keys that are allowed at a path. */
function keysAt(schema: unknown, [part, ...rest]: SpecProblem['path']): readonly string[] {
  const node = unwrap(schema);
  if (node instanceof z.ZodArray) return part === undefined ? [] : keysAt(node.element, rest);
  if (node instanceof z.ZodRecord) {
    if (part !== undefined) return keysAt(node.valueType, rest);
    return node.keyType instanceof z.ZodEnum ? node.keyType.options.map(String) : [];
  }
  if (node instanceof z.ZodUnion) return node.options.flatMap((option) => keysAt(option, part === undefined ? [] : [part, ...rest]));
  if (!(node instanceof z.ZodObject)) return [];
  if (part === undefined) return Object.keys(node.shape);
  return Object.hasOwn(node.shape, part) ? keysAt(node.shape[part], rest) : [];
}

/** Returns the table that a key belongs in: '' is the top level, undefined means that no table has such a key. */
function tableWith(schema: z.ZodType, key: string): string | undefined {
  if (!(schema instanceof z.ZodObject)) return undefined;
  return ['', ...Object.keys(schema.shape)].find((table) => keysAt(schema, table === '' ? [] : [table]).includes(key));
}

function unwrap(node: unknown): unknown {
  return node instanceof z.ZodOptional || node instanceof z.ZodDefault || node instanceof z.ZodPrefault ? unwrap(node.unwrap()) : node;
}

/** Keys of pod templates that the overlay does not have, with what to do instead. */
const OF_PODS = adviceByKey({
  metadata: 'write "{labels}" and "{annotations}" directly under "pod"',
  spec: 'write its keys directly under "pod"',
  'containers initContainers': 'the controller decides which containers a pod has; "pod.server" and "pod.model" change theirs',
  ephemeralContainers: 'the controller decides which containers a pod has',
  'nodeSelector tolerations serviceAccountName': 'write it at the top of the slot, not under "pod"',
  serviceAccount: 'write "{serviceAccountName}" at the top of the slot',
  automountServiceAccountToken: 'pods get no token; mount one as a projected volume with "{serviceAccountToken}"',
  nodeName: 'use "{nodeSelector}" at the top of the slot, so that the scheduler can decide',
  'resources env envFrom volumeMounts': 'write it under "pod.server" or "pod.model"',
  resourceClaims: 'use "resources.gpus" of the slot, for which the controller makes claims',
  terminationGracePeriodSeconds: 'it follows from "{lifecycle}.{drainTimeout}"',
  restartPolicy: 'the pods of a Deployment are always restarted',
  enableServiceLinks: 'it is off, since variables of Services could change what model servers do',
  'hostNetwork hostPID hostIPC hostUsers shareProcessNamespace':
    'the pods of a slot have a network and processes of their own, which the controller relies on',
});

const OF_CONTAINERS = adviceByKey({
  name: 'the names of containers are fixed',
  image: 'images are in the toolbox manifest, for each provider and backend',
  imagePullPolicy: 'images are pinned by digest, so they are pulled once',
  'command args': 'the provider decides how the server is started; "model.args" appends arguments',
  workingDir: 'the provider decides how the server is started',
  ports: 'the provider decides the port, and the gateway finds it',
  lifecycle: 'the controller needs the hooks to let requests end before a pod does',
  'startupProbe readinessProbe livenessProbe':
    'the controller probes the model server as its provider requires; "{lifecycle}.{startTimeout}" is how long it may take to start',
  'terminationMessagePath terminationMessagePolicy': 'the controller reads from it why a server ended',
});

/** `table`: several keys with the same advice are separated by spaces. */
function adviceByKey(table: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(table).flatMap(([keys, advice]) => keys.split(' ').map((key) => [key, advice] as const)));
}

/** Returns why an unknown key at a path is unavailable; undefined if it is no key of pod templates. */
function whyOwned([first, container, ...rest]: readonly (string | number)[], key: string): string | undefined {
  if (first !== 'pod' || rest.length > 0) return undefined;
  if (container === undefined) return OF_PODS.get(key);
  return container === 'server' || container === 'model' ? OF_CONTAINERS.get(key) : undefined;
}

export const quoted = (values: readonly string[]): string => values.map((value) => `"${value}"`).join(', ');
