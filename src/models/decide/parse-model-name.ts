/** The names under which models can be asked for, besides those of files in the store and ids of the catalogue. Pure. */
import { nearestWord } from '../../schema/words/nearest-word.ts';

/** `hf:owner/repo`, `hf:owner/repo:quantisation` or `hf:owner/repo/path/of/file.gguf`. */
export interface HubName {
  /** `owner/repo`. */
  readonly repo: string;
  /** As it was written, such as `Q4_K_M`. Undefined if none is named. */
  readonly quantisation?: string;
  /** Path in the repository. */
  readonly file?: string;
}

type ParsedHubName =
  | { readonly kind: 'hub'; readonly name: HubName }
  /** Begins as the name of a model on the Hub, but cannot be one. */
  | { readonly kind: 'invalid'; readonly message: string }
  /** Something else: an id of the catalogue, or a file in the store. */
  | { readonly kind: 'other' };

const PREFIX = 'hf:';
/** Owners and repositories on the Hub have at most 96 characters, and neither begin nor end with "-" or ".". https://huggingface.co/docs/huggingface_hub (validate_repo_id) */
const OWNER_OR_REPO = /^(?![-.])(?!.*(?:--|\.\.))[A-Za-z0-9._-]{1,96}(?<![-.])$/;
const QUANTISATION = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
const SHAPE = 'Write the model as "hf:owner/repo", "hf:owner/repo:Q4_K_M" or "hf:owner/repo/file.gguf"';

export function parseHubName(text: string): ParsedHubName {
  if (!text.startsWith(PREFIX)) return { kind: 'other' };
  const [owner = '', repoPart = '', ...file] = text.slice(PREFIX.length).split('/');
  const [repo = '', quantisation, ...more] = repoPart.split(':');
  const isRepo = OWNER_OR_REPO.test(owner) && OWNER_OR_REPO.test(repo) && more.length === 0;
  if (!isRepo) return { kind: 'invalid', message: `${SHAPE}, not "${text}"` };
  const name = `${owner}/${repo}`;
  if (file.length === 0 && quantisation === undefined) return { kind: 'hub', name: { repo: name } };
  if (quantisation !== undefined) {
    const isWhole = QUANTISATION.test(quantisation) && file.length === 0;
    return isWhole ? { kind: 'hub', name: { repo: name, quantisation } } : { kind: 'invalid', message: `${SHAPE}, not "${text}"` };
  }
  return isPath(file)
    ? { kind: 'hub', name: { repo: name, file: file.join('/') } }
    : { kind: 'invalid', message: `${SHAPE}, not "${text}"` };
}

/** A path that cannot leave the directory that it is relative to. */
function isPath(parts: readonly string[]): boolean {
  return parts.every((part) => part !== '' && part !== '.' && part !== '..' && !/[\0\\]/.test(part));
}

/** Ids of the catalogue that somebody may have meant. Pure. */

/** A shorter word occurs in too many ids. */
const SHORTEST_PART = 3;
const MOST = 3;

/** Returns the end of a sentence, such as `; did you mean "qwen3-1.7b"?`, or nothing. */
export function suggestModels(word: string, ids: Iterable<string>): string {
  const known = [...ids];
  const near = nearestWord(word, known);
  const part = word.toLowerCase();
  const longer = part.length < SHORTEST_PART ? [] : known.filter((id) => id.toLowerCase().includes(part)).slice(0, MOST);
  const meant = longer.length > 0 ? longer : near === undefined ? [] : [near];
  const quoted = meant.map((id) => `"${id}"`);
  const last = quoted.pop();
  if (last === undefined) return '';
  return `; did you mean ${quoted.length === 0 ? last : `${quoted.join(', ')} or ${last}`}?`;
}
