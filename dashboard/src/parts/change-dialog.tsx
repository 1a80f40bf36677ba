/** Shows what a change will do, and makes it once the person agrees. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp, type Change } from '../app-context.ts';
import { applyPatch } from '../decide/patch.ts';
import { ApiProblem, messageOf } from '../io/client.ts';
import type { Plan, Slot } from '../types.ts';
import { T } from '../texts.ts';
import { Modal } from './modal.tsx';
import { PlanView } from './plan-view.tsx';
import { useLoaded } from './use-loaded.ts';

export function ChangeDialog(): JSX.Element | null {
  const { change } = useApp();
  return change.value === undefined ? null : <Planned key={change.value.title} change={change.value} />;
}

function Planned({ change }: { readonly change: Change }): JSX.Element {
  const app = useApp();
  const [attempt, setAttempt] = useState(0);
  const [applying, setApplying] = useState(false);
  const [failure, setFailure] = useState<unknown>(undefined);
  const path = `/api/slots/${encodeURIComponent(change.slot)}`;
  const planned = useLoaded(
    async (signal) => {
      const slot = await app.client.ask<Slot>(path, { signal });
      const spec = applyPatch(slot.spec, change.patch);
      const plan = await app.client.ask<Plan>('/api/plan', { method: 'POST', body: { slots: [{ name: change.slot, spec }] }, signal });
      return { plan, version: slot.resource_version };
    },
    [change, attempt],
  );
  const close = (): void => {
    app.change.value = undefined;
  };
  const apply = async (): Promise<void> => {
    if (planned.kind !== 'done') return;
    setApplying(true);
    try {
      await app.client.ask(`${path}/${change.verb}`, { method: 'POST', body: change.body, ifMatch: planned.value.version });
      close();
    } catch (error) {
      setFailure(error);
    }
    setApplying(false);
  };
  const isConflict = failure instanceof ApiProblem && failure.status === 409;
  const again = (): void => {
    setFailure(undefined);
    setAttempt(attempt + 1);
  };
  return (
    <Modal title={change.title} kind="dialog" onClose={close}>
      {planned.kind === 'loading' && <p role="status">{T.planning}</p>}
      {planned.kind === 'failed' && <p role="alert">{planned.message}</p>}
      {planned.kind === 'done' && <PlanView plan={planned.value.plan} />}
      {failure !== undefined && <p role="alert">{isConflict ? T.conflict : messageOf(failure)}</p>}
      <footer>
        <button type="button" onClick={close}>
          {T.cancel}
        </button>
        {isConflict ? (
          <button type="button" class="main" onClick={again}>
            {T.planAgain}
          </button>
        ) : (
          <button type="button" class="main" disabled={planned.kind !== 'done' || applying} onClick={() => void apply()}>
            {applying ? T.applying : T.apply}
          </button>
        )}
      </footer>
    </Modal>
  );
}
