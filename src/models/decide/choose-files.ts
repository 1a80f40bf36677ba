/** Chooses the files of a model in a repository as `llama-server -hf` does (llama.cpp, `common/download.cpp`). Pure. */
import { basename } from 'node:path';
import { formatSize } from '../../schema/words/quantities.ts';
import { ggufStem, shardNames } from '../../schema/slot/model-providers.ts';
import type { HubName } from './parse-model-name.ts';

export interface RepoFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** Hexadecimal; undefined for a file outside large file storage. */
  readonly sha256: string | undefined;
}

export interface ChosenFiles {
  readonly model: readonly [RepoFile, ...RepoFile[]];
  readonly projector: RepoFile | undefined;
  readonly quantisation: string | undefined;
}

export type FileChoice =
  | { readonly kind: 'chosen'; readonly files: ChosenFiles }
  | { readonly kind: 'none'; readonly message: string }
  | { readonly kind: 'too-large'; readonly message: string };

interface Candidate extends ChosenFiles {
  readonly sizeBytes: number;
}

/** Small models for speculative decoding. Complete models may have `-MTP-`. */
const DRAFT = /^mtp-|eagle3-|dflash-|dspark-/i;
/** Projectors and importance matrices. */
const BESIDE_A_MODEL = /mmproj|imatrix/i;
/** The default of llama.cpp, then similar ones. Some models are published in full quality as `MXFP4`. */
const PREFERRED = ['Q4_K_M', 'UD-Q4_K_XL', 'Q4_K_XL', 'Q4_K_S', 'Q4_K_L', 'Q4_0', 'MXFP4', 'IQ4_NL', 'IQ4_XS', 'Q5_K_M', 'Q6_K', 'Q8_0'];
const MAX_LISTED = 12;

export function chooseFiles(files: readonly RepoFile[], { repo, quantisation, file }: HubName, fitsBytes: number | undefined): FileChoice {
  const candidates = listCandidates(files);
  if (file !== undefined) return chooseNamed(files, candidates, repo, file);
  const [first] = candidates;
  if (first === undefined) return none(`"${repo}" has no GGUF files; name another repository`);
  if (quantisation !== undefined) {
    const found = candidates.find(({ model }) => hasQuantisation(model[0].path, quantisation));
    return found === undefined
      ? none(`"${repo}" has no quantisation "${quantisation}"; choose one of ${listOf(candidates)}`)
      : chosen(found);
  }
  const fitting = candidates.filter(({ sizeBytes }) => fitsBytes === undefined || sizeBytes <= fitsBytes);
  const preferred = PREFERRED.map((each) => fitting.find((candidate) => hasQuantisation(candidate.model[0].path, each))).find(Boolean);
  if (preferred !== undefined) return chosen(preferred);
  // Otherwise, the largest file that fits loses the least.
  const best = fitsBytes === undefined ? fitting[0] : fitting.toSorted((a, b) => b.sizeBytes - a.sizeBytes)[0];
  return best === undefined ? tooLarge(repo, candidates, fitsBytes ?? 0) : chosen(best);
}

export interface Quantisation {
  /** As in the file name, e.g. `Q4_K_M`. */
  readonly quantisation: string;
  /** Size of all its files, including the projector. */
  readonly sizeBytes: number;
}

/** Largest first. */
export function listQuantisations(files: readonly RepoFile[]): readonly Quantisation[] {
  const found = listCandidates(files).flatMap(({ quantisation, sizeBytes }) =>
    quantisation === undefined ? [] : [{ quantisation, sizeBytes }],
  );
  const unique = new Map(found.map((each) => [each.quantisation, each]));
  return [...unique.values()].toSorted((a, b) => b.sizeBytes - a.sizeBytes);
}

/** A model of a repository, and the name that a slot takes for it. */
export interface NamedModel extends Candidate {
  readonly uri: string;
}

/** Largest first. The name has the quantisation if that leads to these files, otherwise the path of the file. */
export function nameModels(repo: string, files: readonly RepoFile[], limit: number): readonly NamedModel[] {
  const candidates = listCandidates(files);
  const largest = candidates.toSorted((a, b) => b.sizeBytes - a.sizeBytes).slice(0, limit);
  return largest.map((candidate) => {
    const { quantisation, model } = candidate;
    const meant = quantisation && candidates.find((each) => hasQuantisation(each.model[0].path, quantisation));
    return { ...candidate, uri: meant === candidate ? `hf:${repo}:${quantisation}` : `hf:${repo}/${model[0].path}` };
  });
}

/** The first file of the repository for speculative decoding. */
export const draftOf = (files: readonly RepoFile[]): RepoFile | undefined =>
  files.find(({ path }) => /\.gguf$/i.test(path) && DRAFT.test(basename(path)));

