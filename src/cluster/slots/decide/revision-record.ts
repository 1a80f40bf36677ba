/** A revision of a slot as a ControllerRevision, and who else declares the slot. Pure. */
import { z } from 'zod';
import type { KubeManifest, KubeObject, OwnerReference } from '../../client/ports.ts';
import { FIELD_MANAGER, LABEL_PREFIX, LABELS, MANAGER } from '../../../schema/pod/kube-fields.ts';
import {
  REVISION_OUTCOMES,
  UNKNOWN_AUTHOR,
  type Author,
  type Revision,
  type RevisionOutcome,
} from '../../../schema/slot/revision-store.ts';
import type { SlotName } from '../../../schema/words/names.ts';

/** What is known of a revision beside its text. */
export interface RevisionFacts {
  readonly outcome?: RevisionOutcome;
  readonly author?: Author;
}

const OUTCOME = `${LABEL_PREFIX}/outcome`;
const AUTHOR = `${LABEL_PREFIX}/author`;
const UNDO_OF = `${LABEL_PREFIX}/undo-of`;

/** The UID is in it because the text of a ControllerRevision cannot change, and a slot may be made again. */
export const revisionName = (slot: SlotName, uid: string, generation: number): string =>
  `svc-slot-${slot}-${uid.slice(0, 8)}-${generation}`;

export function revisionManifest(
  slot: SlotName,
  owner: OwnerReference,
  text: { readonly generation: number; readonly spec: Readonly<Record<string, unknown>> },
  facts: RevisionFacts,
): KubeManifest {
  return {
    metadata: {
      name: revisionName(slot, owner.uid, text.generation),
      labels: { [LABELS.slot]: slot, [LABELS.managedBy]: MANAGER },
      annotations: annotationsOf(facts),
      ownerReferences: [owner],
    },
    revision: text.generation,
    data: { spec: text.spec },
  };
}

export function annotationsOf({ outcome, author }: RevisionFacts): Readonly<Record<string, string>> {
  return {
    ...(outcome === undefined ? {} : { [OUTCOME]: outcome }),
    ...(author === undefined ? {} : { [AUTHOR]: author.who }),
    ...(author?.undoOf === undefined ? {} : { [UNDO_OF]: String(author.undoOf) }),
  };
}

const Stored = z.object({
  revision: z.int().min(1),
  data: z.object({ spec: z.record(z.string(), z.unknown()) }),
  metadata: z.object({
    creationTimestamp: z.string(),
    annotations: z
      .object({
        [OUTCOME]: z.enum(REVISION_OUTCOMES).default('pending').catch('pending'),
        [AUTHOR]: z.string().default(UNKNOWN_AUTHOR.who),
        [UNDO_OF]: z.coerce.number().int().min(1).optional().catch(undefined),
      })
      .prefault({}),
    ownerReferences: z.array(z.object({ uid: z.string() })),
  }),
});

/** Undefined unless it is a revision of the object with this UID. */
export function parseRevision(object: KubeObject, uid: string): Revision | undefined {
  const stored = Stored.safeParse(object).data;
  if (stored?.metadata.ownerReferences.some((owner) => owner.uid === uid) !== true) return undefined;
  const { creationTimestamp, annotations } = stored.metadata;
  return {
    number: stored.revision,
    at: Date.parse(creationTimestamp) || 0,
    who: annotations[AUTHOR],
    undoOf: annotations[UNDO_OF],
    outcome: annotations[OUTCOME],
    document: stored.data.spec,
  };
}

const Managers = z.array(
  z.object({ manager: z.string(), subresource: z.string().optional(), fieldsV1: z.record(z.string(), z.unknown()).catch({}) }),
);

/** Edits by hand do not come back. */
const BY_HAND = new RegExp(`^(${MANAGER}|svcctl|${FIELD_MANAGER}.*|kubectl.*)$`);

/** Another program that has written the spec, such as a controller of GitOps, and would write it again. */
export function findOtherManager({ metadata }: KubeObject): string | undefined {
  const { managedFields }: KubeObject['metadata'] & { readonly managedFields?: unknown } = metadata;
  const writers = (Managers.safeParse(managedFields).data ?? []).filter(
    ({ subresource, fieldsV1 }) => subresource === undefined && Object.hasOwn(fieldsV1, 'f:spec'),
  );
  return writers.find(({ manager }) => !BY_HAND.test(manager))?.manager;
}
