/** Lists the profiles, switches between them, and saves or deletes one. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp, useMay, type Change } from '../app-context.ts';
import { differentSlots, nearestProfile } from '../decide/slot-facts.ts';
import { ApiError } from '../io/client.ts';
import { SelectField } from '../parts/fields.tsx';
import { P } from '../texts-profiles.ts';
import type { ProfileEntry, Profiles, SwitchedProfile } from '../types.ts';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { SaveProfile } from './save-profile.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { useSelector } from '../parts/use-selector.ts';

/** Renders nothing in a cluster, which has no profiles. */
export function ProfileBar(): JSX.Element | null {
  const { client, store, change } = useApp();
  const mayEdit = useMay()('admin');
  const [round, setRound] = useState(0);
  const [chosen, setChosen] = useState<string>();
  const [open, setOpen] = useState<'save' | 'delete'>();
  const versions = useSelector(() => (store.names.value ?? []).map((name) => `${name} ${store.of(name)?.slot.value.resource_version}`));
  const listed = useLoaded(
    (signal) => client.fetchJson<Profiles>('/api/profiles', { signal }).catch(undefinedInCluster),
    // An edit of any slot can change which profile is active.
    [versions, round],
  );
  if (listed.kind === 'loading' || (listed.kind === 'done' && listed.value === undefined)) return null;
  if (listed.kind === 'failed') return <p role="alert">{listed.message}</p>;
  const { profiles = [], problems = [] } = listed.value ?? {};
  const shown = profiles.find(({ name }) => name === chosen) ?? nearestProfile(profiles);
  const close = (): void => setOpen(undefined);
  const reload = (): void => {
    close();
    setRound(round + 1);
  };
  return (
    <div class="profiles" role="group" aria-label={P.group}>
      {shown !== undefined && (
        <>
          <SelectField
            label={P.profile}
            value={shown.name}
            options={profiles.map((profile) => [profile.name, `${profile.name} · ${statusOf(profile)}`] as const)}
            onValue={setChosen}
            isInline
          />
          {mayEdit && (
            <button type="button" disabled={shown.active} onClick={() => (change.value = switchTo(shown.name))}>
              {P.switch}
            </button>
          )}
        </>
      )}
      {mayEdit && (
        <button type="button" disabled={versions.length === 0} onClick={() => setOpen('save')}>
          {P.save}
        </button>
      )}
      {mayEdit && shown !== undefined && (
        <button type="button" onClick={() => setOpen('delete')}>
          {P.delete}
        </button>
      )}
      {shown !== undefined && <Differences profile={shown} />}
      {problems.map(({ file, message }) => (
        <p key={file} role="alert">
          {file}: {message}
        </p>
      ))}
      {open === 'save' && <SaveProfile slots={store.names.value ?? []} onClose={close} onSaved={(name) => (setChosen(name), reload())} />}
      {open === 'delete' && shown !== undefined && <DeleteProfile name={shown.name} onClose={close} onDone={reload} />}
    </div>
  );
}

function Differences({ profile }: { readonly profile: ProfileEntry }): JSX.Element | null {
  const [problem] = profile.problems;
  if (problem !== undefined)
    return (
      <p role="alert">
        {[problem.file, problem.line].filter((part) => part !== null).join(':')} {problem.message}
      </p>
    );
  const different = differentSlots(profile);
  if (different.length === 0) return null;
  return (
    <p class="why">
      {P.differsIn} {different.join(', ')}
    </p>
  );
}

function statusOf(profile: ProfileEntry): string {
  if (profile.problems.length > 0) return P.invalid;
  return profile.active ? P.active : P.differs(differentSlots(profile).length);
}

function switchTo(name: string): Change {
  const path = `/api/profiles/${encodeURIComponent(name)}/apply`;
  return {
    title: `${P.switchTitle} "${name}"`,
    conflict: P.conflict,
    async plan(client, signal) {
      const dry = await client.fetchJson<SwitchedProfile>(path, { method: 'POST', body: { dry_run: true }, signal });
      return { plan: dry.plan, slots: dry.slots, version: dry.resource_version };
    },
    apply: (client, version) => client.fetchJson(path, { method: 'POST', body: {}, ifMatch: version }),
  };
}

function undefinedInCluster(error: unknown): undefined {
  if (error instanceof ApiError && error.code === 'profile.unsupported') return undefined;
  throw error;
}

interface DeleteProfileProps {
  readonly name: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function DeleteProfile({ name, ...rest }: DeleteProfileProps): JSX.Element {
  const path = `/api/profiles/${encodeURIComponent(name)}`;
  return <ConfirmDialog title={`${P.deleteTitle} "${name}"`} text={P.deleteWhy} action={P.deleteAction} path={path} {...rest} />;
}
