/** Rules for names of slots and models, for programs that cannot wait for zod. Schemas: `names.ts`. Pure. */

/** A DNS label without `--`, so that `svc-slot-<slot>--<revision>` is a valid and unambiguous object name. */
export const SLOT_NAME_PATTERN = '^[a-z](?:-?[a-z0-9])*$';
export const SLOT_NAME_LENGTH = 40;

export const SLOT_NAME_RULE =
  'A slot name consists of lower-case letters, digits and single hyphens, starts with a letter and has at most 40 characters';

/**
 * A catalogue id, or the path of a file below the model store (`dir/file.gguf`).
 * It is never absolute and has no empty, `.` or `..` part, so joining it to a directory cannot leave that directory.
 * The pattern uses no look-ahead, which the regex engines of Kubernetes and of some editors do not support.
 */
export const MODEL_ID_PATTERN =
  '^(?:[A-Za-z0-9_]|\\.[A-Za-z0-9_:@+-]|\\.\\.[A-Za-z0-9_.:@+-])[A-Za-z0-9_.:@+-]*' +
  '(?:/(?:[A-Za-z0-9_:@+-]|\\.[A-Za-z0-9_:@+-]|\\.\\.[A-Za-z0-9_.:@+-])[A-Za-z0-9_.:@+-]*)*$';

export const MODEL_ID_RULE = 'A model id consists of letters, digits and "._:@+-" in parts separated by "/", and no part is "." or ".."';

export const MODEL_ID_LENGTH = 200;
export const MODEL_ID_TOO_LONG = `A model id has at most ${MODEL_ID_LENGTH} characters`;

/** A profile's name is a directory name and has the form of a slot's name. */
export const PROFILE_NAME_RULE =
  'A profile name consists of lower-case letters, digits and single hyphens, starts with a letter and has at most 40 characters';

/** Returns the problem with a profile's name, or undefined. */
export const profileNameProblem = (name: string): string | undefined =>
  slotNameProblem(name) === undefined ? undefined : PROFILE_NAME_RULE;

/** Returns the problem with a slot's name, or undefined. */
export function slotNameProblem(name: string): string | undefined {
  return name.length <= SLOT_NAME_LENGTH && new RegExp(SLOT_NAME_PATTERN).test(name) ? undefined : SLOT_NAME_RULE;
}

/** Returns the problem with a model id, or undefined. */
export function modelIdProblem(id: string): string | undefined {
  if (id.length > MODEL_ID_LENGTH) return MODEL_ID_TOO_LONG;
  return new RegExp(MODEL_ID_PATTERN).test(id) ? undefined : MODEL_ID_RULE;
}

/**
 * Versions of SlotSpecs that the API server serves, with the same schema: it converts by writing another
 * `apiVersion`. The next release uses and stores the last one; serving it now lets both work with either definition.
 */
export const SLOT_VERSIONS = ['v1alpha1', 'v1beta1'] as const;
export type SlotVersion = (typeof SLOT_VERSIONS)[number];

/** SubjectPublicKeyInfo of an ed25519 key in base64: the one line of a PEM file with such a key. */
export const PUBLIC_KEY = /^MCowBQYDK2VwAyEA[A-Za-z0-9+/]{43}=$/;

/** Name of a declared engine: the name of its file, and what slots write as "provider". */
export const ENGINE_NAME_PATTERN = '^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$';
export const ENGINE_NAME_RULE =
  'The name of an engine consists of lowercase letters, digits, "-" and ".", starts and ends with a letter or a digit, and has at most 63 characters';
