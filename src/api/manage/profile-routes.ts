/** Profiles over HTTP: named sets of slots on the host. A switch edits the slots as any other edit does. */
import { z } from 'zod';
import { tableAt } from '../../schema/pod/kube-fields.ts';
import { toCamelCase, toSnakeCase } from '../../schema/words/key-case.ts';
import { ProfileName, SlotName } from '../../schema/words/names.ts';
import { isActive, type Profile, type ProfileSlot, type ProfileStore, type ProfileSummary } from '../../schema/slot/profile-store.ts';
import { ProfileDetail, Profiles, SwitchedProfile, type ProfileEntry } from '../../schema/status/resource-answers.ts';
import type { SlotDocument } from '../../schema/slot/slot-spec.ts';
import { formatProblem, type SpecProblem } from '../../schema/slot/spec-problem.ts';
import { empty, json, ApiError, type Immutable } from '../server/answer.ts';
import { defineRoute, NoInput, SLOTS_BODY_BYTES, type DocumentedRoute } from '../server/define-route.ts';
import { viewProblem } from './decide/slot-view.ts';
import { unwrapEdit, ifMatchOf } from './edit-outcome.ts';
import type { ManageDeps } from './manage-deps.ts';

const ProfileParams = z.object({ name: ProfileName });
const IfMatch = z
  .object({
    'if-match': z.string().optional().describe('Refuse the switch if the profile or a slot does not have this resource version any more'),
  })
  .describe('Headers');
const IfNoneMatch = z
  .object({ 'if-none-match': z.string().optional().describe('"*": refuse to replace a profile of this name') })
  .describe('Headers');
const SaveBody = z.strictObject({
  slots: z
    .array(z.strictObject({ name: SlotName, spec: z.record(z.string(), z.unknown()).describe('The slot’s keys, as in its TOML file') }))
    .min(1)
    .max(1000)
    .optional()
    .describe('Contents of the profile. Default: all slots as they are now'),
});
const ApplyBody = z.strictObject({
  dry_run: z.boolean().default(false).describe('Show what the switch would do and write nothing'),
});

const NAME = { param: 'name' };
const PATH = '/api/profiles/:name';
const ETAG = { ETag: 'The resource version of the profile, in quotes' };

export function createProfileRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  return [listRoute(deps), readRoute(deps), saveRoute(deps), applyRoute(deps), deleteRoute(deps)];
}

function listRoute({ manage }: ManageDeps): DocumentedRoute {
  return defineRoute('GET', '/api/profiles', 'read', {
    tag: 'profiles',
    summary: 'The profiles, the active one, and the effect of a switch to each',
    input: NoInput,
    answers: { 200: json('The profiles in the order of their names', Profiles) },
    errors: ['profile.unsupported'],
    async handler() {
      const { profiles, problems } = await storeOf(manage).list();
      return { status: 200, body: { profiles: profiles.map(viewProfile), problems: problems.map(viewProblem) } };
    },
  });
}

function readRoute({ manage }: ManageDeps): DocumentedRoute {
  return defineRoute('GET', PATH, 'read', {
    tag: 'profiles',
    summary: 'One profile with the documents of its slots',
    input: z.object({ params: ProfileParams }),
    answers: { 200: json('The profile', ProfileDetail, ETAG) },
    errors: ['profile.not_found', 'profile.unsupported'],
    handler: async ({ params: { name } }) => ({ status: 200, ...detailOf(await existing(storeOf(manage), name)) }),
  });
}

function saveRoute({ manage }: ManageDeps): DocumentedRoute {
  return defineRoute('PUT', PATH, 'admin', {
    tag: 'profiles',
    bodyLimit: SLOTS_BODY_BYTES,
    summary: 'Saves all slots as they are now, or the given documents, as a profile ("If-None-Match: *": creates only)',
    input: z.object({ params: ProfileParams, headers: IfNoneMatch, body: SaveBody }),
    answers: { 200: json('The profile was replaced', ProfileDetail, ETAG), 201: json('The profile was created', ProfileDetail, ETAG) },
    errors: ['profile.conflict', 'profile.invalid', 'profile.unsupported', 'slot.invalid'],
    async handler({ params: { name }, headers, body }) {
      const store = storeOf(manage);
      const documents = body.slots && (await checkDocuments(manage, body.slots));
      const onlyNew = headers['if-none-match'] === '*';
      const saved = await store.save(name, { onlyNew, ...(documents === undefined ? {} : { documents }) });
      switch (saved.kind) {
        case 'saved':
          return { status: saved.created ? 201 : 200, ...detailOf(await existing(store, name)) };
        case 'exists':
          throw new ApiError('profile.conflict', `The profile "${name}" exists already: replace it, or choose another name`, NAME);
        case 'full':
          throw new ApiError('profile.unsupported', `There can be ${saved.limit} profiles at most: delete one first`);
        case 'invalid':
          throw invalid('save', name, saved.problems);
        case 'failed':
          throw new ApiError('server.internal', saved.message);
        default:
          return saved satisfies never;
      }
    },
  });
}

