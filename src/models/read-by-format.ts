/** Which provider reads a model. By the names of its files alone, a model may belong to several. */
import type { ModelFormat, StoreEntry } from '../providers/provider.ts';
import type { ProviderKind } from '../schema/slot/provider-kinds.ts';

/**
 * Reads a model with the first provider that knows files like its own and can use them, or with `provider` alone if that knows such files. Returns the last refusal
 * where none can use them, and undefined where none knows such files.
 */
export async function readByFormat<Read extends { readonly kind: string }>(
  formats: readonly ModelFormat[],
  { entry, provider }: { readonly entry: StoreEntry; readonly provider?: ProviderKind | undefined },
  read: (format: ModelFormat) => Promise<Read>,
): Promise<Read | undefined> {
  const knowing = formats.filter((each) => each.recognize(entry) !== undefined);
  const stated = knowing.find(({ kind }) => kind === provider);
  let refusal: Read | undefined;
  for (const format of stated === undefined ? knowing : [stated]) {
    const found = await read(format);
    if (found.kind !== 'unusable') return found;
    refusal = found;
  }
  return refusal;
}
