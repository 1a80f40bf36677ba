/** Which inference paths workers serve: those of texts. Recordings, speech and images need files of the state directory, and take so long that another process gains nothing. Pure. */
import type { InferencePath } from '../../gateway/route/decide/inference-paths.ts';
import type { Capability } from '../../schema/slot/provider-kinds.ts';

const OF_TEXTS: ReadonlySet<Capability> = new Set(['chat', 'completion', 'embedding', 'rerank']);

export function isForWorkers({ capability }: Pick<InferencePath, 'capability'>): boolean {
  return OF_TEXTS.has(capability);
}
