/** The form of a playground page: its fields, a button that runs or stops the request, its progress and its error. */
import type { ComponentChildren, JSX } from 'preact';
import { Button } from '../parts/button.tsx';
import { P } from '../texts-playground.ts';
import { Waiting } from './slot-choice.tsx';
import { useRequest } from './use-request.ts';

interface RunFormProps {
  readonly slot: string;
  readonly label: string;
  /** Whether the fields are complete. */
  readonly isComplete: boolean;
  /** Whether a running request waits for the slot. Default: always. */
  readonly isWaiting?: boolean;
  readonly onRun: (signal: AbortSignal) => Promise<void>;
  /** An error that a streamed response reported; empty if none. */
  readonly failure?: string;
  readonly children: ComponentChildren;
}

export function RunForm({ slot, label, isComplete, isWaiting = true, onRun, failure = '', children }: RunFormProps): JSX.Element {
  const request = useRequest();
  const shownFailure = failure === '' ? request.failure : failure;
  const submit = (event: Event): void => {
    event.preventDefault();
    request.start(onRun);
  };
  return (
    <form class="ask" onSubmit={submit}>
      {children}
      <div class="buttons end">
        {request.running ? (
          <Button label={P.stop} onClick={() => request.stop()} />
        ) : (
          <Button label={label} look="main" disabled={slot === '' || !isComplete} />
        )}
      </div>
      {request.running && isWaiting && <Waiting slot={slot} />}
      {shownFailure !== '' && <p role="alert">{shownFailure}</p>}
    </form>
  );
}
