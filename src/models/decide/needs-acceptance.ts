/** Which licences have to be accepted before a model is fetched. Pure. */

/**
 * Licences that allow any use: of the Open Source Initiative, and of Creative Commons those without limits to commercial use or changes. Everything else has to be
 * accepted by somebody, such as Meta's for Llama, Google's for Gemma, and the OpenRAIL licences, which restrict the use. Names as the Hub writes
 * them (https://huggingface.co/docs/hub/repositories-licenses), without regard to case.
 */
const OPEN_LICENSES: ReadonlySet<string> = new Set([
  'apache-2.0',
  'mit',
  'bsd',
  'bsd-2-clause',
  'bsd-3-clause',
  'isc',
  'zlib',
  'unlicense',
  '0bsd',
  'mpl-2.0',
  'lgpl-3.0',
  'gpl-2.0',
  'gpl-3.0',
  'agpl-3.0',
  'cc0-1.0',
  'cc-by-3.0',
  'cc-by-4.0',
  'cc-by-sa-3.0',
  'cc-by-sa-4.0',
  'pddl',
  'odc-by',
]);

export interface LicensedModel {
  readonly license: string | undefined;
  /** The source has asked for its terms to be accepted, and sends files only to who has. */
  readonly isGated?: boolean | undefined;
}

/** A model whose source names no licence needs nothing: there would be nothing to show. */
export function needsAcceptance({ license, isGated }: LicensedModel, accepted: ReadonlySet<string>): boolean {
  if (license === undefined || license === '' || isGated === true) return false;
  const name = license.toLowerCase();
  return !OPEN_LICENSES.has(name) && !accepted.has(name);
}