function applyRoute({ manage }: ManageDeps): DocumentedRoute {
  return defineRoute('POST', `${PATH}/apply`, 'admin', {
    tag: 'profiles',
    summary: 'Switches to a profile: changes all slots that differ at once, and disables those that it does not have',
    input: z.object({ params: ProfileParams, headers: IfMatch, body: ApplyBody }),
    answers: { 200: json('The result for each slot, and the plan of the controller', SwitchedProfile) },
    errors: ['profile.not_found', 'profile.conflict', 'profile.invalid', 'profile.unsupported', 'source.managed'],
    async handler({ params: { name }, headers, body }) {
      const store = storeOf(manage);
      const profile = await existing(store, name);
      const { ifMatch = profile.resourceVersion } = ifMatchOf(headers);
      if (ifMatch !== '*' && ifMatch !== profile.resourceVersion) throw changedMeanwhile(name);
      if (profile.problems.length > 0) throw invalid('switch to', name, profile.problems);
      const plan = await manage.preview(overlayOf(profile));
      // Applies exactly what was planned here.
      if (!body.dry_run) await apply(store, profile);
      const { slots } = viewProfile(profile);
      return { status: 200, body: { dry_run: body.dry_run, name, resource_version: profile.resourceVersion, slots, plan } };
    },
  });
}

function deleteRoute({ manage }: ManageDeps): DocumentedRoute {
  return defineRoute('DELETE', PATH, 'admin', {
    tag: 'profiles',
    summary: 'Deletes a profile; no slot changes',
    input: z.object({ params: ProfileParams }),
    answers: { 204: empty('The profile was deleted') },
    errors: ['profile.not_found', 'profile.unsupported'],
    async handler({ params: { name } }) {
      const store = storeOf(manage);
      const removed = await store.remove(name);
      if (removed === 'not-found') throw await noSuchProfile(store, name);
      if (removed !== 'removed') throw new ApiError('server.internal', removed.failure);
      return { status: 204, body: undefined };
    },
  });
}

async function apply(store: ProfileStore, { name, resourceVersion }: Profile): Promise<void> {
  const applied = await store.apply(name, { ifMatch: resourceVersion });
  switch (applied.kind) {
    case 'applied':
      return;
    case 'not-found':
      throw await noSuchProfile(store, name);
    case 'conflict':
      throw changedMeanwhile(name);
    case 'invalid':
      throw invalid('switch to', name, applied.problems);
    case 'managed':
      throw new ApiError('source.managed', applied.message);
    case 'failed':
      throw new ApiError('server.internal', applied.message);
    default:
      applied satisfies never;
  }
}

function overlayOf({ slots }: Profile): ReadonlyMap<SlotName, SlotDocument> {
  const isDocument = (slot: ProfileSlot): slot is ProfileSlot & { readonly after: SlotDocument } => slot.change !== 'unchanged';
  return new Map(slots.filter(isDocument).map(({ name, after }) => [name, after]));
}

type SentSlots = NonNullable<z.output<typeof SaveBody>['slots']>;

/** Checks documents from the API like edits. Profiles on disk were written by hand, in force or have passed this. */
async function checkDocuments({ editor }: ManageDeps['manage'], slots: SentSlots) {
  const documents = new Map<SlotName, Readonly<Record<string, unknown>>>();
  for (const [index, { name, spec }] of slots.entries()) {
    if (documents.has(name)) throw new ApiError('request.invalid', `Slot "${name}" is listed twice`, { param: `slots.${index}.name` });
    const document = toCamelCase(spec);
    unwrapEdit(name, await editor.put(name, document, { dryRun: true }));
    documents.set(name, tableAt(document));
  }
  return documents;
}

function storeOf({ profiles }: ManageDeps['manage']): ProfileStore {
  if (profiles !== undefined) return profiles;
  throw new ApiError(
    'profile.unsupported',
    'There are no profiles in a cluster, where slots are resources: keep several manifests or Kustomize overlays, and apply one of them with "kubectl apply"',
  );
}

async function existing(store: ProfileStore, name: ProfileName): Promise<Profile> {
  const profile = await store.read(name);
  if (profile === undefined) throw await noSuchProfile(store, name);
  return profile;
}

async function noSuchProfile(store: ProfileStore, name: ProfileName): Promise<ApiError> {
  const known = (await store.list()).profiles.map((profile) => `"${profile.name}"`).join(', ');
  const hint = known === '' ? 'none is saved' : `known profiles: ${known}`;
  return new ApiError('profile.not_found', `There is no profile "${name}" (${hint})`, NAME);
}

function changedMeanwhile(name: ProfileName): ApiError {
  const message = `The profile "${name}" or a slot has changed meanwhile: look at its plan again and repeat the switch`;
  return new ApiError('profile.conflict', message, { param: 'If-Match' });
}

function invalid(action: string, name: ProfileName, problems: readonly SpecProblem[]): ApiError {
  const text = problems.map((problem) => formatProblem(problem)).join('; ');
  return new ApiError('profile.invalid', `Cannot ${action} the profile "${name}", and nothing was changed: ${text}`);
}

const detailOf = (profile: Profile) => ({ body: viewProfileDetail(profile), headers: { etag: `"${profile.resourceVersion}"` } });

type Body<Schema extends z.ZodType> = Immutable<z.output<Schema>>;

function viewProfile(profile: ProfileSummary): Body<typeof ProfileEntry> {
  return {
    name: profile.name,
    active: isActive(profile),
    problems: profile.problems.map(viewProblem),
    slots: profile.slots.map(({ name, change }) => ({ name, result: change })),
  };
}

function viewProfileDetail(profile: Profile): Body<typeof ProfileDetail> {
  return {
    ...viewProfile(profile),
    resource_version: profile.resourceVersion,
    slots: profile.slots.map(({ name, change, after }) => ({ name, result: change, spec: tableAt(toSnakeCase(after)) })),
  };
}
