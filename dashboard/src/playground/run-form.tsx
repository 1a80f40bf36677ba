/** The form of a playground page: its fields, a button that runs or stops the request, its progress and its error. */
import type { ComponentChildren, JSX } from 'preact';
import { P } from '../texts-playground.ts';
import { Waiting } from './slot-choice.tsx';
import { useRequest } from './use-request.ts';

interface RunFormProps {
  readonly slot: string;
  readonly label: string;
  /** Whether the fields are complete. */
  readonly isComplete: boolean;
  readonly onRun: (signal: AbortSignal) => Promise<void>;
  /** An error that a streamed response reported; empty if none. */
  readonly failure?: string;
  readonly children: ComponentChildren;
}

export function RunForm({ slot, label, isComplete, onRun, failure = '', children }: RunFormProps): JSX.Element {
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
          <button type="button" onClick={() => request.stop()}>
            {P.stop}
          </button>
        ) : (
          <button type="submit" class="main" disabled={slot === '' || !isComplete}>
            {label}
          </button>
        )}
      </div>
      {request.running && <Waiting slot={slot} />}
      {shownFailure !== '' && <p role="alert">{shownFailure}</p>}
    </form>
  );
}
