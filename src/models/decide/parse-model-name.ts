/** Names of models on the Hub, and suggestions for misspelt ids. Pure. */
import { nearestWord } from '../../schema/words/nearest-word.ts';

/** `hf:owner/repo`, `hf:owner/repo:quantisation` or `hf:owner/repo/path/of/file.gguf`. */
export interface HubName {
  readonly repo: string;
  readonly quantisation?: string;
  readonly file?: string;
}

type ParsedHubName =
  | { readonly kind: 'hub'; readonly name: HubName }
  | { readonly kind: 'invalid'; readonly message: string }
  /** An id of the catalogue, or a file in the store. */
  | { readonly kind: 'other' };

const PREFIX = 'hf:';
/** https://huggingface.co/docs/huggingface_hub (validate_repo_id) */
const OWNER_OR_REPO = /^(?![-.])(?!.*(?:--|\.\.))[A-Za-z0-9._-]{1,96}(?<![-.])$/;
const QUANTISATION = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
const SHAPE = 'write it as "hf:owner/repo", "hf:owner/repo:Q4_K_M" or "hf:owner/repo/file.gguf"';

export function parseHubName(text: string): ParsedHubName {
  if (!text.startsWith(PREFIX)) return { kind: 'other' };
  const [owner = '', repoPart = '', ...file] = text.slice(PREFIX.length).split('/');
  const [repo = '', quantisation, ...more] = repoPart.split(':');
  const invalid = { kind: 'invalid', message: `"${text}" is not a model on the Hub; ${SHAPE}` } as const;
  if (!OWNER_OR_REPO.test(owner) || !OWNER_OR_REPO.test(repo) || more.length > 0) return invalid;
  const name = `${owner}/${repo}`;
  if (file.length === 0 && quantisation === undefined) return { kind: 'hub', name: { repo: name } };
  if (quantisation !== undefined) {
    const isWhole = QUANTISATION.test(quantisation) && file.length === 0;
    return isWhole ? { kind: 'hub', name: { repo: name, quantisation } } : invalid;
  }
  return isPath(file) ? { kind: 'hub', name: { repo: name, file: file.join('/') } } : invalid;
}

function isPath(parts: readonly string[]): boolean {
  return parts.every((part) => part !== '' && part !== '.' && part !== '..' && !/[\0\\]/.test(part));
}

/** Shorter words match too many ids. */
const SHORTEST_PART = 3;
const MOST = 3;

/** Returns the end of a message, such as `; did you mean "qwen3-1.7b"?`, or an empty string. */
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

/** The programs whose models can be imported. Without imports, because svcctl loads it for `--help`. */
export const FOREIGN_TOOLS = ['ollama', 'lm-studio', 'llama.cpp', 'huggingface'] as const;
export type ForeignTool = (typeof FOREIGN_TOOLS)[number];
