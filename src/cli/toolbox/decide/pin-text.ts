/** Writes the entry of an image into the text of a toolbox manifest, and leaves everything else in it as it is. Pure. */
import type { Backend, ProviderKind } from '../../../schema/slot/provider-kinds.ts';

export interface PinnedImage {
  readonly image: string;
  /** `id` of an image that was built on this machine, `digest` of one that is published. */
  readonly by: 'id' | 'digest';
  /** 64 hexadecimal digits. */
  readonly sha256: string;
}

export function withPin(text: string, kind: ProviderKind, backend: Backend, { image, by, sha256 }: PinnedImage): string {
  const entry = [`[${kind}.${backend}]`, `image = "${image}"`, `${by} = "sha256:${sha256}"`];
  const lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
  const header = new RegExp(`^\\s*\\[\\s*${kind}\\s*\\.\\s*${backend}\\s*\\]\\s*(?:#.*)?$`);
  const start = lines.findIndex((line) => header.test(line));
  if (start === -1) return `${[...lines, ...(lines.length === 0 ? [] : ['']), ...entry].join('\n')}\n`;
  const next = lines.findIndex((line, index) => index > start && /^\s*\[/.test(line));
  const end = next === -1 ? lines.length : next;
  const rest = lines.slice(end);
  return `${[...lines.slice(0, start), ...entry, ...(rest.length === 0 ? [] : ['', ...rest])].join('\n')}\n`;
}
