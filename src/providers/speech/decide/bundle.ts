/** Finds the files of a model for sherpa-onnx by the names of its releases. Pure. */
export interface BundleShape {
  readonly family: string;
  readonly networks: readonly RegExp[];
  readonly others: readonly RegExp[];
  readonly without?: RegExp;
  /** Quantised networks are taken only where there are no others. */
  readonly floatsFirst?: boolean;
}

export type Bundle = { readonly family: string; readonly networks: readonly string[]; readonly others: readonly string[] };

export function findBundle(shapes: readonly BundleShape[], names: readonly string[]): Bundle | undefined {
  for (const { family, networks, others, without, floatsFirst = false } of shapes) {
    if (without !== undefined && names.some((name) => without.test(name))) continue;
    const found = {
      networks: networks.map((pattern) => pick(pattern, names, floatsFirst)),
      others: others.map((pattern) => pick(pattern, names)),
    };
    const bundle = { family, networks: found.networks.flatMap(listOf), others: found.others.flatMap(listOf) };
    if (bundle.networks.length === networks.length && bundle.others.length === others.length) return bundle;
  }
  return undefined;
}

/** The model name may precede the role, and the precision follow it: `base.en-encoder.int8.onnx`. */
export const network = (role: string): RegExp => new RegExp(`^(?:.*[-_.])?${role}(?:[-_.].*)?\\.(?:onnx|ort)$`);

export const TOKENS = /^(?:.*[-_.])?tokens\.txt$/;

/** Releases often have each network twice. The quantised one is faster on a CPU. */
function pick(pattern: RegExp, names: readonly string[], floatsFirst = false): string | undefined {
  const matching = names.filter((name) => pattern.test(name)).toSorted((a, b) => (a < b ? -1 : 1));
  return matching.find((name) => name.includes('int8') !== floatsFirst) ?? matching[0];
}

const listOf = (name: string | undefined): readonly string[] => (name === undefined ? [] : [name]);
