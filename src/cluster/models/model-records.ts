/** Records of models and accepted licences as ConfigMaps. The first replica that creates a record has decided. */
import type { Pin } from '../../models/decide/pin.ts';
import type { ModelFacts } from '../../providers/provider.ts';
import type { Wake } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { ModelId } from '../../schema/words/names.ts';
import { LABELS, MANAGER } from '../../schema/pod/kube-fields.ts';
import type { KubeApi, Reflector } from '../client/ports.ts';
import { createReflector, wasListed, type RefreshableReflector, type ReflectorOptions } from '../client/reflector.ts';
import { CONFIG_MAPS } from '../client/decide/resource-path.ts';
import { parseOnce } from '../client/object-copy.ts';
import * as objects from './decide/model-record.ts';

export interface KnownRecord extends objects.ModelRecord {
  readonly facts: ModelFacts;
}

export type ModelRecords = ReturnType<typeof createModelRecords>;

export interface ModelRecordsOptions {
  readonly api: Pick<KubeApi, 'create' | 'remove'>;
  readonly copy: Reflector;
  readonly root: string;
  readonly acceptedLicenses: readonly string[];
}

/** Every replica needs them, since the facts of a model decide what it publishes of a slot. */
export function createRecordReflector(options: Omit<ReflectorOptions, 'type' | 'labelSelector'>): RefreshableReflector {
  return createReflector({ ...options, type: CONFIG_MAPS, labelSelector: `${LABELS.managedBy}=${MANAGER},${LABELS.model}` });
}

export function createModelRecords({ api, copy, root, acceptedLicenses }: ModelRecordsOptions) {
  const parse = parseOnce((object): KnownRecord | undefined => {
    const record = objects.parseRecordObject(object);
    return record === undefined ? undefined : { ...record, facts: objects.factsOfRecord(root, record) };
  });

  async function remove(id: ModelId, signal: AbortSignal): Promise<Result<void>> {
    const name = objects.recordName(id);
    const uid = copy.items().get(name)?.metadata.uid;
    const removed = await api.remove(CONFIG_MAPS, name, uid === undefined ? {} : { uid }, signal);
    if (removed.ok && uid !== undefined) copy.noteRemoved(name, uid);
    return removed;
  }

  async function create(manifest: Parameters<KubeApi['create']>[1], signal: AbortSignal): Promise<Result<'created' | 'there'>> {
    const created = await api.create(CONFIG_MAPS, manifest, signal);
    if (created.ok) copy.noteWritten(created.value);
    if (created.ok) return ok('created');
    return created.failure.reason === 'AlreadyExists' ? ok('there') : created;
  }

  return {
    isKnown: (): boolean => wasListed(copy),
    read(id: ModelId): KnownRecord | undefined {
      const object = copy.items().get(objects.recordName(id));
      return object === undefined ? undefined : parse(object);
    },
    list: (): readonly Pin[] => [...copy.items().values()].flatMap((object) => parse(object)?.pin ?? []),
    /** Keeps a record in place of the present one. If another replica was first, its record stays. */
    async create(record: objects.ModelRecord, signal: AbortSignal): Promise<Result<void>> {
      const manifest = objects.recordManifest(record);
      if (!manifest.ok) return manifest;
      if (copy.items().has(objects.recordName(record.pin.id))) {
        const removed = await remove(record.pin.id, signal);
        if (!removed.ok) return removed;
      }
      const created = await create(manifest.value, signal);
      if (!created.ok || created.value === 'created') return created.ok ? ok(undefined) : created;
      return fail('retry', 'ModelNotLookedUp', `Another replica has just resolved the model "${record.pin.id}"; its record is read next`);
    },
    remove,
    acceptedLicenses(): ReadonlySet<string> {
      const here = [...copy.items().values()].flatMap((object) => objects.parseLicenseObject(object) ?? []);
      return new Set([...acceptedLicenses.map((license) => license.toLowerCase()), ...here]);
    },
    async acceptLicense(license: string, model: string, signal: AbortSignal): Promise<Result<void>> {
      const created = await create(objects.licenseManifest(license, model, new Date().toISOString()), signal);
      return created.ok ? ok(undefined) : created;
    },
    changes: (wake: Wake, signal: AbortSignal): void => copy.changes(wake, signal),
  };
}
