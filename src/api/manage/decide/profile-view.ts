/** A profile as the API shows it. Pure. */
import type { z } from 'zod';
import { isTable, toSnakeCase } from '../../../schema/words/key-case.ts';
import type { ProfileDetail, ProfileEntry } from '../../../schema/status/resource-answers.ts';
import { isActive, type Profile, type ProfileSummary } from '../../../schema/slot/profile-store.ts';
import type { Immutable } from '../../server/answer.ts';
import { hideEnvironment } from './hide-environment.ts';
import { viewProblem } from './slot-view.ts';

type Body<Schema extends z.ZodType> = Immutable<z.output<Schema>>;

export function viewProfile(profile: ProfileSummary): Body<typeof ProfileEntry> {
  return {
    name: profile.name,
    active: isActive(profile),
    problems: profile.problems.map(viewProblem),
    slots: profile.slots.map(({ name, change }) => ({ name, result: change })),
  };
}

/** `showsSecrets`: with the values of environment variables. */
export function viewProfileDetail(profile: Profile, { showsSecrets }: { readonly showsSecrets: boolean }): Body<typeof ProfileDetail> {
  return {
    ...viewProfile(profile),
    resource_version: profile.resourceVersion,
    slots: profile.slots.map(({ name, change, after }) => {
      const document = toSnakeCase(after);
      const spec = showsSecrets ? document : hideEnvironment(document);
      return { name, result: change, spec: isTable(spec) ? spec : {} };
    }),
  };
}
