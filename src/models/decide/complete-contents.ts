/** Completes what the files of a model say by what the catalogue states. The files have the last word. Pure. */
import type { ModelContents } from '../../providers/provider.ts';

/** Some files do not say everything: the header of some embedding models does not say how to pool. */
export function completeContents(found: ModelContents | undefined, stated: ModelContents | undefined): ModelContents | undefined {
  if (stated === undefined) return found;
  return { ...stated, ...Object.fromEntries(Object.entries(found ?? {}).filter(([, value]) => value !== undefined)) };
}
