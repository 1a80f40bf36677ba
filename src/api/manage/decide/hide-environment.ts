/** Replaces the values of environment variables in a document: they may be passwords, and only administrators see them. Pure. */
import { isTable } from '../../../schema/words/key-case.ts';

export const HIDDEN = '(hidden)';

/** Covers `env` at any depth: as a table of variables, and as the list of `name` and `value` that containers of a pod overlay have. */
export function hideEnvironment(document: unknown): unknown {
  if (Array.isArray(document)) return document.map(hideEnvironment);
  if (!isTable(document)) return document;
  return Object.fromEntries(
    Object.entries(document).map(([key, value]) => [key, key === 'env' ? hideValues(value) : hideEnvironment(value)]),
  );
}

function hideValues(env: unknown): unknown {
  if (Array.isArray(env))
    return env.map((variable) => (isTable(variable) && 'value' in variable ? { ...variable, value: HIDDEN } : variable));
  return isTable(env) ? Object.fromEntries(Object.keys(env).map((name) => [name, HIDDEN])) : env;
}
