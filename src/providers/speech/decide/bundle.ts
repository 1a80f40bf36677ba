/** The files of a model for sherpa-onnx, as its releases name them: which of those in a directory belong to the model. Pure. */

export interface BundleShape {
  readonly family: string;
  /** One file for each pattern, which the engine loads as a network. */
  readonly networks: readonly RegExp[];
  /** One more file for each of these. */
  readonly others: readonly RegExp[];
  /** It is another model if there is a file or a directory like this. */
  readonly without?: RegExp;
}

export interface Bundle {
  readonly family: string;
  readonly networks: readonly string[];
  readonly others: readonly string[];
}

/** The first shape whose files are all there. */
export function findBundle(shapes: readonly BundleShape[], names: readonly string[]): Bundle | undefined {
  for (const { family, networks, others, without } of shapes) {
    if (without !== undefined && names.some((name) => without.test(name))) continue;
    const found = { networks: networks.map((pattern) => pick(pattern, names)), others: others.map((pattern) => pick(pattern, names)) };
    const bundle = { family, networks: found.networks.flatMap(listOf), others: found.others.flatMap(listOf) };
    if (bundle.networks.length === networks.length && bundle.others.length === others.length) return bundle;
  }
  return undefined;
}

/** A network that is named after what it does, with the name of the model before it or its precision after it: `base.en-encoder.int8.onnx`. */
export function network(role: string): RegExp {
  return new RegExp(`^(?:.*[-_.])?${role}(?:[-_.].*)?\\.(?:onnx|ort)$`);
}

/** Releases often have each network twice; the quantised one is loaded, because it is faster on a CPU. */
function pick(pattern: RegExp, names: readonly string[]): string | undefined {
  const matching = names.filter((name) => pattern.test(name)).toSorted((a, b) => (a < b ? -1 : 1));
  return matching.find((name) => name.includes('int8')) ?? matching[0];
}

function listOf(name: string | undefined): readonly string[] {
  return name === undefined ? [] : [name];
}
