/** Who else wrote to a Deployment, as its `managedFields` say: enough to name the program that altered a field, and no more, as they take half the size of an object. Pure. */
import { z } from 'zod';
import { FIELD_MANAGER } from '../../../schema/object-labels.ts';

export const Writer = z.object({
  /** Programs choose their names themselves: `kubectl`, `kube-downscaler`, `HorizontalPodAutoscaler`. */
  manager: z.string(),
  /** RFC 3339; empty where the server does not say. */
  at: z.string(),
  /** The first part of each field below `spec` and `metadata` that it wrote last: `replicas`, `template`, `labels`. */
  fields: z.array(z.string()),
});
type Writer = z.output<typeof Writer>;

const Fields = z.record(z.string(), z.unknown());
export const ManagedFields = z.array(
  z.object({ manager: z.string().default('unknown'), time: z.string().nullish(), fieldsV1: Fields.default({}) }),
);

export function listWriters(managed: z.output<typeof ManagedFields>): Writer[] {
  return managed.flatMap(({ manager, time, fieldsV1 }) => {
    const fields = [...keysOf(fieldsV1['f:spec']), ...keysOf(fieldsV1['f:metadata'])];
    return manager === FIELD_MANAGER || fields.length === 0 ? [] : [{ manager, at: time ?? '', fields }];
  });
}

/** The program that wrote a field last; undefined where it is not known. */
export function writerOf(writers: readonly Writer[], [first]: readonly string[]): string | undefined {
  const candidates = writers.filter(({ fields }) => first !== undefined && fields.includes(first));
  return candidates.toSorted((a, b) => (a.at < b.at ? 1 : -1))[0]?.manager;
}

function keysOf(fields: unknown): readonly string[] {
  const table = Fields.safeParse(fields).data ?? {};
  return Object.keys(table).flatMap((key) => (key.startsWith('f:') ? [key.slice(2)] : []));
}