export function quantisationOf(path: string): string | undefined {
  const stem = stemOf(path);
  return /(?:^|[-._])((?:UD-)?(?:I?Q[0-9]\w*|T?Q[0-9]_[0-9]\w*|TQ[0-9]_[0-9]|MXFP4\w*|NVFP4|BF16|F16|F32))$/i.exec(stem)?.[1];
}

function chooseNamed(files: readonly RepoFile[], candidates: readonly Candidate[], repo: string, file: string): FileChoice {
  const found = candidates.find(({ model }) => model.some(({ path }) => path === file));
  if (found !== undefined) return chosen(found);
  const other = files.find(({ path }) => path === file);
  if (other !== undefined) return chosen({ model: [other], projector: undefined, quantisation: undefined });
  const names = candidates.map(({ model }) => `"${model[0].path}"`);
  const advice = names.length === 0 ? 'it has no GGUF files' : `choose one of ${shorten(names)}`;
  return none(`"${repo}" has no file "${file}"; ${advice}`);
}

/** Each model once, in the order of the list. Skips split models with a missing shard. */
function listCandidates(files: readonly RepoFile[]): readonly Candidate[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  return files.flatMap((file): Candidate[] => {
    const name = basename(file.path);
    if (!/\.gguf$/i.test(name) || BESIDE_A_MODEL.test(name) || DRAFT.test(name)) return [];
    const names = shardNames(name);
    if (names[0] !== name) return [];
    const [first, ...more] = names.map((shard) => byPath.get(directoryOf(file.path) + shard));
    if (first === undefined || more.some((shard) => shard === undefined)) return [];
    const model = [first, ...more.flatMap((shard) => shard ?? [])] as const;
    const projector = projectorOf(file.path, files);
    const sizeBytes = [...model, ...(projector === undefined ? [] : [projector])].reduce((sum, each) => sum + each.sizeBytes, 0);
    return [{ model, projector, sizeBytes, quantisation: quantisationOf(file.path) }];
  });
}

/** `Q4_K_M` is in `model-Q4_K_M.gguf` and `Q4_K_M/model-00001-of-00002.gguf`, but not in `model-Q4_K_M_L.gguf`. */
function hasQuantisation(path: string, quantisation: string): boolean {
  const wanted = quantisation.toLowerCase();
  return path
    .toLowerCase()
    .split('/')
    .some((part) => part === wanted || new RegExp(`(?:^|[-._])${escape(wanted)}[-.]`).test(`${part}.`));
}

/** The nearest projector: in the directory of the model or above it, with the most similar number of bits. */
function projectorOf(model: string, files: readonly RepoFile[]): RepoFile | undefined {
  const projectors = files.filter(({ path }) => /mmproj[^/]*\.gguf$/i.test(path) && model.startsWith(directoryOf(path)));
  const bits = bitsOf(model);
  const rank = ({ path }: RepoFile): readonly [number, number] => [-directoryOf(path).length, Math.abs(bitsOf(path) - bits)];
  return projectors.toSorted((a, b) => rank(a)[0] - rank(b)[0] || rank(a)[1] - rank(b)[1] || (a.path < b.path ? -1 : 1))[0];
}

function bitsOf(path: string): number {
  const quantisation = quantisationOf(path) ?? '';
  return Number(/[0-9]+/.exec(quantisation)?.[0] ?? 16);
}

function chosen({ model, projector, quantisation }: ChosenFiles): FileChoice {
  return { kind: 'chosen', files: { model, projector, quantisation } };
}

const none = (message: string): FileChoice => ({ kind: 'none', message });

function tooLarge(repo: string, candidates: readonly Candidate[], fitsBytes: number): FileChoice {
  const smallest = candidates.toSorted((a, b) => a.sizeBytes - b.sizeBytes)[0];
  const named = smallest?.quantisation === undefined ? '' : `, "${smallest.quantisation}",`;
  const problem = `The smallest model of "${repo}"${named} has ${formatSize(smallest?.sizeBytes ?? 0)}, and ${formatSize(fitsBytes)} fit here`;
  return { kind: 'too-large', message: `${problem}; choose a smaller model, or name a quantisation to try it` };
}

function listOf(candidates: readonly Candidate[]): string {
  return shorten([...new Set(candidates.map(({ quantisation, model }) => `"${quantisation ?? basename(model[0].path)}"`))]);
}

function shorten(names: readonly string[]): string {
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : '';
  return names.slice(0, MAX_LISTED).join(', ') + more;
}

const directoryOf = (path: string): string => path.slice(0, path.lastIndexOf('/') + 1);
const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\-]/g, String.raw`\$&`);

export const stemOf = (path: string): string => ggufStem(basename(path));
