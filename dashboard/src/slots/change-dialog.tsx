/** Shows the plan of a change, and applies it on confirmation. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp, type Change, type PlannedChange } from '../app-context.ts';
import { hashOf } from '../decide/route.ts';
import { ApiError, messageOf } from '../io/client.ts';
import { PAGE_NAMES, T } from '../texts.ts';
import { DialogFooter, Modal } from '../parts/modal.tsx';
import { PlanView } from '../parts/plan-view.tsx';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';

export function ChangeDialog(): JSX.Element | null {
  const { change } = useApp();
  return change.value === undefined ? null : <Planned key={change.value.title} change={change.value} />;
}

function Planned({ change }: { readonly change: Change }): JSX.Element {
  const app = useApp();
  const [attempt, setAttempt] = useState(0);
  const [applying, setApplying] = useState(false);
  const [failure, setFailure] = useState<unknown>(undefined);
  const planned = useLoaded(async (signal) => ({ ...(await change.plan(app.client, signal)), attempt }), [change, attempt]);
  // While the next plan loads, the last one stays visible but cannot be applied.
  const isPlanned = planned.kind === 'done' && planned.value.attempt === attempt;
  const fails = planned.kind === 'done' && planned.value.plan.failing.length > 0;
  // One slot of a profile that cannot load does not keep the others from it.
  const ofSeveral = planned.kind === 'done' && planned.value.slots !== undefined;
  const close = (): void => {
    app.change.value = undefined;
  };
  const apply = async (): Promise<void> => {
    if (planned.kind !== 'done') return;
    setApplying(true);
    try {
      await change.apply(app.client, planned.value.version);
      close();
      // The cards show the change as it happens; every other place would hide it.
      const { page, slot } = app.place.value;
      if (change.watch !== undefined && (page !== 'slots' || slot !== undefined)) location.hash = hashOf(change.watch);
    } catch (error) {
      setFailure(error);
    }
    setApplying(false);
  };
  const isConflict = failure instanceof ApiError && failure.status === 409;
  const replan = (): void => {
    setFailure(undefined);
    setAttempt(attempt + 1);
  };
  return (
    <Modal title={change.title} kind="dialog" onClose={close}>
      <LoadStatus loaded={planned} loading={T.planning} />
      {planned.kind === 'done' && <SlotResults slots={planned.value.slots ?? []} />}
      {planned.kind === 'done' && <PlanView plan={planned.value.plan} />}
      {fails && !ofSeveral && <p class="why">{T.applyFails}</p>}
      {failure !== undefined && <p role="alert">{isConflict ? change.conflict : messageOf(failure)}</p>}
      <DialogFooter
        onClose={close}
        action={isConflict ? T.refreshPlan : applying ? T.applying : fails && ofSeveral ? T.applyAnyway : T.apply}
        disabled={!isConflict && (!isPlanned || applying || (fails && !ofSeveral))}
        onAction={isConflict ? replan : () => void apply()}
      />
    </Modal>
  );
}

function SlotResults({ slots }: { readonly slots: NonNullable<PlannedChange['slots']> }): JSX.Element | null {
  if (slots.length === 0) return null;
  const same = slots.filter(({ result }) => result === 'unchanged').map(({ name }) => name);
  return (
    <section aria-label={PAGE_NAMES.slots}>
      <h3>{PAGE_NAMES.slots}</h3>
      <ul class="results">
        {slots.map(({ name, result }) =>
          result === 'unchanged' ? null : (
            <li key={name}>
              <strong>{name}</strong> <span>{T.slotResult[result]}</span>
            </li>
          ),
        )}
      </ul>
      {same.length > 0 && (
        <p class="why">
          {T.slotsUnchanged} {same.join(', ')}
        </p>
      )}
    </section>
  );
}
