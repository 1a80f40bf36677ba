/** What people paste to name a model: a name or page of the Hugging Face Hub, or the address of a file. Pure. */

export type ModelAddress =
  | { readonly kind: 'hub'; readonly id: string }
  /** `name`: proposed as its path in the model store. */
  | { readonly kind: 'file'; readonly url: string; readonly name: string };

const PART = '[\\w.-]+';
const REPOSITORY = new RegExp(`^${PART}/${PART}$`);
const HUB_NAME = new RegExp(`^(?:hf:(?://)?|(?:https://)?(?:www\\.)?(?:huggingface\\.co|hf\\.co)/)(${PART}/${PART})(.*)$`, 'i');
/** `/blob/main/x.gguf`, `/resolve/main/x.gguf`, `/tree/main`: a file of a branch, or the branch. */
const ON_A_BRANCH = /^\/(?:blob|resolve|raw)\/[^/]+\/(.+)$/;

/** Undefined for words that are to be searched for. */
export function parseModelAddress(text: string): ModelAddress | undefined {
  const pasted = text.trim().replace(/[?#].*$/s, '');
  const [, repository, rest = ''] = HUB_NAME.exec(pasted) ?? [];
  if (repository !== undefined) return { kind: 'hub', id: `hf:${repository}${partOf(rest)}` };
  if (REPOSITORY.test(pasted)) return { kind: 'hub', id: `hf:${pasted}` };
  if (!/^https?:\/\//i.test(pasted) || !URL.canParse(pasted)) return undefined;
  const name = decodedName(new URL(pasted).pathname);
  return { kind: 'file', url: text.trim(), name };
}

/** What follows the repository: a quantisation, a file, or a page that names none. */
function partOf(rest: string): string {
  const file = ON_A_BRANCH.exec(rest)?.[1];
  if (file !== undefined) return `/${decodedText(file)}`;
  if (/^:[\w.-]+$/.test(rest)) return rest;
  return /\.gguf$/i.test(rest) && !/^\/(?:tree|commit)\//.test(rest) ? decodedText(rest) : '';
}

const decodedName = (path: string): string =>
  decodedText(path.split('/').at(-1) ?? '')
    .replaceAll(/[^\w.-]+/g, '-')
    .replace(/^-+/, '');

function decodedText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
